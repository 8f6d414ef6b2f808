"""What all files of one import share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from domain.policy import Policy
from ingest.importers.request import ImportRequest, Progress
from ingest.lake_writer import BronzeWriter
from ingest.local_time import LocalZone
from ingest.times import TimeReader, TimeRules
from ingest.validate import RowChecker

COMMIT_ROWS = 500_000
COMMIT_BYTES = 192 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Request, lake and clock of one import.

    Attributes:
        now: When this import began, UTC.
        commit_rows: Rows of a commit: it ends at each multiple of it, so a rerun makes the same commits. It
            ends earlier where the rows take more memory than `COMMIT_BYTES`.
        on_progress: Told how far a file is.
        on_step: Told the name of each step that is on disk now: `manifest`, `rejects`, `plays`, `finished`.
    """

    request: ImportRequest
    lake_root: Path
    writer: BronzeWriter
    now: datetime
    policy: Policy
    zone: LocalZone
    commit_rows: int
    on_progress: Callable[[Progress], None]
    on_step: Callable[[str], None]

    def checker(self, judged_at: datetime) -> RowChecker:
        """Return the checks of this import, with the clock (UTC) by which a time is in the future."""
        rules = TimeRules(
            time_format=self.request.time_format,
            zone=self.zone,
            oldest=self.policy.oldest_event,
            latest=judged_at + self.policy.future_tolerance,
        )
        times = TimeReader(rules)
        return RowChecker(times=times, duration_unit=self.request.duration_unit, policy=self.policy)

    def reporter(self, path: Path, stage: str) -> Callable[[float, int], None]:
        """Return what reports (share of the file read, rows read) of one stage."""
        size = path.stat().st_size

        def report(share: float, rows: int) -> None:
            done = round(share * size)
            progress = Progress(path=path, stage=stage, bytes_done=done, bytes_total=size, rows=rows)
            self.on_progress(progress)

        return report
