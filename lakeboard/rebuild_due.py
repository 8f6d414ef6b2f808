"""Whether boards are to be rebuilt now: by what the lake has read, and by how large live boards are."""

from datetime import datetime
from pathlib import Path

from domain.board_tables import SCORES
from domain.boards.certificates import Certified
from domain.boards.compaction import last_turn, needs_compaction
from domain.boards.definitions import Boards
from ingest.delta_log import newest_version
from ingest.lake_writer import log_read_to
from ingest.read_certificates import certificates
from ingest.read_files import LakeFiles
from lakeboard.settings import Settings
from speed_layer.store.boards.sizes import board_sizes
from speed_layer.store.connection import ViewsUnavailableError, connect


def rebuild_due(settings: Settings) -> str:
    """Return why boards are to be rebuilt, for people; empty = they are not.

    Once a day, when the lake has every score up to midnight UTC and the grace after it: then periods that ended are
    archived, late scores and removals counted. And when a live board has become large.

    Raises:
        LakeUnreadableError: the lake cannot be read.
    """
    lake_root, boards = settings.lake_root.absolute(), settings.boards()
    return _day_is_over(lake_root, boards) or _is_large(settings)


def _day_is_over(lake_root: Path, boards: Boards) -> str:
    version = newest_version(lake_root / SCORES.name)
    turn = last_turn(log_read_to(lake_root, version, SCORES).values(), boards) if version >= 0 else None
    if turn is None:
        return ""
    certified = Certified.newest(certificates(lake_root))
    if certified is None:
        read_to = _first_score(lake_root)
        if not read_to:
            return ""
    else:
        read_to = list(log_read_to(lake_root, certified.whole.scores_version, SCORES).values())
    counted = last_turn(read_to, boards)
    return f"the day before {turn:%Y-%m-%d} is over" if counted is None or counted < turn else ""


def _first_score(lake_root: Path) -> list[datetime]:
    with LakeFiles(lake_root) as files:
        ((first,),) = files.rows(f"SELECT min(ingested_at) FROM {files.pin(SCORES).scan()}")  # noqa: S608
    return [] if first is None else [first]


def _is_large(settings: Settings) -> str:
    try:
        with connect(settings.views_address) as views:
            sizes = board_sizes(views)
    except ViewsUnavailableError:
        return ""
    large = [name for name, size in sizes.items() if needs_compaction(size.base, size.overlay)]
    return f"{large[0]} has {sizes[large[0]].overlay:,} players that changed" if large else ""
