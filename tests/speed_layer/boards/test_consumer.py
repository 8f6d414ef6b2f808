"""The consumer of boards over real servers: killed, replaced, its views lost; what it makes is what all events say."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event

import pytest

from domain.boards.definitions import Boards, Game
from domain.boards.events import BoardEvent, EventKind, PlacedEvent
from domain.boards.sort_key import Mode
from domain.log import LAKE_READER, EntryId, Partition, Stream
from ingest.hashing import partition_number
from ingest.redis_log import RedisLog
from ingest.score_entry import encode_scores, placed_events
from speed_layer.boards.consumer import READER, run
from speed_layer.boards.job import BoardsBehindLogError, BoardsJob
from speed_layer.store.boards.generations import Generations
from speed_layer.store.boards.keys import of_generation
from speed_layer.store.boards.writer import BoardWriter, ShardState
from speed_layer.store.connection import Views, connect
from tests.servers import LogServer, log_server
from tests.speed_layer.boards.shard import Plainly, event
from tests.views_server import ViewsServer, views_server

pytestmark = pytest.mark.redis

BOARDS = Boards({"default": Game(name="default", mode=Mode.SUM), "best": Game(name="best", hold_above=90)})
PLAYERS = [f"p{number}" for number in range(30)]
PARTITIONS = {Stream.PLAYS: 1, Stream.SCORES: 4}
HERE = Path(__file__)


@dataclass
class Lake:
    """What a lake would have: events in the order of the log, and up to where."""

    events: Iterator[tuple[str, Sequence[PlacedEvent]]] = field(default_factory=lambda: iter(()))
    positions: Mapping[int, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogServer]:
    with log_server(tmp_path_factory.mktemp("log")) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewsServer]:
    with views_server(tmp_path_factory.mktemp("views")) as found:
        yield found


@pytest.fixture(autouse=True)
def empty(log: LogServer, server: ViewsServer) -> None:
    with log.client() as client:
        client.flushall()
    with connect(server.address) as views:
        views.client.flushall()


def job(log: str, views: str, *, shards: int = 1, once: bool = True, lake: Lake | None = None) -> BoardsJob:
    return BoardsJob(
        open_log=lambda: RedisLog.open(log, partitions=PARTITIONS),
        connect=lambda: connect(views),
        boards=BOARDS,
        shards=shards,
        decode=lambda entry, partition: placed_events(entry, where=f"{entry.id} of {partition}"),
        base=lambda: None,
        history=lambda *_: lake or Lake(),
        partition_of=partition_number,
        say=lambda *_: None,
        report=lambda _: None,
        once=once,
    )


def fill(log: LogServer, random: Random, entries: int) -> None:
    """Append random events, many of them the same match again, some decisions."""
    with RedisLog.open(log.address, partitions=PARTITIONS) as found:
        for _ in range(entries):
            found.append(by_partition(found, [some_event(random) for _ in range(random.randint(1, 40))]))


def by_partition(log: RedisLog, events: Sequence[BoardEvent]) -> list[tuple[Partition, bytes]]:
    found: dict[Partition, list[BoardEvent]] = {}
    partitions = log.partitions(Stream.SCORES)
    for one in events:
        found.setdefault(partitions[partition_number(one.player_id, len(partitions))], []).append(one)
    return [(partition, encode_scores(mine, [("api", len(mine))])) for partition, mine in found.items()]


def some_event(random: Random) -> BoardEvent:
    kind = random.choices(list(EventKind), weights=[30, 1, 2, 2, 0.5])[0]
    return event(
        kind,
        random.choice(PLAYERS),
        game=random.choice(["default", "default", "best", "nobody's"]),
        match_id=f"m{random.randrange(400)}",
        score=random.randrange(-5, 100),
        fingerprint=random.randrange(2),
    )


def plainly(log: LogServer) -> Plainly:
    """Everything in the log, counted one by one."""
    found = Plainly(BOARDS)
    with RedisLog.open(log.address, partitions=PARTITIONS) as opened:
        for placed in in_the_log(opened):
            found.take(placed)
    return found


def in_the_log(log: RedisLog) -> Iterator[PlacedEvent]:
    for partition in log.partitions(Stream.SCORES):
        for entry in log.read(partition, after=EntryId(0, 0), limit=100_000).entries:
            yield from placed_events(entry, where="the test")


def members(views: Views, board: str, shards: int) -> list[bytes]:
    """All members of a board without a base, over all shards."""
    found: list[bytes] = []
    for shard in range(shards):
        live = Generations(views, shard).live()
        assert live is not None
        found += views.client.zrange(of_generation(shard, live, f"{board}:0:over"), 0, -1)  # type: ignore[arg-type]  # bytes
    return sorted(found)


def require_same(server: ViewsServer, log: LogServer, shards: int = 1) -> Plainly:
    expected = plainly(log)
    with connect(server.address) as views:
        for board in expected.boards_made():
            assert members(views, board, shards) == expected.members(board)
        for shard in range(shards):
            assert state(views, shard).ready
    return expected


def state(views: Views, shard: int = 0) -> ShardState:
    """How far the live generation of a shard is."""
    live = Generations(views, shard).live()
    return ShardState(log_id="", applied={}, ready=False) if live is None else BoardWriter(views, shard, live).state()


@pytest.mark.parametrize("shards", [1, 3])
def test_what_is_in_the_log_is_on_the_boards_once_whatever_the_shards(
    log: LogServer, server: ViewsServer, shards: int
) -> None:
    random = Random(shards)
    fill(log, random, 40)
    run(job(log.address, server.address, shards=shards), Event())
    expected = require_same(server, log, shards)
    fill(log, random, 10)
    run(job(log.address, server.address, shards=shards), Event())

    assert len(require_same(server, log, shards).counted) > len(expected.counted) > 200


def test_killed_at_any_moment_nothing_counts_twice_and_nothing_is_missed(
    log: LogServer, server: ViewsServer, tmp_path: Path
) -> None:
    random = Random(5)
    for _ in range(6):
        fill(log, random, 25)
        consumer = consumer_process(log, server)
        try:
            time.sleep(random.uniform(0.35, 0.9))
            os.kill(consumer.pid, signal.SIGKILL)
        finally:
            consumer.kill()
            consumer.wait()
    run(job(log.address, server.address), Event())

    require_same(server, log)


def test_two_consumers_at_once_do_each_others_work_and_count_nothing_twice(log: LogServer, server: ViewsServer) -> None:
    random = Random(6)
    fill(log, random, 10)
    run(job(log.address, server.address), Event())
    consumers = [consumer_process(log, server) for _ in range(2)]
    try:
        for _ in range(40):
            fill(log, random, 3)
        until_applied(log, server)
    finally:
        for consumer in consumers:
            consumer.kill()
            consumer.wait()

    require_same(server, log)


def consumer_process(log: LogServer, server: ViewsServer) -> subprocess.Popen[bytes]:
    """A consumer that works until it is killed."""
    command = [sys.executable, "-m", "tests.speed_layer.boards.test_consumer", log.address, server.address]
    return subprocess.Popen(command, cwd=HERE.parents[3])


def until_applied(log: LogServer, server: ViewsServer) -> None:
    deadline = time.monotonic() + 30
    with RedisLog.open(log.address, partitions=PARTITIONS) as opened, connect(server.address) as views:
        ends = {partition.number: end.version for partition, end in opened.end_offsets(Stream.SCORES).items()}
        while {n: at.version for n, at in state(views).applied.items()} != ends:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_lost_views_are_made_again_of_the_log_and_another_number_of_shards_too(
    log: LogServer, server: ViewsServer
) -> None:
    fill(log, Random(7), 20)
    run(job(log.address, server.address), Event())
    with connect(server.address) as views:
        views.client.flushall()
    run(job(log.address, server.address, shards=2), Event())
    require_same(server, log, 2)
    run(job(log.address, server.address, shards=1), Event())

    require_same(server, log)
    with connect(server.address) as views:
        assert views.client.keys("lb:board:{1}:*") == []


def test_what_the_log_has_dropped_comes_from_the_lake(log: LogServer, server: ViewsServer) -> None:
    fill(log, Random(8), 20)
    expected = plainly(log)
    with RedisLog.open(log.address, partitions=PARTITIONS) as opened:
        lake = Lake(iter([("log/0", list(in_the_log(opened)))]), {p.number: e.version for p, e in ends(opened).items()})
        opened.commit_offsets(LAKE_READER, ends(opened))
        for partition in opened.partitions(Stream.SCORES):
            opened.trim(partition)
        with pytest.raises(BoardsBehindLogError, match="dropped scores that the boards lack"):
            run(job(log.address, server.address), Event())
        with connect(server.address) as views:
            assert not state(views).ready
        run(job(log.address, server.address, lake=lake), Event())
        more = [event(player=player, match_id="after", score=7) for player in PLAYERS]
        opened.append(by_partition(opened, more))
        run(job(log.address, server.address, lake=lake), Event())
        for placed in in_the_log_after(opened, lake):
            expected.take(placed)
        with connect(server.address) as views:
            for board in expected.boards_made():
                assert members(views, board, 1) == expected.members(board)
        assert READER in opened.readers()


def ends(log: RedisLog) -> Mapping[Partition, EntryId]:
    return log.end_offsets(Stream.SCORES)


def in_the_log_after(log: RedisLog, lake: Lake) -> Iterator[PlacedEvent]:
    for partition in log.partitions(Stream.SCORES):
        after = EntryId.of_version(lake.positions[partition.number])
        for entry in log.read(partition, after=after, limit=1000).entries:
            yield from placed_events(entry, where="the test")


def test_a_ban_that_ends_by_itself_is_lifted(log: LogServer, server: ViewsServer) -> None:
    with RedisLog.open(log.address, partitions=PARTITIONS) as opened:
        now_us = int(opened.now().timestamp() * 1_000_000)
        score = event(player="a", match_id="1", score=5)
        ban = event(EventKind.BAN, "a", until_us=now_us + 1_500_000)
        opened.append(by_partition(opened, [score, ban]))
    seen: list[list[bytes]] = []
    with connect(server.address) as views:

        def look() -> bool:
            seen.append(members(views, "default|all_time", 1))
            return bool(seen[-1])

        run(job(log.address, server.address, once=False), Stopped(look))

    assert seen[0] == []
    assert len(seen[-1]) == 1


@dataclass
class Stopped:
    """Asks to end once something is seen; looks each time the consumer has nothing to do."""

    seen: Callable[[], bool]
    ended: bool = False
    deadline: float = field(default_factory=lambda: time.monotonic() + 30)

    def is_set(self) -> bool:
        return self.ended

    def wait(self, timeout: float) -> object:
        assert time.monotonic() < self.deadline
        self.ended = self.seen()
        return Event().wait(min(timeout, 0.05))


if __name__ == "__main__":
    run(job(sys.argv[1], sys.argv[2], once=False), Event())
