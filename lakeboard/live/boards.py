"""Boards put together: what their consumer and a rebuild are given."""

from collections.abc import Callable, Mapping
from functools import partial

from ingest.hashing import partition_number
from ingest.read_board_entries import certified_base
from ingest.read_scores import score_history
from ingest.redis_log import RedisLog
from ingest.score_entry import placed_events
from lakeboard.settings import Settings
from speed_layer.boards.job import BoardsJob
from speed_layer.store.connection import connect


def boards_job(
    settings: Settings,
    *,
    say: Callable[[str, str], None],
    report: Callable[[Mapping[str, object]], None],
    log_address: str | None = None,
    views_address: str | None = None,
    once: bool = False,
) -> BoardsJob:
    """Return what there is to do, by the settings.

    Args:
        settings: Where lake and servers are, and what is ranked.
        say: Told the state, and what it waits for.
        report: Told how far it is, by facts.
        log_address: Another log than that of the settings.
        views_address: Another views server.
        once: Leave when all that is in the log is applied.

    Raises:
        InvalidBoardsError: boards.toml says something that cannot be.
    """
    boards, lake_root = settings.boards(), settings.lake_root.absolute()
    return BoardsJob(
        open_log=partial(RedisLog.open, log_address or settings.log_address, clock=settings.entry_clock),
        connect=partial(connect, views_address or settings.views_address),
        boards=boards,
        shards=settings.board_shards,
        decode=lambda entry, partition: placed_events(entry, where=f"{entry.id} of partition {partition}"),
        base=lambda: certified_base(lake_root, boards, settings.clock()),
        history=partial(score_history, lake_root),
        partition_of=partition_number,
        say=say,
        report=report,
        once=once,
    )
