"""A board as one, over all its shards: pages, places and neighbours, of one moment each."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from domain.boards.sort_key import KEY_BYTES, SCORE_BYTES, member
from ingest.hashing import partition_number
from serving.boards.ranking import Page, Places, Standing, shares
from speed_layer.store.boards.reader import Asked, BoardsNotReadyError, BoardsReader, Look, Result


@dataclass(frozen=True)
class LiveBoard:
    """One live board, as a `serving.boards.ranking.Ranking`; calls raise what those of `BoardViews` do."""

    views: "BoardViews"
    board: str

    async def page(self, *, after: bytes, size: int) -> Page:
        """Return the rows behind a member."""
        return await self.views.page(self.board, after=after, size=size)

    async def places(self, player_ids: Sequence[str]) -> Places:
        """Return where players stand."""
        return await self.views.places(self.board, player_ids)

    async def standing(self, player_id: str, *, around: int = 0) -> Standing | None:
        """Return a player's place."""
        return await self.views.standing(self.board, player_id, around=around)

    async def better_than(self, members: Sequence[bytes]) -> Sequence[int]:
        """Return how many have a better score than each of some members."""
        return await self.views.better_than(self.board, members)


class BoardViews:
    """Reads boards for one event loop.

    Args:
        reader: Of the shards.
        shards: How many there are.
    """

    def __init__(self, reader: BoardsReader, *, shards: int) -> None:
        self.reader = reader
        self._shards = shards

    async def shard_of(self, player_id: str) -> int:
        """Return the shard that a player is in.

        Raises:
            BoardsNotReadyError: no shard was begun.
            ViewsUnavailableError: the views server does not answer.
        """
        if self._shards == 1:
            return 0
        partitions = await self.reader.partitions()
        if not partitions:
            raise BoardsNotReadyError(0)
        return self.shard_of_partition(partition_number(player_id, partitions))

    def shard_of_partition(self, number: int) -> int:
        """Return the shard that the players of a partition of the log are in."""
        return number % self._shards

    async def page(self, board: str, *, after: bytes, size: int) -> Page:
        """Return the rows behind a member, which need not be there any more; empty = from the top.

        Raises:
            BoardsNotReadyError: a shard is not whole.
            ViewsUnavailableError: the views server does not answer.
        """
        place = after + b"\0" if after else b""  # the next that can be: no id holds a zero byte
        looks = await asyncio.gather(
            *[self.reader.look(shard, board, member=place, below=size) for shard in range(self._shards)]
        )
        return Page(
            before=sum(look.before for look in looks),
            members=list(islice(merge(*[look.below for look in looks]), size)),
            size=(players := sum(look.size for look in looks)),
            listed=players,
            as_of_ms=min(look.as_of_ms for look in looks),
        )

    async def standing(self, board: str, player_id: str, *, around: int = 0) -> Standing | None:
        """Return a player's place, with as many neighbours as asked for, on both sides together twice as many.

        At an edge of the board the other side has more, so that a list is as long there as anywhere.

        Raises:
            BoardsNotReadyError, ViewsUnavailableError: as `page`.
        """
        own, wide = await self.shard_of(player_id), 2 * around
        first = await self.reader.look(own, board, player_id=player_id, above=wide, below=wide)
        if first.entry is None:
            return None
        mine = member(first.entry[:KEY_BYTES], player_id)
        looks = [first, *await self._others(own, board, mine, wide)] if self._shards > 1 else [first]
        above = list(islice(merge(*[look.above for look in looks], reverse=True), wide))
        below = list(islice(merge(*[look.below for look in looks]), wide))
        ups, downs = shares(len(above), len(below), around)
        return Standing(
            member=mine,
            before=sum(look.before for look in looks),
            above=above[:ups][::-1],
            below=below[:downs],
            size=sum(look.size for look in looks),
            as_of_ms=min(look.as_of_ms for look in looks),
        )

    async def results(self, asked: Sequence[tuple[int, Asked]]) -> Sequence[Result]:
        """Return what became of scores, and where their players stand; of none while a shard is not whole.

        Args:
            asked: Partition of the log that the player is in, and what is asked.

        Raises:
            ViewsUnavailableError: the views server does not answer.
        """
        shards = [self.shard_of_partition(partition) for partition, _ in asked]
        found: dict[int, Result] = {}
        for shard in sorted(set(shards)):
            mine = [number for number, of_one in enumerate(shards) if of_one == shard]
            results = await self.reader.results(shard, [asked[number][1] for number in mine])
            found.update(zip(mine, results, strict=True))
        in_order = [found[number] for number in range(len(asked))]
        return in_order if self._shards == 1 else await self._over_all_shards(shards, asked, in_order)

    async def _over_all_shards(
        self, own: Sequence[int], asked: Sequence[tuple[int, Asked]], results: Sequence[Result]
    ) -> Sequence[Result]:
        """Add to places in the own shard those before them in the others."""
        places = [
            (number, board, member(place[0][:KEY_BYTES], asked[number][1].match.player_id))
            for number, result in enumerate(results)
            for board, place in enumerate(result.places)
            if place is not None
        ]
        more = Counter[tuple[int, int]]()
        for shard in range(self._shards):
            others = [one for one in places if own[one[0]] != shard]
            members = [(asked[number][1].boards[board], place) for number, board, place in others]
            counts = await self.reader.counts(shard, members) if members else ()
            for (number, board, _), before in zip(others, counts, strict=True):
                more[number, board] += before
        return [
            result._replace(places=[None if place is None else (place[0], place[1] + more[number, board])
                                    for board, place in enumerate(result.places)])
            for number, result in enumerate(results)
        ]  # fmt: skip

    async def places(self, board: str, player_ids: Sequence[str]) -> Places:
        """Return where players stand, those who do.

        Raises:
            BoardsNotReadyError, ViewsUnavailableError: as `page`.
        """
        by_shard: dict[int, list[str]] = {shard: [] for shard in range(self._shards)}
        for player in player_ids:
            by_shard[await self.shard_of(player)].append(player)
        found = await asyncio.gather(*[self.reader.places(shard, board, ids) for shard, ids in by_shard.items()])
        members = [(shard, one, before) for shard, of_one in enumerate(found) for one, before in of_one.members]
        more = [0] * len(members)
        for shard in range(self._shards) if self._shards > 1 else ():
            counts = await self.reader.counts(shard, [(board, one) for _, one, _ in members])
            for number, before in enumerate(counts):
                more[number] += before if members[number][0] != shard else 0
        return Places(
            members=[(one, before + more[number]) for number, (_, one, before) in enumerate(members)],
            size=sum(of_one.size for of_one in found),
            as_of_ms=min(of_one.as_of_ms for of_one in found),
        )

    async def better_than(self, board: str, members: Sequence[bytes]) -> Sequence[int]:
        """Return how many have a better score than each of some members."""
        scores = list({one[:SCORE_BYTES] for one in members})
        asked = [(board, score) for score in scores]
        counts = await asyncio.gather(*[self.reader.counts(shard, asked) for shard in range(self._shards)])
        found = dict(zip(scores, map(sum, zip(*counts, strict=True)), strict=True))
        return [found[one[:SCORE_BYTES]] for one in members]

    async def _others(self, own: int, board: str, mine: bytes, wide: int) -> Sequence[Look]:
        return await asyncio.gather(
            *[
                self.reader.look(shard, board, member=mine, above=wide, below=wide)
                for shard in range(self._shards)
                if shard != own
            ]
        )
