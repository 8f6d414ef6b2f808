"""The frontier: the exclusive end of what batch may certify."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from domain.policy import Policy
from domain.position import LOG_IN_USE, READ_TO
from domain.windows import EPOCH, floor_hour


def log_in_use(transactions: Mapping[str, int]) -> str | None:
    """Return the id of the log that the lake writer read last, None before it read any.

    Args:
        transactions: Of `bronze/plays`: `log_in_use/<log id>` counts the changes from one log to another.
    """
    changes = {app.removeprefix(LOG_IN_USE): n for app, n in transactions.items() if app.startswith(LOG_IN_USE)}
    return max(changes, key=changes.__getitem__, default=None)


def read_to_of_log(transactions: Mapping[str, int]) -> dict[str, datetime]:
    """Return per partition of the log in use up to when bronze holds all of its entries (UTC, exclusive).

    A log that was replaced can bring nothing any more, and would hold the frontier for ever: it is left out from the
    first commit under its successor on. That commit has a value for each partition of the successor, the beginning of
    time where one was not read to its end, so nothing is certified before the new log was read.

    Args:
        transactions: Of `bronze/plays`: `read_to/<log id>/<partition>` in milliseconds since 1970 UTC.
    """
    prefix = f"{READ_TO}{log_in_use(transactions)}/"
    return {app: EPOCH + timedelta(milliseconds=ms) for app, ms in transactions.items() if app.startswith(prefix)}


def certifiable_end(read_to: Iterable[datetime], now: datetime, policy: Policy) -> datetime:
    """Return the start of the first hour that may not be certified yet.

    Args:
        read_to: Per log partition, the log's own time before a read that reached the partition's end. Imports
            have none: they never hold the frontier back.
        now: The present moment; the only bound where no log was ever read.
        policy: Gives the grace after an hour's end.
    """
    return floor_hour(min([*read_to, now]) - policy.grace)
