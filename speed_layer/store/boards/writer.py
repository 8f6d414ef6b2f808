"""The writing side of a generation: what is known of a batch is read, what was decided is applied in one step.

The step carries the position that is expected: when another consumer has gone on meanwhile, or the server lost what it
had, nothing changes. So two consumers may try; leases only save them work.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, NamedTuple, Self, TypeVar

from domain.boards.events import PlacedEvent
from domain.boards.ledger import LedgerRow
from domain.errors import LakeboardError
from speed_layer.boards.deciding import Changes, HeldScore, Known, Listed, Touched
from speed_layer.store.boards.keys import NEW_BOARD, bucket_hash, of_generation
from speed_layer.store.boards.scripts import APPLY, KNOWN
from speed_layer.store.connection import Views, octets

WHOLE: Final = 2**31 - 1  # events of an entry that is applied wholly
_DAY_US: Final = 86_400_000_000
_HELD: Final = Struct(">qq")
_NOTHING: Final = ""

Part = str | bytes | int
_Name = TypeVar("_Name")


class BoardsMovedError(LakeboardError):
    """Somebody else has applied events, or the server has lost or exchanged a board; nothing was written."""

    def __init__(self, shard: int, what: str) -> None:
        super().__init__(shard, what)
        self.shard = shard
        self.what = what

    def __str__(self) -> str:
        return f"shard {self.shard} of the boards has another {self.what} than expected: nothing was written"


class Applied(NamedTuple):
    """Up to where a partition is applied.

    Attributes:
        version: `EntryId.version` of the last entry of which something is.
        events: How many of its events are; `WHOLE` = all.
        before: Version of the entry before it, -1 for the first.
    """

    version: int
    events: int
    before: int

    def includes(self, version: int, number: int) -> bool:
        """Say whether an event is applied."""
        return self.version > version or (self.version == version and self.events > number)

    @property
    def read_after(self) -> int:
        """Version of the entry behind which to read on; -1 = from the beginning."""
        return self.version if self.events == WHOLE else self.before

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read what `str` wrote."""
        return cls(*map(int, text.split()))

    def __str__(self) -> str:
        return f"{self.version} {self.events} {self.before}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardState:
    """How far a shard is.

    Attributes:
        log_id: Of which log; empty before any.
        applied: Up to where, by partition.
        ready: Whether readers may have its boards.
    """

    log_id: str
    applied: Mapping[int, Applied]
    ready: bool


@dataclass
class BoardWriter:
    """Writes one generation of a shard. Every call may raise `ViewsUnavailableError`.

    Args:
        views: The server.
        shard: Which.
        generation: Which, as of `Generations.make`.
    """

    views: Views
    shard: int
    generation: int
    _versions: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._known = self.views.client.register_script(KNOWN)
        self._apply = self.views.client.register_script(APPLY)

    def state(self) -> ShardState:
        """Return how far the shard is."""
        with self.views.translated():
            found = {octets(k).decode(): octets(v).decode() for k, v in self._hash("state").items()}
            self._versions = {octets(k).decode(): octets(v).decode() for k, v in self._hash("boards").items()}
        places = {name[1:]: text for name, text in found.items() if name[0] == "p" and name[1:].isdigit()}
        applied = {int(number): Applied.parse(text.encode()) for number, text in places.items()}
        return ShardState(log_id=found.get("log", ""), applied=applied, ready="ready" in found)

    def begin(self, log_id: str, *, partitions: int) -> None:
        """Begin with a log.

        Args:
            log_id: Which.
            partitions: How many it has for scores; readers find by it which shard a player is in.
        """
        with self.views.translated():
            self.views.client.hset(self._key("state"), items=["log", log_id, "partitions", partitions])
        self._versions = {}

    def say(self, *, as_of_ms: int, ready: bool) -> None:
        """Say up to when everything is applied, and that readers may have it; never less than before."""
        values: list[Part] = ["as_of_ms", as_of_ms]
        values += ["ready", 1] if ready else []
        with self.views.translated():
            self.views.client.hset(self._key("state"), items=values)

    def boards(self) -> Sequence[str]:
        """Return the names of all boards, as of the last `state`, and those that were made since."""
        return list(self._versions)

    def known(self, touched: Touched, *, day: int) -> Known:
        """Return what the server has of a batch.

        Args:
            touched: What it is about.
            day: Of the log, as of `day_of`: rows of the ledger of this day and the one before are looked at.
        """
        everywhere = {Listed(board, player) for player in touched.everywhere for board in self._versions}
        listed, players, matches = sorted(touched.listed | everywhere), sorted(touched.players), sorted(touched.matches)
        days = [self._key(f"ledger:{n}") for n in (day, day - 1)]
        keys = [self._key(name) for name in ("bans", "held")]
        args: list[Part] = [self._key(), len(listed)]
        args += [part for one in listed for part in (*one, bucket_hash(one.player_id))]
        args += [len(players), *players, len(matches)]
        args += [part for match in matches for part in (*days, match.field)]
        with self.views.translated():
            entries, shadows, bans, rows, held = self._known(keys=keys, args=args)
        return Known(
            entries=_there(listed, entries),
            shadows=_there(listed, shadows),
            bans={player: int(found) for player, found in _there(players, bans).items()},
            ledger={match: LedgerRow.decode(row) for match, row in _there(matches, rows).items()},
            held={match: HeldScore(*_HELD.unpack(body)) for match, body in _there(matches, held).items()},
            boards=tuple(self._versions),
        )

    def apply(
        self,
        log_id: str,
        partition: int,
        changes: Changes,
        *,
        before: Applied | None,
        after: Applied | None,
        as_of_ms: int,
        day: int,
    ) -> None:
        """Apply changes in one step.

        Args:
            log_id: Of which log.
            partition: Of which partition.
            changes: What was decided.
            before: Position that the shard must have; None = before the first.
            after: Position that it gets; None = none yet.
            as_of_ms: Log time up to which everything is applied then.
            day: As for `known`.

        Raises:
            BoardsMovedError: something is not as expected; nothing was changed.
        """
        boards = sorted({listed.board for listed in (*changes.entries, *changes.shadows)})
        fields = list(self._fields(changes, day))
        args: list[Part] = [
            self._key(),
            log_id,
            f"p{partition}",
            str(before or ""),
            str(after or ""),
            as_of_ms,
        ]
        args += [
            len(boards),
            NEW_BOARD,
            *(part for board in boards for part in (board, self._versions.get(board, _NOTHING))),
        ]
        args += [len(changes.entries)]
        for listed, entry in changes.entries.items():
            args += [listed.board, listed.player_id, bucket_hash(listed.player_id), entry or _NOTHING]
        args += [len(fields), *(part for one in fields for part in one)]
        with self.views.translated():
            keys = [self._key(name) for name in ("state", "boards")]
            said = octets(self._apply(keys=keys, args=args)).decode()
        if said != "applied":
            raise BoardsMovedError(self.shard, said)
        for board in boards:
            self._versions.setdefault(board, NEW_BOARD)

    def drop_ledger_before(self, day: int) -> None:
        """Forget matches that the log took before a day and the one before it."""
        beginning = self._key("ledger:")
        with self.views.translated():
            for key in self.views.client.scan_iter(match=f"{beginning}*", count=1000):
                if int(octets(key).decode()[len(beginning) :]) < day - 1:
                    self.views.client.unlink(key)

    def bans(self) -> Mapping[str, int]:
        """Return all bans: who, and until when, as in `Known`."""
        with self.views.translated():
            return {octets(player).decode(): int(octets(until)) for player, until in self._hash("bans").items()}

    def _hash(self, name: str) -> Mapping[Any, Any]:
        found: Mapping[Any, Any] = self.views.client.hgetall(self._key(name))
        return found

    def _key(self, name: str = "") -> str:
        return of_generation(self.shard, self.generation, name)

    def _fields(self, changes: Changes, day: int) -> Iterator[tuple[str, str, Part]]:
        for match, row in changes.ledger.items():
            yield self._key(f"ledger:{day}"), match.field, row.encode()
        for match, held in changes.held.items():
            yield self._key("held"), match.field, _NOTHING if held is None else _HELD.pack(*held)
        for listed, entry in changes.shadows.items():
            yield self._key(f"shadow:{listed.board}"), listed.player_id, entry or _NOTHING
        for player, until in changes.bans.items():
            yield self._key("bans"), player, _NOTHING if until is None else str(until)


def day_of(events: Sequence[PlacedEvent]) -> int:
    """Return the day on which the log took the last of some events, counted since 1970 UTC."""
    return events[-1].logged_us // _DAY_US


def _there(names: Sequence[_Name], found: Sequence[bytes | None]) -> dict[_Name, bytes]:
    return {name: value for name, value in zip(names, found, strict=True) if value is not None}
