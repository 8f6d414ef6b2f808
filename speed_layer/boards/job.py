"""What a consumer of boards is given, and how its events are cut into steps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

from domain.boards.certificates import Certificate
from domain.boards.definitions import Boards
from domain.boards.events import PlacedEvent
from domain.errors import LakeboardError
from domain.log import Entry, Partition
from speed_layer.consumer_ports import OpenedLog
from speed_layer.store.connection import Views

EVENTS_A_STEP: Final = 200
_DAY_US: Final = 86_400_000_000


class History(Protocol):
    """What the lake has of boards; `ingest.read_scores.ScoreHistory` is one."""

    @property
    def positions(self) -> Mapping[int, int]:
        """Partition of the log in use -> `EntryId.version` of the last entry that is in it."""

    @property
    def events(self) -> Iterator[tuple[str, Sequence[PlacedEvent]]]:
        """Some events at a time with their source, `<log id>/<partition>`; each player's in the order of the log."""


class Rows(Protocol):
    """Some players of a base; `ingest.read_board_entries.BaseRows` is one."""

    @property
    def players(self) -> Sequence[str]:
        """Ids, those of ranked players in the order of the board."""

    @property
    def entries(self) -> Sequence[bytes]:
        """Of each."""

    @property
    def banned(self) -> bool:
        """Whether they live on out of sight."""


class Base(Protocol):
    """What is certified; `ingest.read_board_entries.CertifiedBase` is one."""

    @property
    def boards(self) -> Sequence[Certificate]:
        """Of those that can still change."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Up to where it has every event, by source."""

    def has(self, board: str, source: str, version: int) -> bool:
        """Say whether what an entry of the log brought is in the base of a board."""

    def rows(self, board: Certificate) -> Iterator[Rows]:
        """Yield all players of a board, the banned ones last; raises when they are not as certified."""


class BoardsBehindLogError(LakeboardError):
    """The log has dropped entries that neither the boards nor the lake have."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"the log has dropped scores that the boards lack ({self.problem}): they are made anew from the lake; if "
            "this stays, the lake is an older copy: docs/runbook.md, boards are not whole"
        )


@dataclass(frozen=True, kw_only=True)
class BoardsJob:
    """What a consumer is to do.

    Attributes:
        open_log: Opens the log; called again after it was away or replaced.
        connect: Opens the views server, the same.
        boards: Definitions.
        shards: Into how many shards players are split, by partition of the log.
        decode: Gives the events of an entry with their positions.
        base: Gives what is certified; None when nothing is.
        history: Gives what the lake has, by the id of the log in use and how far the base has everything.
        partition_of: Gives the partition of a player, of so many.
        say: Told the state, and what it waits for.
        report: Told how far it is, by facts.
        once: Leave when all that is in the log is applied.
    """

    open_log: Callable[[], OpenedLog]
    connect: Callable[[], Views]
    boards: Boards
    shards: int
    decode: Callable[[Entry, Partition], Sequence[PlacedEvent]]
    base: Callable[[], Base | None]
    history: Callable[[str, Mapping[str, int] | None], History]
    partition_of: Callable[[str, int], int]
    say: Callable[[str, str], None]
    report: Callable[[Mapping[str, object]], None]
    once: bool = False


def steps(events: Sequence[PlacedEvent], shard_of: Callable[[PlacedEvent], int]) -> Iterator[Sequence[PlacedEvent]]:
    """Cut events into steps, each of one day of the log, by which the ledger is kept, and of one shard.

    Args:
        events: Each player's in the order of the log.
        shard_of: Gives the shard of an event.
    """
    by_shard: dict[int, list[PlacedEvent]] = {}
    for one in events:
        by_shard.setdefault(shard_of(one), []).append(one)
    for of_shard in by_shard.values():
        for _, of_day in groupby(of_shard, key=lambda one: one.logged_us // _DAY_US):
            found = list(of_day)
            yield from (found[start : start + EVENTS_A_STEP] for start in range(0, len(found), EVENTS_A_STEP))
