"""Boards of periods that ended: read from their archives in the lake, by the same questions as live ones."""

import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from domain.board_tables import BOARD_ARCHIVES, BOARD_CERTIFICATES
from domain.boards.archives import Archive, is_settled
from domain.boards.certificates import Certificate, Certified
from domain.boards.definitions import Boards
from domain.boards.sort_key import SCORE_BYTES, member, player_of, sort_key
from domain.windows import milliseconds
from serving.boards.ranking import Page, Places, Standing, shares
from serving.lake_thread import LOOK_SECONDS, MEMORY, LakeThread

_MOST_KEPT = 64

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class ArchivedBoard:
    """The best players of a board, as a `serving.boards.ranking.Ranking`.

    Attributes:
        archive: What it is.
        members: As of `domain.boards.sort_key.member`, in the order of the board.
    """

    archive: Archive
    members: Sequence[bytes]

    async def page(self, *, after: bytes, size: int) -> Page:
        """Return the rows behind a member; empty = from the top."""
        before = bisect_right(self.members, after) if after else 0
        return Page(
            before=before,
            members=self.members[before : before + size],
            size=self.archive.players,
            listed=len(self.members),
            as_of_ms=self._as_of_ms,
        )

    async def places(self, player_ids: Sequence[str]) -> Places:
        """Return where players stand, of those that are kept."""
        wanted = set(player_ids)
        found = [(one, before) for before, one in enumerate(self.members) if player_of(one) in wanted]
        return Places(members=found, size=self.archive.players, as_of_ms=self._as_of_ms)

    async def standing(self, player_id: str, *, around: int = 0) -> Standing | None:
        """Return a player's place among those that are kept; None when the player is not one of them."""
        before = next((n for n, one in enumerate(self.members) if player_of(one) == player_id), None)
        if before is None:
            return None
        mine = self.members[before]
        ups, downs = shares(before, len(self.members) - before - 1, around)
        return Standing(
            member=mine,
            before=before,
            above=self.members[before - ups : before],
            below=self.members[before + 1 : before + 1 + downs],
            size=self.archive.players,
            as_of_ms=self._as_of_ms,
        )

    async def better_than(self, members: Sequence[bytes]) -> Sequence[int]:
        """Return how many have a better score than each of some members."""
        return [bisect_left(self.members, one[:SCORE_BYTES]) for one in members]

    @property
    def not_ranked(self) -> str:
        """Why a player is not found, for people."""
        kept = f"the archive of this board keeps the best {self.archive.places:,} of {self.archive.players:,} players"
        return f"the player has no score on this board, or is further down: {kept}"

    @property
    def _as_of_ms(self) -> int:
        return milliseconds(self.archive.counted_to)


class BoardsOfLake:
    """What the lake has of boards, for one worker; `close` it after use. Every call may raise `RefusedError`.

    Args:
        lake_root: Folder of the lake; None = there is none.
        boards: Definitions.
    """

    def __init__(self, lake_root: Path | None, boards: Boards) -> None:
        self._root = lake_root
        self._boards = boards
        self._thread = LakeThread("archived boards")
        self._archives = _Newest[Mapping[str, Archive]](BOARD_ARCHIVES.name, {})
        self._certified = _Newest[Certified | None](BOARD_CERTIFICATES.name, None)
        self._kept: dict[Archive, ArchivedBoard] = {}

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    async def archives(self) -> Mapping[str, Archive]:
        """Return the newest archive of each board, by its name."""
        if self._root is None:
            return {}
        if (held := self._archives.held()) is not None:
            return held
        from ingest.read_archives import archives  # noqa: PLC0415  loads DuckDB, which live boards do without

        root = self._root
        return await self._thread.run(lambda: self._archives.read(root, archives))

    async def certificate(self, name: str) -> Certificate | None:
        """Return what is certified of a board; None when nothing is."""
        if self._root is None:
            return None
        from ingest.read_certificates import certificates  # noqa: PLC0415  as above

        root = self._root
        found = await self._thread.run(
            lambda: self._certified.read(root, lambda lake: Certified.newest(certificates(lake)))
        )
        return None if found is None else found.boards.get(name)

    async def board(self, name: str) -> ArchivedBoard | None:
        """Return an archived board; None while it is not archived with all scores that came live."""
        archive = (await self.archives()).get(name)
        if archive is None or not is_settled(archive, self._boards):
            return None
        if (found := self._kept.get(archive)) is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            found = self._kept[archive] = await self._thread.run(lambda: self._read(archive))
        return found

    def _read(self, archive: Archive) -> ArchivedBoard:
        from ingest.read_archives import archived_places  # noqa: PLC0415  as above
        from ingest.read_files import LakeFiles  # noqa: PLC0415

        assert self._root is not None  # noqa: S101  there is an archive
        mode = self._boards.games[archive.game].mode
        with LakeFiles(self._root, memory_limit=MEMORY) as files:
            places = archived_places(files, archive)
        members = [member(sort_key(mode, one.score, one.reached_us), one.player_id) for one in places]
        return ArchivedBoard(archive, members)


class _Newest(Generic[_Read]):
    """What a table says, read again when it has grown."""

    def __init__(self, table: str, nothing: _Read) -> None:
        self._table = table
        self._found = nothing
        self._commit = ""
        self._looked_at = -LOOK_SECONDS

    def held(self) -> _Read | None:
        """Return what it said a moment ago; None when that is too long."""
        return self._found if time.monotonic() - self._looked_at < LOOK_SECONDS else None

    def read(self, lake_root: Path, read: Callable[[Path], _Read]) -> _Read:
        """Return what it says."""
        commit = _newest_commit(lake_root / self._table)
        if commit != self._commit:
            self._found, self._commit = read(lake_root), commit
        self._looked_at = time.monotonic()
        return self._found


def _newest_commit(table: Path) -> str:
    """Return the name of a table's newest commit; empty without a table."""
    try:
        names = os.listdir(table / "_delta_log")
    except FileNotFoundError:
        return ""
    return max((name for name in names if name.endswith(".json")), default="")
