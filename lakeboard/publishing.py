"""Handing over from batch to live charts: the newest release becomes the view that they join with. No JVM."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.log import LogUnavailableError
from domain.speed_policy import DEFAULT_SPEED_POLICY
from domain.windows import HOUR
from ingest.lake_reader import LakeReader
from ingest.read_batch_view import ReleaseBehindLogError, ViewLimits, batch_view, hand_over
from ingest.read_releases import NothingCountedError
from ingest.redis_log import RedisLog
from ingest.table_lock import locked
from lakeboard.settings import Settings
from speed_layer.store.connection import ViewsUnavailableError, connect
from speed_layer.store.view_codec import ViewMeta
from speed_layer.store.views import ViewStore

LOCK = "live views"
LONG_BEHIND = DEFAULT_SPEED_POLICY.hours_kept * HOUR  # live buckets reach no further back


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was published, or is in force already.

    Attributes:
        version: Name of the view.
        release: Number of the release.
        frontier: Exclusive end of what it certifies, UTC.
        regions: How many regions are in it, `*` among them.
        items: How many different items they list.
        is_new: Whether this run put it in force.
        behind: How far the frontier lay behind the present moment.
    """

    version: str
    release: int
    frontier: datetime
    regions: int
    items: int
    is_new: bool
    behind: timedelta


def publish(
    settings: Settings,
    *,
    back: bool = False,
    on_step: Callable[[str], None] = lambda step: None,
    on_wait: Callable[[str, str], None] | None = None,
) -> Published:
    """Put the view of the newest release in force. Running twice is the same as running once.

    Args:
        settings: Where the lake and the servers are.
        back: The view may lie behind the one in force.
        on_step: Told the name of each step as it begins.
        on_wait: Told (what, holder) when another process publishes.

    Raises:
        NothingCountedError: the lake has no release.
        ReleaseBehindLogError: the release has not read the log in use far enough.
        ViewWentBackError: it lies behind what is in force.
        ViewsUnavailableError: the views server does not answer.
    """
    lake_root = settings.lake_root.absolute()
    with connect(settings.views_address) as views, LakeReader(lake_root) as reader:
        store = ViewStore(views)
        on_step("find the newest release")
        of = hand_over(reader, policy=settings.policy, log_id=log_in_force(settings))
        with locked(lake_root, LOCK, on_wait=on_wait):
            found = store.in_force(of.release.release, of.release.frontier, of.log_id)
            if found is not None:
                return _published(found, is_new=False, now=settings.clock())
            view = batch_view(reader, of, limits=ViewLimits(regions=settings.live_regions), on_step=on_step)
            on_step("publish")
            return _published(store.write(view, back=back), is_new=True, now=settings.clock())


def is_unpublished(settings: Settings) -> bool:
    """Say whether the newest release could take over from live counting and is not the view in force.

    No while a server is away, before the first release, and while that one has not read the log far enough.
    """
    try:
        with connect(settings.views_address) as views, LakeReader(settings.lake_root.absolute()) as reader:
            of = hand_over(reader, policy=settings.policy, log_id=log_in_force(settings))
            return ViewStore(views).in_force(of.release.release, of.release.frontier, of.log_id) is None
    except (NothingCountedError, ReleaseBehindLogError, ViewsUnavailableError):
        return False


def log_in_force(settings: Settings) -> str | None:
    """Return the id of the event log that live counting reads; None when its server does not answer."""
    try:
        with RedisLog.open(settings.log_address, clock=settings.entry_clock) as log:
            return log.log_id
    except LogUnavailableError:
        return None


def _published(meta: ViewMeta, *, is_new: bool, now: datetime) -> Published:
    return Published(
        version=meta.version,
        release=meta.release,
        frontier=meta.frontier,
        regions=meta.regions,
        items=meta.items,
        is_new=is_new,
        behind=now - meta.frontier,
    )
