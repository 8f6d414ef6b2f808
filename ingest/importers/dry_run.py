"""An import that writes nothing: the very same reading, comparing and checking, with nobody who commits.

Everything is as in `ingest/importers/run.py` but for three parts: the writer counts instead of committing, the
manifests are not kept, and what the lake holds is what it holds plus what was counted.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from domain.clock import Clock
from domain.events import Reject
from domain.policy import DEFAULT_POLICY, Policy
from domain.table import Table
from domain.tables import PLAYS, REJECTS
from ingest.delta_log import newest_version
from ingest.importers.context import Context
from ingest.importers.held import Held
from ingest.importers.request import FileSummary, ImportRequest, ImportSummary, Progress
from ingest.importers.run import files_by_source, import_source
from ingest.lake_writer import BronzeWriter
from ingest.local_time import LocalZone
from ingest.table_lock import locked_for_reading
from ingest.times import stamp_reader

REJECTS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that would be refused.

    Attributes:
        file: Name of the file.
        row: From 0, header and blank lines not counted.
        line: From 1; None where the format has no lines.
        reason: Code of the reason.
        detail: The value, or the parser's words.
        payload: The row as it stands.
    """

    file: str
    row: int
    line: int | None
    reason: Reject
    detail: str | None
    payload: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """What an import would do, and the first rows that it would refuse, in order."""

    summary: ImportSummary
    first_rejected: tuple[RejectedRow, ...]


class CountingWriter(BronzeWriter):
    """Stands for the writer of bronze: knows what is there, counts what would be added, and commits nothing."""

    def __init__(self, lake_root: Path) -> None:
        super().__init__(lake_root)
        self.rows: Counter[tuple[str, str]] = Counter()
        self.reasons: dict[str, Counter[Reject]] = {}
        self.first_rejected: list[RejectedRow] = []
        self._seqs: dict[tuple[str, str], int] = {}

    def create(self) -> None:
        """Create nothing: an absent table is an empty one."""

    def last_seq(self, table: Table, writer: str) -> int:
        """Return the last transaction, counted ones included."""
        if (table.name, writer) in self._seqs:
            return self._seqs[table.name, writer]
        return super().last_seq(table, writer) if newest_version(self.lake_root / table.name) >= 0 else -1

    def append(self, table: Table, rows: pa.Table, *, writer: str, seq: int) -> int:
        """Count rows as if they were committed; return how many would be."""
        if self.last_seq(table, writer) >= seq:
            return 0
        self._seqs[table.name, writer] = seq
        self.rows[table.name, writer] += len(rows)
        if table is REJECTS:
            self._note_rejects(rows, writer)
        return len(rows)

    def _note_rejects(self, rows: pa.Table, writer: str) -> None:
        reasons = Counter(map(Reject, rows.column("reason").to_pylist()))
        self.reasons[writer] = self.reasons.get(writer, Counter()) + reasons
        shown = ("source_file", "source_row", "source_line", "reason", "detail", "payload")
        room = REJECTS_SHOWN - len(self.first_rejected)
        for row in rows.select(shown).slice(0, room).to_pylist():
            file, number, line, reason, detail, payload = (row[name] for name in shown)
            self.first_rejected.append(RejectedRow(file, number, line, Reject(reason), detail, payload))


class HeldAndCounted(Held):
    """What bronze would hold after the import."""

    def __init__(self, lake_root: Path, writer: CountingWriter) -> None:
        super().__init__(lake_root)
        self._writer = writer

    def plays(self, writer: str) -> int:
        """Return the plays that are there and those that were counted."""
        return super().plays(writer) + self._writer.rows[PLAYS.name, writer]

    def rejects(self, writer: str) -> Counter[Reject]:
        """Return the refused rows that are there and those that were counted, by reason."""
        return super().rejects(writer) + self._writer.reasons.get(writer, Counter())

    def repeated(self, source: str) -> None:
        """Return nothing: which event ids repeat is known only where they all are, in the table."""


def try_files(
    request: ImportRequest,
    *,
    lake_root: Path,
    clock: Clock,
    policy: Policy = DEFAULT_POLICY,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_wait: Callable[[str, str], None] = lambda _name, _holder: None,
) -> DryRun:
    """Read and check files as an import of them would, and write nothing, not even where there is no lake yet.

    Raises what `import_files` raises for the same request, lake and clock.

    Args:
        request: Files and how to read them.
        lake_root: Folder of the lake; it need not be there.
        clock: Read once: decides which times are in the future.
        policy: How far in the future a time may be, among others.
        on_progress: Told every few thousand rows.
        on_wait: Told (what, holder) when an import of the same source is running, which is waited for.
    """
    groups = files_by_source(request)
    stamp_reader(request.time_format)
    writer = CountingWriter(lake_root)
    context = Context(
        request=request,
        lake_root=lake_root,
        writer=writer,
        held=HeldAndCounted(lake_root, writer),
        keep=lambda _: None,
        now=clock(),
        policy=policy,
        zone=LocalZone(request.time_zone, request.ambiguous),
        on_progress=lambda progress: on_progress(replace(progress, stage="checking")),
    )
    summaries: dict[Path, FileSummary] = {}
    for source, files in groups.items():
        with locked_for_reading(lake_root, f"import/{source}", on_wait=on_wait):
            summaries |= import_source(context, source, files)
    summary = ImportSummary(tuple(summaries[path] for path in request.files))
    return DryRun(summary, tuple(writer.first_rejected))
