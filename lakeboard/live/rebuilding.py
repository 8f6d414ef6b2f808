"""Rebuilding boards: counted again by Spark and certified, filled beside the live ones, put in their place.

Readers notice nothing: the live boards go on until the new ones are no less far, and the change is one step a shard.
Killed anywhere, the live boards stay; what was filled is dropped by the next rebuild.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from typing import Final

from domain.boards.archives import Archive
from domain.boards.certificates import Certificate
from domain.errors import BadRequestError, LakeboardError
from domain.log import EntryId, Stream
from ingest.board_archiver import ArchiveRequest, archive
from ingest.redis_log import RedisLog
from ingest.table_lock import locked
from lakeboard.live.boards import boards_job
from lakeboard.publishing import log_in_force
from lakeboard.settings import Settings
from speed_layer.boards.building import build, source_of
from speed_layer.boards.job import Base, BoardsJob
from speed_layer.store.boards.generations import Generations
from speed_layer.store.boards.writer import BoardWriter
from speed_layer.store.connection import Views, connect

LOCK: Final = "boards"
PIN: Final = "boards_rebuild"  # holds back what the log drops, until the new boards have read it
BYTES_A_PLAYER: Final = 100  # of a base, with its map; measured in bench/boards.py
_PINNED = timedelta(hours=2)
_PATIENCE_SECONDS = 60.0  # without anybody taking the new boards up
_LOOK_SECONDS = 0.1


class NoRoomError(LakeboardError):
    """The views server cannot hold the new boards beside the live ones."""

    def __init__(self, needed: int, free: int) -> None:
        super().__init__(needed, free)
        self.needed = needed
        self.free = free

    def __str__(self) -> str:
        return (
            f"the new boards need about {self.needed / 1e6:,.0f} MB beside the live ones, and the views server has "
            f"{self.free / 1e6:,.0f} MB left: they are certified in the lake, and nothing live was changed; raise "
            "views_max_memory, start `lakeboard up` again, then run this again"
        )


class NotTakenUpError(LakeboardError):
    """No consumer put the new boards in place."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return (
            f"the new boards are certified in the lake and not live: {self.why}; see that `lakeboard boards`, a part "
            "of `lakeboard up`, runs, then run again"
        )


class NoBoardError(BadRequestError):
    """There is no such game, or no such board of it."""

    def __init__(self, game: str, board: str) -> None:
        super().__init__(game, board)
        self.game = game
        self.board = board

    def __str__(self) -> str:
        return (
            f"{self.game} has no board {self.board}: boards.toml lists games and periods, and a board is named as "
            "all_time, daily (the present one) or daily:2026-11-14"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild did.

    Attributes:
        certificates: That it made.
        archived: Boards of periods that ended, which were archived now.
        is_live: Whether the boards of the views server are made of it.
        seconds: Of Spark, of filling, and until they were live.
    """

    certificates: Sequence[Certificate]
    archived: Sequence[Archive]
    is_live: bool
    seconds: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What to rebuild.

    Attributes:
        only: Game and board; None = all.
        force: Whether boards may lose players.
        lake_only: Certify, and leave the views server as it is.
    """

    only: tuple[str, str] | None = None
    force: bool = False
    lake_only: bool = False


def rebuild(
    settings: Settings,
    wish: Wish,
    *,
    on_step: Callable[[str], None] = lambda step: None,
    on_wait: Callable[[str, str], None] | None = None,
    on_detail: Callable[[str], None] = lambda text: None,
) -> Rebuilt:
    """Rebuild boards.

    Args:
        settings: Where lake and servers are, and what is ranked.
        wish: What to rebuild.
        on_step: Told the name of each step as it begins.
        on_wait: Told (what, holder) when another process rebuilds.
        on_detail: Told how far a step is.

    Raises:
        NoBoardError: there is no such board.
        NoScoresError, BoardShrankError: nothing was changed.
        NoRoomError, NotTakenUpError: certified, and nothing live was changed.
        LogUnavailableError, ViewsUnavailableError: the same, a server is away.
    """
    only = None if wish.only is None else _named(settings, *wish.only)
    with locked(settings.lake_root.absolute(), LOCK, on_wait=on_wait):
        began = time.monotonic()
        certificates = _certified(settings, only, wish, on_step=on_step, on_wait=on_wait)
        seconds = {"spark": time.monotonic() - began}
        on_step("archive")
        archived = archive(
            ArchiveRequest(lake_root=settings.lake_root.absolute(), boards=settings.boards(), clock=settings.clock,
                           code_version=version("lakeboard")),
            on_wait=on_wait,
        )  # fmt: skip
        if not wish.lake_only:
            seconds |= _live(settings, on_step, on_detail)
    return Rebuilt(certificates=certificates, archived=archived, is_live=not wish.lake_only, seconds=seconds)


def _named(settings: Settings, game: str, board: str) -> tuple[str, str]:
    found = settings.boards().games.get(game)
    period = None if found is None else found.period(board, settings.clock())
    if period is None:
        raise NoBoardError(game, board)
    return game, period.key


def _certified(
    settings: Settings,
    only: tuple[str, str] | None,
    wish: Wish,
    *,
    on_step: Callable[[str], None],
    on_wait: Callable[[str, str], None] | None,
) -> Sequence[Certificate]:
    from jobs.rebuild_boards import RebuildRequest, run  # noqa: PLC0415  loads pyspark, which refusals do without
    from lakeboard.batch import started_spark  # noqa: PLC0415

    request = RebuildRequest(
        lake_root=settings.lake_root.absolute(),
        boards=settings.boards(),
        clock=settings.clock,
        code_version=version("lakeboard"),
        log_id=log_in_force(settings),
        only=only,
        force=wish.force,
    )
    on_step("start Spark")
    with started_spark(settings, "rebuild-board") as spark:
        return run(spark, request, on_step=on_step, on_wait=on_wait)


def _live(settings: Settings, on_step: Callable[[str], None], on_detail: Callable[[str], None]) -> dict[str, float]:
    """Fill new generations and have the consumer put them in place; return how long both took."""

    def report(facts: Mapping[str, object]) -> None:
        on_detail(", ".join(f"{name.replace('_', ' ')}: {fact}" for name, fact in facts.items()))

    job = boards_job(settings, say=lambda *_: None, report=report)
    began = time.monotonic()
    with RedisLog.open(settings.log_address, clock=settings.entry_clock) as log, ExitStack() as at_end:
        views = at_end.enter_context(connect(settings.views_address))
        on_step("fill new boards")
        _require_room(views, job.base())
        log.commit_offsets(PIN, {}, lease=_PINNED, only=Stream.SCORES)
        at_end.callback(log.remove_reader, PIN)
        made = fill(job, log, views)
        filled = time.monotonic()
        on_step("put them in place")
        _put_in_place(views, made)
    return {"fill": filled - began, "put in place": time.monotonic() - filled}


def fill(job: BoardsJob, log: RedisLog, views: Views) -> Mapping[int, int]:
    """Fill a new generation of each shard and offer it; return their numbers by shard.

    Args:
        job: Gives base and history; told how far it is.
        log: The caller holds it, so that it drops nothing meanwhile; it is held at what the new ones need next.
        views: The server.
    """
    partitions = log.partitions(Stream.SCORES)
    generations = [Generations(views, shard) for shard in range(job.shards)]
    for one in generations:
        one.withdraw()
        for left in one.others():  # of a rebuild that was killed
            list(one.forget(left))
    writers = [BoardWriter(views, one.shard, one.make()) for one in generations]
    for writer in writers:
        writer.begin(source_of(job, log.log_id), partitions=len(partitions))
    applied = build(job, writers, log.log_id, len(partitions))
    offsets = {one: EntryId.of_version(applied[one.number].read_after) for one in partitions if one.number in applied}
    log.commit_offsets(PIN, offsets, lease=_PINNED, only=Stream.SCORES)
    for one, writer in zip(generations, writers, strict=True):
        one.offer(writer.generation)
    return {writer.shard: writer.generation for writer in writers}


def _put_in_place(views: Views, made: Mapping[int, int]) -> None:
    """Wait until the consumer has swapped all shards, as long as it goes on."""
    seen, changed = None, time.monotonic()
    while waiting := [shard for shard, number in made.items() if Generations(views, shard).live() != number]:
        withdrawn = [shard for shard in waiting if Generations(views, shard).next() != made[shard]]
        if any(Generations(views, shard).live() != made[shard] for shard in withdrawn):
            why = "the consumer has turned them down, as the log or the boards were replaced meanwhile"
            raise NotTakenUpError(why)
        now = [BoardWriter(views, shard, made[shard]).state() for shard in waiting]
        if now != seen:
            seen, changed = now, time.monotonic()
        elif time.monotonic() - changed > _PATIENCE_SECONDS:
            for shard in waiting:
                Generations(views, shard).withdraw()
            why = f"nobody took them up within {_PATIENCE_SECONDS:.0f} s"
            raise NotTakenUpError(why)
        time.sleep(_LOOK_SECONDS)


def _require_room(views: Views, base: Base | None) -> None:
    needed = sum(board.players + board.banned for board in base.boards) * BYTES_A_PLAYER if base is not None else 0
    free = views.free_bytes()
    if free is not None and needed > free:
        raise NoRoomError(needed, free)
