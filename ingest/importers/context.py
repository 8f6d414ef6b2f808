"""What all files of one import share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from domain.policy import Policy
from ingest.importers.held import Held
from ingest.importers.request import ImportRequest, Progress
from ingest.lake_writer import BronzeWriter
from ingest.local_time import LocalZone
from ingest.manifest import Manifest
from ingest.times import TimeReader, TimeRules
from ingest.validate import RowChecker

COMMIT_ROWS = 500_000
COMMIT_BYTES = 192 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Request, lake and clock of one import.

    Attributes:
        held: What bronze holds, counted.
        keep: Puts the manifest of a source on disk.
        now: When this import began, UTC.
        commit_rows: Rows of a commit: it ends at each multiple of it, so a rerun makes the same commits. It
            ends earlier where the rows take more memory than `COMMIT_BYTES`.
        on_progress: Told how far a file is.
        on_step: Told the name of each step that is on disk now: `manifest`, `rejects`, `plays`, `finished`.
    """

    request: ImportRequest
    lake_root: Path
    writer: BronzeWriter
    held: Held
    keep: Callable[[Manifest], None]
    now: datetime
    policy: Policy
    zone: LocalZone
    commit_rows: int = COMMIT_ROWS
    on_progress: Callable[[Progress], None]
    on_step: Callable[[str], None] = lambda _: None

    def checker(self, judged_at: datetime) -> RowChecker:
        """Return the checks of this import, with the clock (UTC) by which a time is in the future."""
        return row_checker(self.request, zone=self.zone, policy=self.policy, judged_at=judged_at)

    def reporter(self, path: Path, stage: str) -> Callable[[float, int], None]:
        """Return what reports (share of the file read, rows read) of one stage."""
        size = path.stat().st_size

        def report(share: float, rows: int) -> None:
            done = round(share * size)
            progress = Progress(path=path, stage=stage, bytes_done=done, bytes_total=size, rows=rows)
            self.on_progress(progress)

        return report


def row_checker(request: ImportRequest, *, zone: LocalZone, policy: Policy, judged_at: datetime) -> RowChecker:
    """Return the checks that a request asks for.

    Args:
        request: Time format and unit of durations.
        zone: Clock of times that name no zone.
        policy: How far in the future a time may be, among others.
        judged_at: The clock by which a time is in the future, UTC.
    """
    rules = TimeRules(
        time_format=request.time_format,
        zone=zone,
        oldest=policy.oldest_event,
        latest=judged_at + policy.future_tolerance,
    )
    return RowChecker(times=TimeReader(rules), duration_unit=request.duration_unit, policy=policy)
