"""Scores that are in the log: where, in which periods, and whether they are the ones that count."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.boards.definitions import LIVE_WINDOW, board_name
from domain.boards.events import NOT_SAID, BoardEvent
from domain.boards.ledger import LedgerRow
from domain.log import EntryId
from domain.periods import Period, PeriodKind
from domain.windows import EPOCH
from ingest.log_kinds import Appended
from speed_layer.boards.deciding import match_of
from speed_layer.store.boards.reader import Asked

_US = timedelta(microseconds=1)
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Taken:
    """A score that is in the log."""

    event: BoardEvent
    version: int
    number: int
    logged_us: int
    partition: int

    @property
    def ended(self) -> datetime:
        """When its match ended, UTC."""
        return EPOCH + (self.logged_us if self.event.ended_us == NOT_SAID else self.event.ended_us) * _US

    @property
    def is_late(self) -> bool:
        """Whether batch alone counts it."""
        return self.ended < EPOCH + self.logged_us * _US - LIVE_WINDOW


def asked_of(taken: Taken, periods: Sequence[Period]) -> Asked:
    """Return what the store is asked of a score."""
    boards = [board_name(taken.event.game, period.key) for period in periods]
    return Asked(match_of(taken.event), taken.logged_us // _DAY_US, boards)


def short_name(period: Period) -> str:
    """Return a board's name in answers: of a season all of it."""
    return period.key if period.kind is PeriodKind.SEASON else period.kind.value


def is_same(row: LedgerRow, taken: Taken) -> bool:
    """Say whether a score is the one that counts of its match, or says the same."""
    return row.fingerprint == taken.event.fingerprint or row.position == (taken.version, taken.number)


def ends_of(taken: Sequence[Taken]) -> Sequence[Appended]:
    """Return up to where partitions must be applied."""
    last = {one.partition: one for one in taken}
    return [Appended(one.partition, EntryId.of_version(one.version), 0, one.number + 1) for one in last.values()]
