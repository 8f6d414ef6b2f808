"""How fast are boards? Scores taken, ranks read, entries moved; beside a plain sorted set in the same server.

A whole stack runs as `lakeboard up` runs it. One board is filled with players as the consumer would have filled it;
then ranks of players at random, a cached top and scores are asked for over HTTP. Beside them, without HTTP, the scripts
are compared with ZADD and ZREVRANK of a plain sorted set, which has no ties by time, no scores beyond 2^53 and no
retries.

  python -m bench.boards --players 1000000
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from bench.ingest_load import INSTALL_WRK, Loaded, has_wrk, loaded_by, wrk_command
from bench.live_stack import Stack, running
from bench.report import WrongResultError, print_line, print_machine, print_table, rate, ratio, say
from domain.boards.definitions import ONE_GAME
from domain.boards.events import NOT_SAID, BoardEvent, EventKind, PlacedEvent, Position
from domain.boards.sort_key import Mode, sort_key
from lakeboard.stack.servers import address, socket_path
from speed_layer.boards.deciding import decide, touched
from speed_layer.store.boards.generations import Generations
from speed_layer.store.boards.keys import OVERLAY_BUCKETS, bucket_hash, of_generation, of_shard
from speed_layer.store.boards.reading_scripts import LOOK
from speed_layer.store.boards.writer import WHOLE, Applied, BoardWriter, day_of
from speed_layer.store.connection import Views, connect

PLAYERS = 1_000_000
SECONDS = 6.0
_BOARD = "default|all_time"
_PLAIN = "bench:plain"
_CHUNK = 500
_CALLS = 20_000
_Thing = TypeVar("_Thing")
_REACHED_US = 1_790_000_000_000_000


def run(players: int, seconds: float) -> None:
    """Fill, measure, print the tables."""
    with running() as stack:
        views_address = address(socket_path(Path(stack.home) / "run", "views"))
        with connect(views_address) as views:
            _first_score(stack)
            grown = _fill(views, players)
            rows = _over_http(stack, players, seconds) if has_wrk() else []
            beside = [*_ranks_beside(views, players), *_updates_beside(views, players)]
    if rows:
        print_table(
            f"Boards over HTTP, {players:,} players, one API worker; all of it on this machine",
            ["what", "connections", "a second", "p50 ms", "p99 ms", "other answers", "wanted"],
            rows,
        )
    else:
        print_line(f"\nOver HTTP: left out, that needs wrk ({INSTALL_WRK}).")
    print_table(
        f"Without HTTP, {players:,} players, in pipelines of {_CHUNK}",
        ["what", "a second", "of a plain sorted set", "boards / it"],
        beside,
        remark=f"The board takes {grown[0] / players:,.0f} bytes a player as an overlay, the plain sorted set "
        f"{grown[1] / players:,.0f}.",
    )


def _first_score(stack: Stack) -> None:
    """Send a score, so that the boards are there."""
    with stack.client() as client:
        deadline = time.monotonic() + 30
        while client.post("/scores", json={"match_id": "first", "player_id": "first", "score": 1}).status_code != 200:  # noqa: PLR2004
            if time.monotonic() > deadline:
                what = "the answer to a score"
                raise WrongResultError(what, expected="200 within 30 s", found="none")
            time.sleep(0.2)


def _made(players: int) -> Iterator[tuple[str, int]]:
    dice = random.Random(1)
    return ((f"player-{number:08d}", dice.randrange(2_000_000)) for number in range(players))


def _fill(views: Views, players: int) -> tuple[int, int]:
    """Put players on the board and into a plain sorted set; return the bytes that each takes."""
    say(f"boards: {players:,} players on one board")
    key = of_generation(0, _live(views), f"{_BOARD}:0:")
    sizes = [_used(views)]
    for plain in (False, True):
        made = _made(players)
        while some := list(islice(made, 10_000)):
            pipeline = views.client.pipeline(transaction=False)
            if plain:
                pipeline.zadd(_PLAIN, dict(some))
            for player, score in () if plain else some:
                entry = sort_key(Mode.BEST_HIGH, score, _REACHED_US)
                pipeline.hset(f"{key}o:{bucket_hash(player) % OVERLAY_BUCKETS}", player, entry)
                pipeline.zadd(f"{key}over", {entry + player.encode(): 0})
            pipeline.execute()
        sizes.append(_used(views))
    return sizes[1] - sizes[0], sizes[2] - sizes[1]


def _used(views: Views) -> int:
    return int(views.client.info("memory")["used_memory"])


def _over_http(stack: Stack, players: int, seconds: float) -> list[Sequence[str]]:
    ranks = f"{stack.url}/boards/all_time/players/"
    rows = []
    for name, query, wanted in (
        ("rank of any player", "?around=0", "8,000/s, p99 30 ms"),
        ("rank and 5 neighbours on each side", "?around=5", ""),
    ):
        say(f"boards: {name}")
        command = wrk_command("ranks.lua", ranks, stack.key, players, query, connections=32, seconds=seconds)
        rows.append(_row(name, 32, loaded_by(command, seconds), 1, wanted))
    say("boards: cached top")
    command = wrk_command("reads.lua", f"{stack.url}/boards/all_time/top", stack.key, connections=32, seconds=seconds)
    rows.append(_row("cached top 10", 32, loaded_by(command, seconds), 1, "20,000/s, p99 5 ms"))
    for size, connections, wanted in ((1, 32, "2,500/s"), (100, 8, "5,800/s")):
        say(f"boards: scores, {size} a request")
        command = wrk_command("scores.lua", f"{stack.url}/scores", stack.key, players, size, f"run{size}",
                              connections=connections, seconds=seconds)  # fmt: skip
        name = "scores, durable and ranked in 4 boards" + (f", arrays of {size}" if size > 1 else "")
        rows.append(_row(name, connections, loaded_by(command, seconds), size, wanted))
    return rows


def _row(name: str, connections: int, one: Loaded, events: int, wanted: str) -> Sequence[str]:
    return [name, f"{connections}", rate(events * one.requests, one.seconds), f"{one.p50_ms:.2f}", f"{one.p99_ms:.2f}",
            f"{one.refused + one.broken}", wanted]  # fmt: skip


def _ranks_beside(views: Views, players: int) -> list[Sequence[str]]:
    say("boards: ranks by script and by ZREVRANK")
    look = views.client.register_script(LOOK)
    look(keys=[of_shard(0, "live")], args=[of_shard(0), _BOARD, "", 0, "", 0, 0])
    dice = random.Random(2)
    names = [f"player-{dice.randrange(players):08d}" for _ in range(_CALLS)]

    def by_script(some: Sequence[str]) -> None:
        pipeline = views.client.pipeline(transaction=False)
        for name in some:
            pipeline.evalsha(
                look.sha, 1, of_shard(0, "live"), of_shard(0), _BOARD, name, str(bucket_hash(name)), "", "0", "0", "0"
            )
        pipeline.execute()

    def plainly(some: Sequence[str]) -> None:
        pipeline = views.client.pipeline(transaction=False)
        for name in some:
            pipeline.zrevrank(_PLAIN, name)
        pipeline.execute()

    mine, plain = _seconds(by_script, names), _seconds(plainly, names)
    return [["rank of a player", rate(_CALLS, mine), rate(_CALLS, plain), ratio(plain, mine)]]


def _updates_beside(views: Views, players: int) -> list[Sequence[str]]:
    """Decide and apply scores as the consumer does, on four boards each; beside ZADD GT on four plain sets."""
    say("boards: scores decided and applied, and ZADD")
    writer, dice = BoardWriter(views, 1, 1), random.Random(3)
    writer.begin("bench", partitions=1)
    writer.state()
    at: Applied | None = None
    events = [
        BoardEvent(EventKind.SCORE, "default", f"player-{dice.randrange(players):08d}", f"m{number}",
                   dice.randrange(2_000_000), NOT_SAID, number, "", NOT_SAID)
        for number in range(_CALLS)
    ]  # fmt: skip
    began = time.perf_counter()
    for version, start in enumerate(range(0, _CALLS, 200)):
        placed = [
            PlacedEvent(Position(version, n), _REACHED_US, one) for n, one in enumerate(events[start : start + 200])
        ]
        day, after = day_of(placed), Applied(version, WHOLE, version - 1)
        changes = decide(ONE_GAME, writer.known(touched(ONE_GAME, placed), day=day), placed)
        writer.apply("bench", 0, changes, before=at, after=after, as_of_ms=0, day=day)
        at = after
    mine = time.perf_counter() - began

    def plainly(some: Sequence[BoardEvent]) -> None:
        pipeline = views.client.pipeline(transaction=False)
        for one in some:
            for board in range(4):
                pipeline.zadd(f"bench:{board}", {one.player_id: one.score}, gt=True)
        pipeline.execute()

    plain = _seconds(plainly, events)
    return [["scores decided and applied, 4 boards, matches once", rate(_CALLS, mine), rate(_CALLS, plain),
             ratio(plain, mine)]]  # fmt: skip


def _seconds(work: Callable[[Sequence[_Thing]], None], things: Sequence[_Thing]) -> float:
    began = time.perf_counter()
    for start in range(0, len(things), _CHUNK):
        work(things[start : start + _CHUNK])
    return time.perf_counter() - began


def _live(views: Views) -> int:
    live = Generations(views, 0).live()
    if live is None:
        what = "the live generation"
        raise WrongResultError(what, expected="a number", found="none")
    return live


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", type=int, default=PLAYERS, help=f"on the board (default: {PLAYERS:,})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load")
    arguments = parser.parse_args(argv)
    print_machine()
    run(arguments.players, arguments.seconds)


if __name__ == "__main__":
    main()
