"""Whether live counting had to begin without plays that came before: then the views server lost what it had."""

from domain.log import LogUnavailableError, Stream
from domain.windows import milliseconds
from ingest.redis_log import RedisLog
from lakeboard.settings import Settings
from speed_layer.store.connection import connect
from speed_layer.store.leases import ViewsUnavailableError
from speed_layer.store.publishing import Publishing


def incomplete(settings: Settings) -> frozenset[tuple[int, str]]:
    """Return (partition, id of the log in use) of those that lack plays of this log: a restore has them.

    One that has all since the log began is not among them, even when another log came before: no restore adds that.
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
    began_ms = milliseconds(log.created)
    return frozenset((number, log.log_id) for number, status in said.items() if status.complete_from_ms > began_ms)
