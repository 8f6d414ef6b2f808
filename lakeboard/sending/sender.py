"""Sends files: reads them as an import does, keeps the pace, posts, and accounts for every row."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.clock import Clock
from domain.policy import DEFAULT_POLICY, Policy
from ingest.importers.context import row_checker
from ingest.importers.plays import Place
from ingest.importers.prefixes import PrefixDigest
from ingest.importers.request import Progress
from ingest.importers.sources import SourceFile
from ingest.local_time import LocalZone
from lakeboard.sending.client import Client
from lakeboard.sending.numbers import FileNumbers, digest_now
from lakeboard.sending.pacing import Pace, cuts, pace_of
from lakeboard.sending.posting import Batch, Posters
from lakeboard.sending.reading import Stretch, event_text, sources_of, stretches
from lakeboard.sending.rejects import RejectsFile, rejects_name, unsent, untaken
from lakeboard.sending.request import STANDARD_INPUT, FileTally, SendRequest, SendSummary
from lakeboard.sending.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What sending touches beside the service.

    Attributes:
        sent_root: Folder where the numbers of files are remembered.
        lake_root: Folder of the lake, for the numbers that imports gave; it need not be there.
        clock: Read once: decides which times are in the future.
        policy: How far in the future a time may be, among others.
        on_progress: Told a few times a second how far it is.
        on_trouble: Told in a few words when the service does not take events.
    """

    sent_root: Path
    lake_root: Path
    clock: Clock
    policy: Policy = DEFAULT_POLICY
    on_progress: Callable[[Progress], None] = lambda _: None
    on_trouble: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class _Numbered:
    file: SourceFile
    place: Place


class Sender:
    """Sends the files of one request, once. `stands_at` tells how far it came, also when it was stopped.

    Attributes:
        rejects: The file of rows that could not be sent or were not taken.
    """

    def __init__(self, request: SendRequest, edges: Edges, rejects: Path | None = None) -> None:
        """Look into the files and number them; nothing is sent or written yet but the numbers.

        Args:
            request: What to send, and how.
            edges: The rest of the world.
            rejects: Where refused rows go; None = a file named after the first source, beside the numbers.

        Raises:
            BadRequestError: a file, column or option is wrong, or a source has other content or options.
        """
        self._request = request
        self._edges = edges
        self._now = edges.clock()
        zone = LocalZone(request.files.time_zone, request.files.ambiguous)
        self._checker = row_checker(request.files, zone=zone, policy=edges.policy, judged_at=self._now)
        self._numbers = FileNumbers(sent_root=edges.sent_root, lake_root=edges.lake_root, now=self._now)
        self._has_ids = request.files.event_id is not None or request.files.dedup_by_content
        self._files = self._numbered()
        self._tally = Tally(tuple(FileTally(one.file.path, one.place.source) for one in self._files), request.from_row)
        path = rejects or edges.sent_root / rejects_name(self._files[0].place.source)
        self.rejects = RejectsFile(path, request.from_row)
        self._rows_before = [0]  # of each file that was begun
        self._accepted_shown = 0
        self._shown: tuple[Path, float] = (self._files[0].file.path, 0.0)

    @property
    def stands_at(self) -> int:
        """Row, counted over all files, before which every row was taken or refused."""
        return self._tally.stands_at

    def run(self) -> SendSummary:
        """Send every row, and see that each is accounted for.

        Raises:
            NotTakenError, GaveUpError, AnswerError: what the service said.
            DamagedFileError: a file cannot be read to its end; what was read before is sent.
            RowsLostError: a row is neither accepted nor refused.
        """
        request, stop, began = self._request, threading.Event(), time.monotonic()
        with (
            self.rejects,
            Client(
                request.url,
                request.key,
                connections=request.connections,
                give_up_seconds=request.give_up_seconds,
                on_trouble=self._edges.on_trouble,
                stop=stop,
            ) as client,
            Posters(
                lambda batch: self._post(client, batch),
                connections=request.connections,
                stop=stop,
                on_look=self._show,
            ) as posters,
        ):
            self._read_files(posters, began)
        self._tally.require_whole()
        return SendSummary(
            files=self._tally.files,
            repeated=self._tally.repeated,
            from_row=request.from_row,
            seconds=time.monotonic() - began,
        )

    def _numbered(self) -> list[_Numbered]:
        """Return the files in the order given. Where rows have ids of their own the number is of no use."""
        request = self._request.files
        found: dict[Path, _Numbered] = {}
        for source, group in sources_of(request).items():
            numbers = {} if self._has_ids else self._numbers.assign(source, group, request)
            for file in group:
                found[file.path] = _Numbered(file, Place(source, numbers.get(file.path, 0), file.path))
        return [found[path] for path in dict.fromkeys(request.files)]

    def _read_files(self, posters: Posters, began: float) -> None:
        pace = pace_of(rate=self._request.rate, speed=self._request.speed)
        for number, numbered in enumerate(self._files):
            rows = self._read_file(number, numbered, pace, posters, began)
            if rows is None:
                return
            self._rows_before.append(self._rows_before[-1] + rows)

    def _read_file(self, number: int, numbered: _Numbered, pace: Pace, posters: Posters, began: float) -> int | None:
        """Hand over the batches of one file; return its rows, None when all have stopped."""
        last: list[PrefixDigest] = []
        place = numbered.place
        self._shown = (place.path, 0.0)
        found = stretches(
            numbered.file,
            place,
            self._checker,
            by_content=self._request.files.dedup_by_content,
            from_row=self._request.from_row - self._rows_before[-1],
            on_digest=lambda digest: last.__setitem__(slice(None), [digest]),
        )
        try:
            for stretch in found:
                self._note(number, stretch)
                share_before = self._shown[1]
                for batch, due in _batches(number, stretch, pace, self._request.batch):
                    done = (batch.span[0] - stretch.first_row) / (stretch.end_row - stretch.first_row)
                    self._shown = (place.path, share_before + (stretch.share_done - share_before) * done)
                    if not batch.events:
                        self._done(batch, refused=[], repeated=0)
                    elif not posters.put(batch, at=began + due):
                        return None
        finally:
            if last and not self._has_ids:
                self._numbers.remember(place.source, place.number, digest_now(last[0], self._now), place.path)
        return last[0].rows if last else 0

    def _note(self, number: int, stretch: Stretch) -> None:
        """Count rows that were read, and keep those that cannot be sent."""
        path = self._files[number].file.path
        lines = unsent(stretch.rejects, file=path.name, rows_before=self._rows_before[number])
        self.rejects.add(lines)
        self._tally.read(number, stretch.end_row - stretch.first_row, [line["reason"] for line in lines])

    def _post(self, client: Client, batch: Batch) -> None:
        answer = client.post(batch.events)
        name, before = self._files[batch.file].file.path.name, self._rows_before[batch.file]
        lines = [
            untaken(
                one,
                file=name,
                rows_before=before,
                source_row=batch.rows[one.index],
                payload=event_text(batch.events[one.index]),
            )
            for one in answer.refused
        ]
        self.rejects.add(lines)
        self._done(batch, refused=[one.code for one in answer.refused], repeated=answer.repeated)

    def _done(self, batch: Batch, *, refused: list[str], repeated: int) -> None:
        before = self._rows_before[batch.file]
        span = (before + batch.span[0], before + batch.span[1])
        accepted = len(batch.events) - len(refused)
        self._tally.done(batch.file, span, accepted=accepted, refused=refused, repeated=repeated)

    def _show(self) -> None:
        path, share = self._shown
        if self._tally.accepted == self._accepted_shown:
            return
        self._accepted_shown = self._tally.accepted
        size = 0 if path == STANDARD_INPUT else path.stat().st_size
        progress = Progress(
            path=path, stage="sending", bytes_done=round(share * size), bytes_total=size, rows=self._accepted_shown
        )
        self._edges.on_progress(progress)


def _batches(number: int, stretch: Stretch, pace: Pace, most: int) -> Iterator[tuple[Batch, float]]:
    """Yield requests with the seconds since the start at which each is due; together they span the whole stretch."""
    begin = stretch.first_row
    rows = stretch.rows.tolist()
    for cut in cuts(pace.due(stretch.times_us), most):
        end = stretch.end_row if cut.stop == len(rows) else rows[cut.stop]
        events = stretch.events[cut.start : cut.stop]
        yield Batch(file=number, events=events, rows=rows[cut.start : cut.stop], span=(begin, end)), cut.due
        begin = end
    if begin < stretch.end_row:
        yield Batch(file=number, events=[], rows=[], span=(begin, stretch.end_row)), 0.0
