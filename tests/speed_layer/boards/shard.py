"""A shard of boards over a real views server, and the same said plainly: what both say is compared."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from domain.boards.definitions import LIVE_WINDOW, Boards, board_name
from domain.boards.entries import entry_after
from domain.boards.events import NOT_SAID, BoardEvent, EventKind, PlacedEvent, Position
from domain.boards.ledger import Match
from domain.boards.sort_key import KEY_BYTES, member, player_of
from domain.windows import EPOCH
from speed_layer.boards.deciding import decide, lift, touched
from speed_layer.store.boards.base import BaseLoader
from speed_layer.store.boards.generations import Generations
from speed_layer.store.boards.keys import of_generation
from speed_layer.store.boards.reader import BoardsReader
from speed_layer.store.boards.writer import WHOLE, Applied, BoardWriter, day_of
from speed_layer.store.connection import Views, octets
from tests.views_server import ViewsServer

LOG = "log-1"
US = timedelta(microseconds=1)
_Found = TypeVar("_Found")


def event(kind: EventKind = EventKind.SCORE, player: str = "p", **other: Any) -> BoardEvent:
    """An event with usual values but for what is said."""
    usual: dict[str, Any] = {
        "kind": kind, "game": "default", "player_id": player, "match_id": "m", "score": 0, "ended_us": NOT_SAID,
        "fingerprint": 0, "reason": "", "until_us": NOT_SAID,
    }  # fmt: skip
    return BoardEvent(**(usual | other))


@dataclass
class Plainly:
    """All events that were first of their match, and bans: every board computed from the beginning each time."""

    boards: Boards
    first: dict[Match, PlacedEvent] = field(default_factory=dict)
    counted: list[PlacedEvent] = field(default_factory=list)
    held: dict[Match, PlacedEvent] = field(default_factory=dict)
    bans: dict[str, int] = field(default_factory=dict)

    def take(self, placed: PlacedEvent) -> None:
        one = placed.event
        match = Match(one.game, one.match_id, one.player_id)
        if one.kind is EventKind.BAN:
            self.bans[one.player_id] = one.until_us
        elif one.kind is EventKind.RESTORE:
            self.bans.pop(one.player_id, None)
        elif one.kind is EventKind.APPROVE and match in self.held:
            self.counted.append(self.held.pop(match))
        elif one.kind is EventKind.SCORE and match not in self.first:
            game = self.boards.games.get(one.game)
            if game is None:
                return
            self.first[match] = placed
            if placed.ended_us < placed.logged_us - LIVE_WINDOW // US:
                return
            if game.is_held(one.score):
                self.held[match] = placed
            else:
                self.counted.append(placed)

    def entries(self, board: str, *, banned: bool = False) -> Mapping[str, bytes]:
        """Player -> entry, of those who are ranked, or of those who are banned."""
        found: dict[str, bytes] = {}
        for placed in self.counted:
            game = self.boards.games[placed.event.game]
            names = [board_name(game.name, p.key) for p in game.periods_at(EPOCH + placed.ended_us * US)]
            player = placed.event.player_id
            if board in names and (player in self.bans) is banned:
                found[player] = entry_after(game.mode, found.get(player), placed.event.score, placed.ended_us)
        return found

    def members(self, board: str) -> list[bytes]:
        return sorted(member(entry[:KEY_BYTES], player) for player, entry in self.entries(board).items())

    def boards_made(self) -> set[str]:
        made = set()
        for placed in self.counted:
            game = self.boards.games[placed.event.game]
            made |= {board_name(game.name, p.key) for p in game.periods_at(EPOCH + placed.ended_us * US)}
        return made


@dataclass
class Shard:
    """One shard whose events are applied for real."""

    server: ViewsServer
    views: Views
    boards: Boards
    number: int = 0
    writer: BoardWriter = field(init=False)
    plainly: Plainly = field(init=False)
    at: Applied | None = None

    def __post_init__(self) -> None:
        generations = Generations(self.views, self.number)
        self.writer = BoardWriter(self.views, self.number, generations.make())
        self.plainly = Plainly(self.boards)
        self.writer.begin(LOG, partitions=1)
        generations.put_live(self.writer.generation)
        self.writer.state()

    def apply(self, logged_us: int, *events: BoardEvent) -> None:
        """Decide and apply events as one entry of the log."""
        version = 1 if self.at is None else self.at.version + 1
        placed = [PlacedEvent(Position(version, n), logged_us, one) for n, one in enumerate(events)]
        day, after = day_of(placed), Applied(version, WHOLE, version - 1)
        changes = decide(self.boards, self.writer.known(touched(self.boards, placed), day=day), placed)
        ms = logged_us // 1000
        self.writer.apply(LOG, 0, changes, before=self.at, after=after, as_of_ms=ms, day=day)
        self.writer.say(as_of_ms=ms, ready=True)
        self.at = after
        for one in placed:
            self.plainly.take(one)

    def lift(self, *players: str, logged_us: int) -> None:
        """End bans as time does."""
        known = self.writer.known(touched(self.boards, [self.placed(event(EventKind.RESTORE, p)) for p in players]),
                                  day=logged_us // 86_400_000_000)  # fmt: skip
        changes = lift(self.boards, known, players)
        assert self.at is not None
        self.writer.apply(LOG, 0, changes, before=self.at, after=self.at, as_of_ms=logged_us // 1000, day=0)
        for player in players:
            self.plainly.bans.pop(player, None)

    @staticmethod
    def placed(one: BoardEvent) -> PlacedEvent:
        return PlacedEvent(Position(0, 0), 0, one)

    def read(self, ask: Callable[[BoardsReader], Coroutine[Any, Any, _Found]]) -> _Found:
        """Ask a reader something in an event loop of its own."""

        async def once() -> _Found:
            reader = BoardsReader(self.server.address)
            try:
                return await ask(reader)
            finally:
                await reader.close()

        return asyncio.run(once())

    def rebase(self, board: str, *, page: int = 4) -> None:
        """Make what stands on a board its base, under a new version, as a rebuild does."""
        entries, members = self.plainly.entries(board), self.plainly.members(board)
        players = [player_of(one) for one in members]
        version = int(self.version(board)) + 1
        loader = BaseLoader(self.views, self.number, self.writer.generation, board, version, 300 * len(members), page)
        for start in range(0, len(members), 3):
            some = players[start : start + 3]
            loader.add(some, [entries[player] for player in some], members[start : start + 3])
        loader.finish()
        if not members:
            self.views.client.hset(self.key("boards"), board, f"{version} 3 1 0 {page} 0")
        self.writer.state()

    def require_invariants(self, board: str) -> None:
        """Hold the structures of a board against each other and against what stands there."""
        client: Any = self.views.client  # answers are bytes, though its types allow for texts
        key = self.key(f"{board}:{self.version(board)}:")
        base: set[bytes] = set()
        for page in client.scan_iter(match=f"{key}p:*"):
            base |= set(client.zrange(page, 0, -1))
        removed, over = (set(client.zrange(f"{key}{name}", 0, -1)) for name in ("removed", "over"))
        assert removed <= base
        assert not over & (base - removed)
        found = sorted((base - removed) | over)
        assert found == self.plainly.members(board)
        shadows = client.hgetall(self.key(f"shadow:{board}"))
        banned = self.plainly.entries(board, banned=True)
        assert {player.decode(): entry for player, entry in shadows.items()} == banned

    def key(self, name: str) -> str:
        """A key of the generation."""
        return of_generation(self.number, self.writer.generation, name)

    def version(self, board: str) -> str:
        """The version of a board that is in force."""
        return octets(self.views.client.hget(self.key("boards"), board) or b"0").split()[0].decode()


def ranked(members: Sequence[bytes], place: bytes) -> int:
    """How many stand before a place."""
    return sum(one < place for one in members)
