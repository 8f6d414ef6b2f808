"""The reading side of boards, for one event loop: one look at a shard is of one version and one moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, NamedTuple

from domain.boards.ledger import LedgerRow, Match
from domain.boards.sort_key import KEY_BYTES, member
from domain.errors import LakeboardError
from speed_layer.store.boards.keys import bucket_hash, of_shard
from speed_layer.store.boards.reading_scripts import COUNTS, LOOK, PLACES, RESULTS, STATE
from speed_layer.store.boards.writer import Applied
from speed_layer.store.coalesced import Argument, CoalescedCalls

_NOT_READY, _NO_BOARD = 0, 1


class BoardsNotReadyError(LakeboardError):
    """The boards are not whole: they are being made again, or nothing has made them yet."""

    def __init__(self, shard: int) -> None:
        super().__init__(shard)
        self.shard = shard

    def __str__(self) -> str:
        return f"shard {self.shard} of the boards is not whole yet; `lakeboard status` shows the part boards"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one shard says of a place on one of its boards. Members are as of `domain.boards.sort_key.member`.

    Attributes:
        as_of_ms: Log time that is applied, milliseconds since 1970 UTC.
        version: Of the board; empty where there is none.
        entry: Of the player asked for; None = not listed.
        size: Players.
        before: How many stand before the player or member asked for.
        above: Those just before, the nearest first.
        below: Those just after, the nearest first.
    """

    as_of_ms: int
    version: str = ""
    entry: bytes | None = None
    size: int = 0
    before: int = 0
    above: Sequence[bytes] = ()
    below: Sequence[bytes] = ()


class Asked(NamedTuple):
    """A score whose outcome is asked for.

    Attributes:
        match: Which.
        day: On which the log took it, counted since 1970 UTC.
        boards: Where its player's place is asked for.
    """

    match: Match
    day: int
    boards: Sequence[str]


class Result(NamedTuple):
    """What became of it.

    Attributes:
        row: What is remembered of the match; None where it is not applied.
        places: Of each board asked for: the entry and how many stand before it; None = not listed.
    """

    row: LedgerRow | None
    places: Sequence[tuple[bytes, int] | None]


class BoardPlaces(NamedTuple):
    """Where players stand in one shard.

    Attributes:
        members: Of those who are ranked, with how many stand before each.
        size: Players of the board.
        as_of_ms: Log time that is applied, milliseconds since 1970 UTC.
    """

    members: Sequence[tuple[bytes, int]]
    size: int
    as_of_ms: int


class BoardsReader:
    """Looks at boards; close it after use. Every call may raise `ViewsUnavailableError`.

    Args:
        address: Of the views server.
    """

    def __init__(self, address: str) -> None:
        self._calls = CoalescedCalls(address)

    async def close(self) -> None:
        """Close the connections."""
        await self._calls.close()

    async def look(
        self,
        shard: int,
        board: str,
        *,
        player_id: str = "",
        member: bytes = b"",
        above: int = 0,
        below: int = 0,
    ) -> Look:
        """Look at a place of a board in one shard.

        Args:
            shard: Which.
            board: Its full name.
            player_id: The place of this player; empty = of `member`.
            member: The place that these bytes have or would have; empty = before all.
            above: Rows wanted just before it.
            below: Rows wanted just after it.

        Raises:
            BoardsNotReadyError: the shard is not whole.
        """
        args: list[Argument] = [
            of_shard(shard),
            board,
            player_id,
            bucket_hash(player_id),
            member,
            above,
            below,
        ]
        found = await self._calls.script(LOOK, [of_shard(shard, "live")], args)
        if found[0] == _NOT_READY:
            raise BoardsNotReadyError(shard)
        as_of_ms = int(found[1] or 0)
        if found[0] == _NO_BOARD:
            return Look(as_of_ms=as_of_ms)
        over, base, under, under_base = found[6:10]
        return Look(
            as_of_ms=as_of_ms,
            version=found[2].decode(),
            entry=found[3] or None,
            size=found[4],
            before=found[5],
            above=list(merge(over, base, reverse=True))[:above],
            below=list(merge(under, under_base))[:below],
        )

    async def places(self, shard: int, board: str, players: Sequence[str]) -> BoardPlaces:
        """Return where players of one shard stand in it, those who do.

        Raises:
            BoardsNotReadyError: the shard is not whole.
        """
        args: list[Argument] = [of_shard(shard), board]
        args += [part for player in players for part in (player, bucket_hash(player))]
        found = await self._calls.script(PLACES, [of_shard(shard, "live")], args)
        if not found:
            raise BoardsNotReadyError(shard)
        as_of_ms, size, entries, before = found
        placed = zip(players, entries, before, strict=False)  # where there is no board, nobody stands on it
        members = [(member(entry[:KEY_BYTES], player), count) for player, entry, count in placed if entry]
        return BoardPlaces(members, size, int(as_of_ms or 0))

    async def partitions(self) -> int:
        """Return how many partitions the log has for scores; 0 while no shard was begun."""
        found = await self._state(0, "partitions")
        return int(found[0] or 0)

    async def applied(self, shard: int, partitions: Sequence[int]) -> Sequence[Applied | None]:
        """Return the positions up to which partitions are applied, as in `ShardState`."""
        names = [f"p{number}" for number in partitions]
        found = await self._state(shard, *names)
        return [None if text is None else Applied.parse(text) for text in found]

    async def results(self, shard: int, asked: Sequence[Asked]) -> Sequence[Result]:
        """Return what became of scores of players of one shard, and where these stand, all of one moment."""
        args: list[Argument] = [of_shard(shard)]
        for one in asked:
            args += [one.day, one.day - 1, one.match.field, one.match.player_id, bucket_hash(one.match.player_id)]
            args += [len(one.boards), *one.boards]
        found = await self._calls.script(RESULTS, [of_shard(shard, "live")], args)
        return [_result(row, rest) for row, *rest in found] or [Result(None, ()) for _ in asked]

    async def counts(self, shard: int, members: Sequence[tuple[str, bytes]]) -> Sequence[int]:
        """Return how many players of one shard stand before members of boards, which may be of other shards."""
        args = [of_shard(shard), *(part for one in members for part in one)]
        found: Sequence[int] = await self._calls.script(COUNTS, [of_shard(shard, "live")], args)
        return found

    async def _state(self, shard: int, *fields: str) -> Sequence[bytes | None]:
        """Return fields of the state of a shard, None where it has none."""
        args = [of_shard(shard), *fields]
        found: Sequence[bytes | None] = await self._calls.script(STATE, [of_shard(shard, "live")], args)
        return found or [None] * len(fields)


def _result(row: bytes | None, rest: Sequence[Any]) -> Result:
    places = [None if entry is None else (entry, before) for entry, before in zip(rest[::2], rest[1::2], strict=True)]
    return Result(None if row is None else LedgerRow.decode(row), places)
