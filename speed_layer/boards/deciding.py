"""What a batch of events does to the boards of a shard: decided here from what is known, moved by the store.

Pure: the same events after the same knowledge end in the same changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from domain.boards.definitions import LIVE_WINDOW, Boards, Game, board_name
from domain.boards.entries import entry_after
from domain.boards.events import NOT_SAID, BoardEvent, EventKind, PlacedEvent, Position
from domain.boards.ledger import LedgerRow, Match, MatchState
from domain.windows import EPOCH

_US = timedelta(microseconds=1)
_WINDOW_US = LIVE_WINDOW // _US
InBase = Callable[[str, Position], bool]


class Outcome(StrEnum):
    """What became of an event; they are counted in the metrics."""

    COUNTED = "counted"
    HELD = "held"
    REPEATED = "repeated"
    CONFLICT = "conflict"
    LATE = "late"  # its match ended before the live window: batch counts it
    UNKNOWN_GAME = "unknown_game"
    OBEYED = "obeyed"  # a ban, restore or approval
    FOR_BATCH = "for_batch"  # a removal


class Listed(NamedTuple):
    """A player on a board, or not.

    Attributes:
        board: `<game>|<period key>`.
        player_id: Who.
    """

    board: str
    player_id: str


class HeldScore(NamedTuple):
    """A score that waits for approval."""

    score: int
    ended_us: int


@dataclass
class Known:
    """What the store has of all that a batch touches. What is missing in a mapping is not there.

    Attributes:
        entries: On boards.
        shadows: Entries of banned players, which live on out of sight.
        ledger: Of matches, within the live window.
        held: Scores of held matches.
        bans: Of players: when it ends, microseconds since 1970 UTC, `NOT_SAID` = never by itself.
        boards: All boards of the shard.
    """

    entries: dict[Listed, bytes] = field(default_factory=dict)
    shadows: dict[Listed, bytes] = field(default_factory=dict)
    ledger: dict[Match, LedgerRow] = field(default_factory=dict)
    held: dict[Match, HeldScore] = field(default_factory=dict)
    bans: dict[str, int] = field(default_factory=dict)
    boards: Sequence[str] = ()


@dataclass
class Changes:
    """What is different afterwards; None = gone."""

    entries: dict[Listed, bytes | None] = field(default_factory=dict)
    shadows: dict[Listed, bytes | None] = field(default_factory=dict)
    ledger: dict[Match, LedgerRow] = field(default_factory=dict)
    held: dict[Match, HeldScore | None] = field(default_factory=dict)
    bans: dict[str, int | None] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)


@dataclass(frozen=True)
class Touched:
    """What a batch may look at or change.

    Attributes:
        listed: Entries, and shadows of the same.
        matches: Rows of the ledger, and held scores.
        players: Their bans.
        everywhere: Players whose entries on all boards matter.
    """

    listed: frozenset[Listed]
    matches: frozenset[Match]
    players: frozenset[str]
    everywhere: frozenset[str]


def match_of(event: BoardEvent) -> Match:
    """Return the match that an event is about."""
    return Match(event.game, event.match_id, event.player_id)


def touched(boards: Boards, events: Sequence[PlacedEvent]) -> Touched:
    """Return what has to be known to decide on events; of held scores that are approved, more may be needed."""
    listed: set[Listed] = set()
    for placed in events:
        game = boards.games.get(placed.event.game)
        if placed.event.kind is EventKind.SCORE and game is not None:
            listed.update(_listed(game, placed.event.player_id, placed.ended_us))
    of_kind = {kind: [one.event for one in events if one.event.kind is kind] for kind in EventKind}
    return Touched(
        listed=frozenset(listed),
        matches=frozenset(match_of(one) for kind in (EventKind.SCORE, EventKind.APPROVE) for one in of_kind[kind]),
        players=frozenset(one.event.player_id for one in events),
        everywhere=frozenset(
            one.player_id for kind in (EventKind.BAN, EventKind.RESTORE, EventKind.APPROVE) for one in of_kind[kind]
        ),
    )


def nowhere(board: str, position: Position) -> bool:
    """Say that no board has a base that an event is in."""
    del board, position
    return False


def decide(boards: Boards, known: Known, events: Sequence[PlacedEvent], *, in_base: InBase = nowhere) -> Changes:
    """Return what events change.

    Args:
        boards: Definitions.
        known: All of `touched`, as of before the first event; it is changed.
        events: Of one partition, in the order of the log.
        in_base: Whether the base of a board has what an event there brought: then it is remembered, not counted.
    """
    deciding = _Deciding(boards, known, in_base)
    for placed in events:
        deciding.changes.outcomes.append(deciding.take(placed))
    return deciding.changes


def lift(boards: Boards, known: Known, players: Sequence[str]) -> Changes:
    """Return what changes as the bans of players end by themselves."""
    deciding = _Deciding(boards, known)
    for player_id in players:
        deciding.restore(player_id)
    return deciding.changes


def is_over(until_us: int, now_us: int) -> bool:
    """Say whether a ban has ended by itself."""
    return until_us != NOT_SAID and until_us <= now_us


@dataclass
class _Deciding:
    boards: Boards
    known: Known
    in_base: InBase = nowhere
    changes: Changes = field(default_factory=Changes)

    def take(self, placed: PlacedEvent) -> Outcome:
        match placed.event.kind:
            case EventKind.SCORE:
                return self._score(placed)
            case EventKind.BAN:
                return self._ban(placed)
            case EventKind.RESTORE:
                self.restore(placed.event.player_id)
                return Outcome.OBEYED
            case EventKind.APPROVE:
                return self._approve(placed)
            case EventKind.REMOVE:
                return Outcome.FOR_BATCH

    def restore(self, player_id: str) -> None:
        """Put the entries of a player back where they are by now."""
        if self.known.bans.pop(player_id, None) is None:
            return
        self.changes.bans[player_id] = None
        for listed in [one for one in self.known.shadows if one.player_id == player_id]:
            self._set(listed, self.known.shadows.pop(listed))
            self.changes.shadows[listed] = None

    def _score(self, placed: PlacedEvent) -> Outcome:
        event, ended_us = placed.event, placed.ended_us
        game = self.boards.games.get(event.game)
        if game is None:
            return Outcome.UNKNOWN_GAME
        match = match_of(event)
        first = self.known.ledger.get(match)
        if first is not None:
            return Outcome.REPEATED if first.fingerprint == event.fingerprint else Outcome.CONFLICT
        if ended_us < placed.logged_us - _WINDOW_US:
            self._note(match, LedgerRow(placed.position, event.fingerprint, MatchState.LATE))
            return Outcome.LATE
        state = MatchState.HELD if game.is_held(event.score) else MatchState.COUNTED
        self._note(match, LedgerRow(placed.position, event.fingerprint, state))
        if state is MatchState.HELD:
            self.known.held[match] = self.changes.held[match] = HeldScore(event.score, ended_us)
            return Outcome.HELD
        self._count(game, event.player_id, event.score, ended_us, placed.position)
        return Outcome.COUNTED

    def _approve(self, placed: PlacedEvent) -> Outcome:
        match = match_of(placed.event)
        game, row, held = self.boards.games.get(match.game), self.known.ledger.get(match), self.known.held.get(match)
        if game is None or row is None or held is None:
            return Outcome.FOR_BATCH  # what is no longer held here
        self._note(match, row._replace(state=MatchState.COUNTED))
        del self.known.held[match]
        self.changes.held[match] = None
        self._count(game, match.player_id, held.score, held.ended_us, placed.position)
        return Outcome.OBEYED

    def _ban(self, placed: PlacedEvent) -> Outcome:
        player_id, until_us = placed.event.player_id, placed.event.until_us
        if is_over(until_us, placed.logged_us):
            return Outcome.OBEYED
        self.known.bans[player_id] = self.changes.bans[player_id] = until_us
        for listed in [one for one in self.known.entries if one.player_id == player_id]:
            self.known.shadows[listed] = self.changes.shadows[listed] = self.known.entries.pop(listed)
            self.changes.entries[listed] = None
        return Outcome.OBEYED

    def _count(self, game: Game, player_id: str, score: int, ended_us: int, position: Position) -> None:
        banned = player_id in self.known.bans
        for listed in _listed(game, player_id, ended_us):
            if self.in_base(listed.board, position):
                continue
            before = (self.known.shadows if banned else self.known.entries).get(listed)
            after = entry_after(game.mode, before, score, ended_us)
            if after == before:
                continue
            if banned:
                self.known.shadows[listed] = self.changes.shadows[listed] = after
            else:
                self._set(listed, after)

    def _set(self, listed: Listed, entry: bytes) -> None:
        self.known.entries[listed] = self.changes.entries[listed] = entry

    def _note(self, match: Match, row: LedgerRow) -> None:
        self.known.ledger[match] = self.changes.ledger[match] = row


def _listed(game: Game, player_id: str, ended_us: int) -> Sequence[Listed]:
    """Return the entries that a match of a player belongs to."""
    ended = EPOCH + ended_us * _US
    return [Listed(board_name(game.name, period.key), player_id) for period in game.periods_at(ended)]
