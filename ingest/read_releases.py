"""Finds releases by number, by moment or the newest, opening only files whose statistics can hold them."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from domain.errors import BadRequestError, LakeboardError
from domain.questions import AsOf
from domain.releases import Release, UnknownReleaseError
from domain.rules import BEGINNING
from domain.tables import RELEASES
from ingest.read_files import DataFile, LakeFiles, LakeUnreadableError, PinnedTable, first_line, statistics

# Files opened at a time when looking back: one holds the answer nearly always, more only if a clock went
# back.
_AT_A_TIME = 16
_ANY_RELEASE = 2**63 - 1


class NothingCountedError(LakeboardError):
    """The lake has no release, so there is nothing that a reader may see."""

    def __init__(self, lake_root: Path) -> None:
        super().__init__(lake_root)
        self.lake_root = lake_root

    def __str__(self) -> str:
        return (
            f"nothing has been counted in {self.lake_root} yet: "
            "bring events in with `lakeboard import`, then run `lakeboard recount`"
        )


class NoReleaseThenError(BadRequestError):
    """No release existed yet at the moment asked for."""

    def __init__(self, moment: datetime, first: Release) -> None:
        super().__init__(moment, first)
        self.moment = moment
        self.first = first

    def __str__(self) -> str:
        return (
            f"nothing had been counted by {self.moment.isoformat()}: "
            f"release {self.first.release} was the first, made at {self.first.created_at.isoformat()}"
        )


class Releases:
    """`gold/releases` of one lake: a small file a release, chosen by their statistics."""

    def __init__(self, files: LakeFiles) -> None:
        self._files = files
        self._newest: Release | None = None
        self._ranges = _file_ranges(files)

    def newest(self) -> Release:
        """Return the release that readers see.

        Raises:
            NothingCountedError: there is none.
        """
        if self._newest is None:
            found = self.latest(1)
            if not found:
                raise NothingCountedError(self._files.lake_root)
            self._newest = found[0]
        return self._newest

    def numbered(self, release: int) -> Release:
        """Return one release.

        Raises:
            NothingCountedError: there is none at all.
            UnknownReleaseError: there is none of this number.
        """
        newest = self.newest()
        holding = [file for file, low, high, _ in self._ranges if low <= release <= high]
        found = self._read(holding, "release = $number", number=release)
        if not found:
            raise UnknownReleaseError(str(release), newest.release)
        return found[0]

    def as_of(self, as_of: AsOf) -> Release:
        """Return the release of this number, or the newest one made at or before this moment.

        Moments are compared with `created_at`, never with commit timestamps, which are times of files.

        Raises:
            NothingCountedError: there is none at all.
            UnknownReleaseError: there is none of this number.
            NoReleaseThenError: all were made later.
        """
        if as_of.release is not None:
            return self.numbered(as_of.release)
        if as_of.moment is None:
            return self.newest()
        self.newest()
        early = [file for file, _, _, made in self._ranges if made <= as_of.moment]
        for start in range(0, len(early), _AT_A_TIME):
            found = self._read(early[start : start + _AT_A_TIME], "created_at <= $moment", moment=as_of.moment)
            if found:
                return found[0]
        raise NoReleaseThenError(as_of.moment, self._first())

    def latest(self, most: int) -> list[Release]:
        """Return up to so many releases, newest first."""
        return self._read([file for file, _, _, _ in self._ranges[:most]], "true")[:most]

    def _first(self) -> Release:
        return self._read([file for file, low, _, _ in self._ranges if low == 1], "release = 1")[0]

    def _read(self, files: Sequence[DataFile], condition: str, **parameters: Any) -> list[Release]:
        pinned = PinnedTable(RELEASES, f"{self._files.root}/{RELEASES.name}", None, tuple(files))
        names = RELEASES.column_names
        sql = f"SELECT {', '.join(names)} FROM {pinned.scan()} WHERE {condition} ORDER BY release DESC"  # noqa: S608
        return [Release.from_row(dict(zip(names, row, strict=True))) for row in self._files.rows(sql, parameters)]


def newest_release(lake_root: Path) -> Release | None:
    """Return the release that readers see, None before the first."""
    with LakeFiles(lake_root) as files:
        found = Releases(files).latest(1)
    return found[0] if found else None


def _file_ranges(files: LakeFiles) -> list[tuple[DataFile, int, int, datetime]]:
    """Return (file, lowest release, highest release, earliest created_at) by highest release, newest first.

    Delta cuts the smallest time of a file to milliseconds downwards, so it is never after the true one. A
    file without statistics may hold anything.

    Raises:
        LakeUnreadableError: the table's log is damaged.
    """
    folder = files.lake_root / RELEASES.name
    if not (folder / "_delta_log").is_dir():
        return []
    wanted = ("path", "num_records", "size_bytes", "min.release", "max.release", "min.created_at")
    try:
        facts = statistics(DeltaTable(folder), *wanted)
    except (DeltaError, OSError) as error:
        raise LakeUnreadableError(RELEASES.name, first_line(error)) from error
    ranges = [
        (DataFile(path, {}, rows, size), low or 0, high or _ANY_RELEASE, made or BEGINNING)
        for path, rows, size, low, high, made in zip(*facts.values(), strict=True)
        if rows != 0
    ]
    return sorted(ranges, key=lambda of_file: of_file[2], reverse=True)
