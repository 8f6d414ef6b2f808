"""The merger as a service: one at a time, a cycle as soon as partitions say something new, through every restart."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.batch_view import BatchView, PartitionOf
from speed_layer.merger import Cycle, Merger, Name, Said
from speed_layer.store.charts import ChartsWriter, MergerReplacedError
from speed_layer.store.connection import Views, octets
from speed_layer.store.keys import BATCH_VIEW, of_field
from speed_layer.store.keys import field as field_of
from speed_layer.store.leases import ViewsUnavailableError
from speed_layer.store.lists import PartitionStatus, decode_list
from speed_layer.store.publishing import Publishing
from speed_layer.store.ready import ChartsStatus

WORKING, WAITING = "working", "waiting"
_POLL_SECONDS = 0.05
_SETTLING_SECONDS = 0.3  # partitions say something each second, nearly all at one moment; so they are merged
_LONGEST_CYCLE_SECONDS = 1.0
_RETRY_SECONDS = 0.5
_ALL = -1


class Stop(Protocol):
    """Whether somebody asked the merger to end; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """Say whether it was asked."""

    def wait(self, timeout: float) -> object:
        """Return when it was asked, or after so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """What a cycle did.

    Attributes:
        number: From 1, since this merger became the writer.
        charts: Charts that were written or are gone.
        bytes: Written.
        seconds: From the first read to the end of the write.
    """

    number: int
    charts: int
    bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class MergeJob:
    """What a merger is to do.

    Attributes:
        connect: Opens the views server; called again after it was away.
        partitions: Partitions of plays in the log.
        partition_of: Gives the partition of each item.
        list_size: Rows that a partition's list usually has.
        load_view: Reads a batch view by its version; None when it is not there any more.
        say: Told the state, and what it waits for.
        report: Told what each cycle did.
        once: Leave after the first cycle.
    """

    connect: Callable[[], Views]
    partitions: int
    partition_of: PartitionOf
    list_size: int
    load_view: Callable[[Views, str], BatchView | None]
    say: Callable[[str, str], None]
    report: Callable[[CycleReport], None]
    once: bool = False


def run(job: MergeJob, stop: Stop) -> None:
    """Merge until `stop` is set, or once.

    Raises:
        UnknownListFormatError: another version of this program writes in the views server.
    """
    while not stop.is_set():
        try:
            with job.connect() as views:
                if _work(job, views, stop):
                    return
        except (ViewsUnavailableError, MergerReplacedError) as error:
            job.say(WAITING, str(error))
            stop.wait(_RETRY_SECONDS)


def _work(job: MergeJob, views: Views, stop: Stop) -> bool:
    """Become the writer and merge; return whether all is done."""
    writer = ChartsWriter(views)
    while (epoch := writer.acquire()) is None:
        job.say(WAITING, "another merger writes the charts")
        if stop.wait(_RETRY_SECONDS) or stop.is_set():
            return True
    merging = Merging(job, views, writer=writer, epoch=epoch)
    try:
        while True:
            job.report(merging.cycle())
            job.say(WORKING, "")
            if job.once or not _due(merging, stop):
                return True
    finally:
        merging.leave()


def _due(merging: "Merging", stop: Stop) -> bool:
    """Wait until partitions have said something new and no more comes, or for a second; false when asked to stop."""
    began = time.monotonic()
    first_news: float | None = None
    seen: Mapping[int, int] = {}
    while not stop.is_set():
        now, before = time.monotonic(), seen
        seen = merging.news()
        first_news = now if seen and first_news is None else first_news
        if now - began >= _LONGEST_CYCLE_SECONDS:
            return True
        if first_news is not None and (seen == before or now - first_news >= _SETTLING_SECONDS):
            return True
        stop.wait(_POLL_SECONDS)
    return False


@dataclass
class Merging:
    """One merger at work under one epoch; a new one reads everything anew."""

    job: MergeJob
    views: Views
    writer: ChartsWriter
    epoch: str
    number: int = 0
    _publishing: Publishing = field(init=False)
    _merger: Merger = field(init=False)
    _cycles: dict[int, int] = field(default_factory=dict, init=False)  # of each status that was read
    _loaded: dict[str, BatchView] = field(default_factory=dict, init=False)
    _asked: dict[int, Mapping[Name, int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        job = self.job
        self._publishing = Publishing(self.views)
        self._merger = Merger(partitions=job.partitions, partition_of=job.partition_of, list_size=job.list_size)

    def news(self) -> Mapping[int, int]:
        """Return the partitions that have said something since the last cycle, with the number of what they said."""
        statuses = self._publishing.read_statuses(range(self.job.partitions))
        said = {number: _ALL if status is None else status.cycle for number, status in statuses.items()}
        return {number: cycle for number, cycle in said.items() if cycle != self._cycles.get(number)}

    def cycle(self) -> CycleReport:
        """Read what is new, merge, write.

        Raises:
            MergerReplacedError: another merger took over; nothing was written.
        """
        began = time.monotonic()
        said = {number: self._read(number) for number in range(self.job.partitions)}
        in_force = self._load({one.status for one in said.values() if one.status is not None})
        found = self._merger.cycle(said, self._loaded)
        self.number += 1
        status = ChartsStatus(written_ms=self.views.now_ms(), cycle=self.number, view=in_force, moments=found.moments)
        written = self.writer.write(self.epoch, found.charts, status, anew=self.number == 1)
        self._ask(found)
        return CycleReport(
            number=self.number, charts=len(found.charts), bytes=written, seconds=time.monotonic() - began
        )

    def leave(self) -> None:
        """Let another merger write at once; one that cannot be told waits until the lease runs out."""
        try:
            self.writer.release(self.epoch)
        except ViewsUnavailableError as error:
            self.job.say(WAITING, str(error))

    def _read(self, number: int) -> Said:
        """Read what changed in a partition; all of it the first time, and when the server lost it in between."""
        since = self._cycles.get(number, _ALL)
        changed = self._publishing.changed_since(number, since)
        cycle = _ALL if changed.status is None else changed.status.cycle
        if cycle < since:
            since, changed = _ALL, self._publishing.changed_since(number, _ALL)
        if anew := since == _ALL:
            self.writer.renew(self.epoch)  # all of it, and soon views too: the lease must not run out before the write
        self._cycles[number] = _ALL if changed.status is None else changed.status.cycle
        lists = {}
        for name, body in changed.lists.items():
            kind, region = of_field(name)
            lists[kind, region] = None if body is None else decode_list(body, kind=kind, region=region)
        return Said(status=changed.status, changed=lists, anew=anew)

    def _load(self, statuses: set[PartitionStatus]) -> str | None:
        """Load the view in force and those that lists go with, forget others; return the version to acknowledge."""
        with self.views.translated():
            pointer = self.views.client.get(BATCH_VIEW)
        in_force = None if pointer is None else octets(pointer).decode()
        wanted = {in_force, *(status.view for status in statuses)} - {None}
        for version in wanted - set(self._loaded):
            view = self.job.load_view(self.views, str(version))
            self.writer.renew(self.epoch)  # a large one takes a while
            if view is not None:
                self._loaded[str(version)] = view
        for version in set(self._loaded) - wanted:
            del self._loaded[version]
        return in_force if in_force in self._loaded else None

    def _ask(self, found: Cycle) -> None:
        """Write the asks of partitions for which they are different, or may be, as another merger wrote them."""
        for number, asks in found.asks.items():
            if self._asked.get(number) != asks:
                self._publishing.ask(number, {field_of(*name): rows for name, rows in asks.items()})
                self._asked[number] = dict(asks)
