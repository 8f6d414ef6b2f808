"""Filling a board's base: pages of members, their first ones, and the map of entries. Written once, never changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from speed_layer.store.boards.keys import OVERLAY_BUCKETS, PAGE_MEMBERS, bucket_hash, of_generation
from speed_layer.store.connection import Views

FIELDS_A_BUCKET: Final = 100  # on average, so that nearly all stay the compact form of up to 128
_COMMANDS: Final = 500  # in one go
_FIELDS_A_COMMAND: Final = 16
_CHANGED: Final = 10  # one player in so many is in the overlay before the next rebuild


@dataclass
class BaseLoader:
    """Fills the base of one board in a generation that nobody reads yet. Calls may raise `ViewsUnavailableError`.

    Args:
        views: The server.
        shard: Of the players.
        generation: Where.
        board: Its name.
        version: That it gets.
        players: How many will come, about.
        page: Members of a page.
    """

    views: Views
    shard: int
    generation: int
    board: str
    version: int
    players: int
    page: int = PAGE_MEMBERS
    _count: int = field(default=0, init=False)
    _pages: int = field(default=0, init=False)
    _page: list[bytes] = field(default_factory=list, init=False)
    _fields: dict[int, list[str | bytes]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._buckets = max(1, self.players // FIELDS_A_BUCKET)
        self._pipeline: Any = self.views.client.pipeline(transaction=False)

    def add(self, players: Sequence[str], entries: Sequence[bytes], members: Sequence[bytes]) -> None:
        """Add players who are ranked behind those before, in their order.

        Args:
            players: Ids.
            entries: Of each.
            members: Of each, as of `domain.boards.sort_key.member`.
        """
        self._count += len(players)
        self._page += members
        full = len(self._page) - len(self._page) % self.page
        for start in range(0, full, self.page):
            self._put_page(self._page[start : start + self.page])
        del self._page[:full]
        for player, entry in zip(players, entries, strict=True):
            bucket = bucket_hash(player) % self._buckets
            fields = self._fields.setdefault(bucket, [])
            fields += (player, entry)
            if len(fields) >= 2 * _FIELDS_A_COMMAND:
                self._put_fields(bucket)

    def banned(self, players: Sequence[str], entries: Sequence[bytes]) -> None:
        """Add players who live on out of sight."""
        for player, entry in zip(players, entries, strict=True):
            self._pipeline.hset(self._key(f"shadow:{self.board}"), player, entry)
            self._flush(_COMMANDS)

    def finish(self) -> None:
        """Write what is left, and the pointer by which the board is found; without anybody, there is no board."""
        if self._page:
            self._put_page(self._page)
        for bucket in list(self._fields):
            self._put_fields(bucket)
        if self._count:
            over = max(OVERLAY_BUCKETS, self._count // _CHANGED // FIELDS_A_BUCKET)
            pointer = f"{self.version} {over} {self._buckets} {self._pages} {self.page} {self._count}"
            self._pipeline.hset(self._key("boards"), self.board, pointer)
        self._flush(1)

    def _put_page(self, members: Sequence[bytes]) -> None:
        # A listpack is searched from its head: what comes last first is put there at once.
        self._pipeline.zadd(self._own(f"p:{self._pages}"), dict.fromkeys(reversed(members), 0))
        self._pipeline.zadd(self._own("index"), {members[0]: 0})
        self._pages += 1
        self._flush(_COMMANDS)

    def _put_fields(self, bucket: int) -> None:
        self._pipeline.hset(self._own(f"m:{bucket}"), items=self._fields.pop(bucket))
        self._flush(_COMMANDS)

    def _flush(self, least: int) -> None:
        if len(self._pipeline) >= least:
            with self.views.translated():
                self._pipeline.execute()

    def _own(self, name: str) -> str:
        return self._key(f"{self.board}:{self.version}:{name}")

    def _key(self, name: str) -> str:
        return of_generation(self.shard, self.generation, name)
