"""A lake of board events for tests: written as the lake writer does, and counted again one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from domain.board_tables import SCORES
from domain.boards.definitions import LIVE_WINDOW, Boards, Game, board_name
from domain.boards.entries import entry_after
from domain.boards.events import NOT_SAID, BoardEvent, EventKind, PlacedEvent, Position
from domain.boards.ledger import Match
from domain.boards.sort_key import KEY_BYTES, Mode, member
from domain.log import EntryId
from domain.periods import Period
from domain.position import LAKE_WRITER, LOG_IN_USE, READ_TO
from domain.windows import EPOCH
from ingest.arrow import arrow_schema
from ingest.hashing import partition_number
from ingest.lake_writer import create_tables
from tests.speed_layer.boards.shard import US, event

DAY_US, HOUR_US = 86_400_000_000, 3_600_000_000
START_US = 1_794_650_400_000_000
PLAYERS = ["a", "aa", "a\x7f", "ab", "b", "ä", "夜", "🎵" * 64, "zz", "z"]
SPRING = Period("season:spring", datetime(2026, 11, 14, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC))
BOARDS = Boards({
    "high": Game(name="high", hold_above=50, seasons=(SPRING,)),
    "low": Game(name="low", mode=Mode.BEST_LOW, hold_above=-3),
    "sum": Game(name="sum", mode=Mode.SUM),
})  # fmt: skip
InBase = Callable[["Logged"], bool]
LOGS = ("log-0", "log-1")
PARTITIONS = 3


@dataclass(frozen=True, slots=True)
class Logged:
    """An event as bronze has it."""

    log: str
    partition: int
    placed: PlacedEvent


@dataclass
class BoardLake:
    """Events in the order of the log, in a lake and in memory."""

    root: Path
    events: list[Logged] = field(default_factory=list)
    written: int = 0
    now_us: int = START_US

    def happen(self, random: Random, entries: int, log: str = LOGS[-1]) -> None:
        """Add random events, many of the same match again, late ones, and decisions."""
        for _ in range(entries):
            self.now_us += random.choice([1000, 1000, HOUR_US // 7, HOUR_US * 5])
            some = [some_event(random, self.now_us) for _ in range(random.randint(1, 6))]
            self.add(some, log)

    def add(self, some: Sequence[BoardEvent], log: str = LOGS[-1]) -> None:
        """Add events as one entry of each partition."""
        entry = EntryId(self.now_us // 1000, 0)
        by_partition: dict[int, list[BoardEvent]] = {}
        for one in some:
            by_partition.setdefault(partition_number(one.player_id, PARTITIONS), []).append(one)
        for partition, mine in by_partition.items():
            for number, one in enumerate(mine):
                placed = PlacedEvent(Position(entry.version, number), entry.ms * 1000, one)
                self.events.append(Logged(log, partition, placed))

    def write(self) -> int:
        """Write what is not in the lake yet, one transaction for each partition; return the version.

        The lake has read each log up to the last of its events.
        """
        create_tables(self.root, [SCORES])
        new = self.events[self.written :]
        self.written = len(self.events)
        for log, partition in sorted({(one.log, one.partition) for one in new}):
            mine = [one for one in new if (one.log, one.partition) == (log, partition)]
            writer = f"{LAKE_WRITER}{log}/{partition}"
            seq = mine[-1].placed.position.version
            rows = [row(one, writer, seq) for one in mine]
            read_to_ms = max(one.placed.logged_us for one in self.events if one.log == log) // 1000 + 1
            marks = {writer: seq, f"{LOG_IN_USE}{log}": self.logs().index(log)}
            marks |= {f"{READ_TO}{log}/{number}": read_to_ms for number in range(PARTITIONS)}
            write_deltalake(
                self.root / SCORES.name, pa.Table.from_pylist(rows, schema=arrow_schema(SCORES)), mode="append",
                commit_properties=CommitProperties(app_transactions=[Transaction(*one) for one in marks.items()]),
            )  # fmt: skip
        return DeltaTable(self.root / SCORES.name).version()

    def logs(self) -> Sequence[str]:
        """All logs in the order in which they were in use."""
        return list(dict.fromkeys(one.log for one in self.events))

    def entries(
        self, *, banned: bool = False, boards: Boards = BOARDS, in_base: InBase = lambda _: True
    ) -> Mapping[str, Mapping[str, bytes]]:
        """Board -> player -> entry, of those who are ranked, or of those who are banned: all counted one by one.

        Args:
            banned: Which.
            boards: Definitions.
            in_base: What a rebuild has counted; of the rest, late scores and removals wait for the next one.
        """
        bans = self._bans()
        found: dict[str, dict[str, bytes]] = {}
        for placed in self._counted(boards, in_base):
            game, player = boards.games[placed.event.game], placed.event.player_id
            if (player in bans) is not banned:
                continue
            for period in game.periods_at(EPOCH + placed.ended_us * US):
                of_board = found.setdefault(board_name(game.name, period.key), {})
                score, ended = placed.event.score, placed.ended_us
                of_board[player] = entry_after(game.mode, of_board.get(player), score, ended)
        return found

    def members(self, boards: Boards = BOARDS, in_base: InBase = lambda _: True) -> Mapping[str, Sequence[bytes]]:
        """Board -> members in order; as for `entries`."""
        return {
            board: sorted(member(entry[:KEY_BYTES], player) for player, entry in of_board.items())
            for board, of_board in self.entries(boards=boards, in_base=in_base).items()
        }

    def take(self, log: str, partition: int, placed: PlacedEvent) -> None:
        """Add an event that a real log has."""
        self.events.append(Logged(log, partition, placed))
        self.now_us = max(self.now_us, placed.logged_us)

    def _counted(self, boards: Boards, in_base: InBase) -> list[PlacedEvent]:
        first: dict[Match, Logged] = {}
        approved: dict[Match, bool] = {}  # whether one of the approvals is in the base
        removed = set[Match]()
        for one in self.events:
            told = one.placed.event
            match = Match(told.game, told.match_id, told.player_id)
            if told.kind is EventKind.SCORE and told.game in boards.games:
                first.setdefault(match, one)
            elif told.kind is EventKind.APPROVE and match in first:
                approved[match] = approved.get(match, False) or in_base(one)
            elif told.kind is EventKind.REMOVE and in_base(one):
                removed.add(match)
        return [
            one.placed
            for match, one in first.items()
            if match not in removed and self._stands(one, boards.games[match.game], approved.get(match), in_base)
        ]

    @staticmethod
    def _stands(one: Logged, game: Game, approved: bool | None, in_base: InBase) -> bool:
        is_late = one.placed.ended_us < one.placed.logged_us - LIVE_WINDOW // US
        if is_late and not in_base(one):
            return False
        return not game.is_held(one.placed.event.score) or (approved is not None if not is_late else approved is True)

    def _bans(self) -> set[str]:
        bans: dict[str, int] = {}
        for one in self.events:
            told = one.placed.event
            if told.kind is EventKind.BAN and (told.until_us == NOT_SAID or told.until_us > one.placed.logged_us):
                bans[told.player_id] = told.until_us
            elif told.kind is EventKind.RESTORE:
                bans.pop(told.player_id, None)
        return {player for player, until in bans.items() if until == NOT_SAID or until > self.now_us // 1000 * 1000}


def some_event(random: Random, now_us: int) -> BoardEvent:
    kind = random.choices(list(EventKind), weights=[14, 1, 2, 2, 1])[0]
    ended = now_us - random.choice([0, 0, 1, HOUR_US, DAY_US - 1, 2 * DAY_US, 9 * DAY_US])
    game = random.choice(["high", "low", "sum", "sum", "nobody's"])
    return event(
        kind,
        random.choice(PLAYERS),
        game="" if kind in (EventKind.BAN, EventKind.RESTORE) else game,
        match_id=f"m{random.randrange(60)}",
        score=random.choice([0, 0, 1, 1, 2, 5, -3, -4, 51, 2**53, 2**53 + 1, 2**40 if game == "sum" else 2**62])
        if kind is EventKind.SCORE else 0,
        ended_us=ended if kind is EventKind.SCORE else NOT_SAID,
        fingerprint=random.randrange(3),
        until_us=now_us + random.choice([-1, HOUR_US, 30 * DAY_US])
        if kind is EventKind.BAN and random.random() < 0.5 else NOT_SAID,
    )  # fmt: skip


def row(one: Logged, writer: str, seq: int) -> Mapping[str, object]:
    """An event as a row of bronze/scores."""
    told, placed = one.placed.event, one.placed
    entry = EntryId.of_version(placed.position.version)
    at = EPOCH + placed.ended_us * US
    return {
        "kind": told.kind.name.lower(), "game": told.game, "player_id": told.player_id,
        "match_id": "" if told.kind in (EventKind.BAN, EventKind.RESTORE) else told.match_id, "score": told.score,
        "event_time": at, "event_date": at.date(), "time_source": "client", "fingerprint": told.fingerprint,
        "reason": None, "until": None if told.until_us == NOT_SAID else EPOCH + told.until_us * US, "source": "api/t",
        "ingested_at": EPOCH + placed.logged_us * US, "log_id": one.log, "log_partition": one.partition,
        "log_ms": entry.ms, "log_sequence": entry.sequence, "log_index": placed.position.number,
        "writer": writer, "writer_seq": seq,
    }  # fmt: skip
