"""The frontier: the exclusive end of what batch may certify."""

from collections.abc import Iterable
from datetime import datetime

from domain.policy import Policy
from domain.windows import floor_hour


def certifiable_end(read_to: Iterable[datetime], now: datetime, policy: Policy) -> datetime:
    """Return the start of the first hour that may not be certified yet.

    Args:
        read_to: Per log partition, the log's own time before a read that reached the partition's end. Imports
            have none: they never hold the frontier back.
        now: The present moment; the only bound where no log was ever read.
        policy: Gives the grace after an hour's end.
    """
    return floor_hour(min([*read_to, now]) - policy.grace)
