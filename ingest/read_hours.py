"""Which hours a release knows, and in what state."""

from datetime import date
from pathlib import Path

from domain.releases import Release
from domain.tables import HOURS
from ingest.read_files import LakeFiles


def hours_in_state(lake_root: Path, release: Release, state: str, *, since: date) -> list[tuple[date, int]]:
    """Return (event_date, event_hour) of `gold/hours` in one state, from a UTC day on, as a release says."""
    with LakeFiles(lake_root) as files:
        hours = files.pin(HOURS, release.table_versions[HOURS.name])
        recent = hours.where(lambda partition: partition["event_date"] >= since)
        if not recent.paths():
            return []
        found = files.rows(f"SELECT event_date, event_hour FROM {recent.scan()} WHERE state = $state", {"state": state})  # noqa: S608
        return [(day, hour) for day, hour in found]
