"""Boards with all that they are made of, for tests: a real log, a real views server, a lake; and all said plainly."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from threading import Event

from pyspark.sql import SparkSession

from domain.boards.events import BoardEvent
from domain.clock import utc_now
from domain.log import EntryId, Stream
from ingest.board_archiver import ArchiveRequest, archive
from ingest.hashing import partition_number
from ingest.read_board_entries import certified_base
from ingest.read_scores import score_history
from ingest.redis_log import RedisLog
from ingest.score_entry import encode_scores, placed_events
from jobs.rebuild_boards import RebuildRequest
from jobs.rebuild_boards import run as recount
from lakeboard.live.rebuilding import fill
from speed_layer.boards.consumer import run
from speed_layer.boards.job import Base, BoardsJob
from speed_layer.store.boards.reader import BoardsReader
from speed_layer.store.connection import connect
from tests.board_lake import BOARDS, BoardLake, Logged, some_event
from tests.servers import LogServer
from tests.views_server import ViewsServer

PARTITIONS = {Stream.PLAYS: 1, Stream.SCORES: 3}


class World:
    """A log, a views server and a lake, and every event of them said plainly."""

    def __init__(self, log: LogServer, server: ViewsServer, root: Path) -> None:
        self.log, self.server, self.lake = log, server, BoardLake(root)
        self.read_to: dict[int, EntryId] = {}
        self.log_id = ""

    def job(self, shards: int, base: Base | None = None) -> BoardsJob:
        """What a consumer has to do, with the certified base of the lake, or with another one."""
        return BoardsJob(
            open_log=lambda: RedisLog.open(self.log.address, partitions=PARTITIONS),
            connect=lambda: connect(self.server.address),
            boards=BOARDS,
            shards=shards,
            decode=lambda entry, partition: placed_events(entry, where=f"{entry.id} of {partition}"),
            base=lambda: base or certified_base(self.lake.root, BOARDS, utc_now()),
            history=partial(score_history, self.lake.root),
            partition_of=partition_number,
            say=lambda *_: None,
            report=lambda _: None,
            once=True,
        )

    def happen(self, random: Random, entries: int) -> None:
        """Let random events happen."""
        with RedisLog.open(self.log.address, partitions=PARTITIONS) as opened:
            for _ in range(entries):
                now_us = int(opened.now().timestamp() * 1_000_000)
                self.append(opened, [some_event(random, now_us) for _ in range(random.randint(1, 8))])

    def append(self, opened: RedisLog, some: Sequence[BoardEvent]) -> None:
        partitions = opened.partitions(Stream.SCORES)
        for number, partition in enumerate(partitions):
            mine = [one for one in some if partition_number(one.player_id, len(partitions)) == number]
            if mine:
                opened.append([(partition, encode_scores(mine, [("api", len(mine))]))])

    def take(self) -> None:
        """Read what is new in the log into the model."""
        with RedisLog.open(self.log.address, partitions=PARTITIONS) as opened:
            self.log_id = opened.log_id
            for partition in opened.partitions(Stream.SCORES):
                after = self.read_to.get(partition.number, EntryId(0, 0))
                for entry in opened.read(partition, after=after, limit=10_000).entries:
                    for placed in placed_events(entry, where="the test"):
                        self.lake.take(opened.log_id, partition.number, placed)
                    self.read_to[partition.number] = entry.id

    def recount(self, spark: SparkSession, only: tuple[str, str] | None = None, *, force: bool = True) -> None:
        self.lake.write()
        recount(
            spark,
            RebuildRequest(
                lake_root=self.lake.root, boards=BOARDS, clock=utc_now, code_version="1",
                log_id=self.log_id, only=only, force=force,
            ),
        )  # fmt: skip
        archive(ArchiveRequest(lake_root=self.lake.root, boards=BOARDS, clock=utc_now, code_version="1"))

    def swap_in(self, shards: int) -> Mapping[int, int]:
        """Fill new generations as the command does, and let the consumer take them up."""
        with RedisLog.open(self.log.address, partitions=PARTITIONS) as opened, connect(self.server.address) as views:
            made = fill(self.job(shards), opened, views)
        run(self.job(shards), Event())
        return made

    def require_same(self, shards: int) -> Mapping[str, Sequence[bytes]]:
        """Compare every open board with the model; return it."""
        base = certified_base(self.lake.root, BOARDS, utc_now())
        found = asyncio.run(boards_of(self.server.address, list(self.lake.members()), shards))
        expected: dict[str, Sequence[bytes]] = {}
        for board in self.lake.members():

            def has(one: Logged, board: str = board) -> bool:
                source = f"{one.log}/{one.partition}"
                return base is not None and base.has(board, source, one.placed.position.version)

            if base is None or board not in base.certified.boards or board in {one.name for one in base.boards}:
                expected[board] = self.lake.members(in_base=has).get(board, [])
        assert {board: found[board] for board in expected} == expected
        return expected


async def boards_of(address: str, boards: Sequence[str], shards: int) -> Mapping[str, list[bytes]]:
    reader = BoardsReader(address)
    try:
        return {
            board: sorted([one for n in range(shards) for one in (await reader.look(n, board, below=10_000)).below])
            for board in boards
        }
    finally:
        await reader.close()
