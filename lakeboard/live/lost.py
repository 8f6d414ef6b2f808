"""Whether live counting had to begin without plays that came before: then the views server lost what it had."""

from domain.log import LogUnavailableError, Stream
from ingest.redis_log import RedisLog
from lakeboard.settings import Settings
from speed_layer.store.connection import connect
from speed_layer.store.leases import ViewsUnavailableError
from speed_layer.store.publishing import Publishing


def incomplete(settings: Settings) -> frozenset[tuple[int, int]]:
    """Return (partition, log time in milliseconds since 1970 UTC) of those that are complete only from then on.

    Empty while a server is away: it is looked at again.
    """
    try:
        with RedisLog.open(settings.log_address, clock=settings.entry_clock) as log:
            numbers = [partition.number for partition in log.partitions(Stream.PLAYS)]
        with connect(settings.views_address) as views:
            found = Publishing(views).read_statuses(numbers)
    except (LogUnavailableError, ViewsUnavailableError):
        return frozenset()
    said = {number: status for number, status in found.items() if status is not None and status.log_id == log.log_id}
    return frozenset((number, s.complete_from_ms) for number, s in said.items() if s.complete_from_ms)
