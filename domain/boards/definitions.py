"""Boards as data: `boards.toml` says which games there are and what is ranked in each."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Self

from domain.boards.sort_key import Mode
from domain.errors import BadRequestError
from domain.periods import Period, PeriodKind, period_at, period_named

DEFAULT_GAME: Final = "default"
LIVE_WINDOW: Final = timedelta(hours=24)  # W: a score whose match ended earlier is counted by batch alone
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_GAME_KEYS = frozenset(
    {"name", "mode", "periods", "grace_minutes", "archive_size", "player_writes", "hold_above", "season", "bands"}
)
_SEASON_KEYS = frozenset({"name", "start", "end"})
_BAND_KEYS = frozenset({"min", "max", "width"})
_MOST_ARCHIVED = 100_000
_MOST_BANDS = 100_000
_PLAIN_PERIODS = (PeriodKind.ALL_TIME, PeriodKind.DAILY, PeriodKind.WEEKLY, PeriodKind.MONTHLY)


class InvalidBoardsError(BadRequestError):
    """`boards.toml` says something that cannot be a board."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"boards.toml: {self.problem}; mend the file and start again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """Equally wide ranges of scores, for approximate ranks; `[min, max]`, what is outside counts in the outermost."""

    min: int
    max: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """What is ranked in a game.

    Attributes:
        name: In addresses and events.
        mode: How matches become an entry.
        kinds: Boards that it has, each anew in each of its periods.
        seasons: Periods of its own.
        grace: How long after a period's end its scores still arrive as usual.
        archive_size: Entries of a period that are kept for ever.
        player_writes: Whether a player's token may send scores.
        hold_above: A score above it is kept, unranked until approved; below it where low is good. None = none is.
        bands: For approximate ranks; None = there are none.
    """

    name: str
    mode: Mode = Mode.BEST_HIGH
    kinds: tuple[PeriodKind, ...] = _PLAIN_PERIODS
    seasons: tuple[Period, ...] = ()
    grace: timedelta = timedelta(minutes=10)
    archive_size: int = 1000
    player_writes: bool = False
    hold_above: int | None = None
    bands: Bands | None = None

    def periods_at(self, moment: datetime) -> Sequence[Period]:
        """Return the periods that a match belongs to that ended then."""
        return [
            *(period_at(kind, moment) for kind in self.kinds),
            *(season for season in self.seasons if season.contains(moment)),
        ]

    def period(self, board: str, now: datetime) -> Period | None:
        """Return the period that a board's name in an address means; None when the game has no such board.

        Args:
            board: `daily` for the present one, or a full key.
            now: The present moment.
        """
        if board in self.kinds:
            return period_at(PeriodKind(board), now)
        found = period_named(board, self.seasons)
        if found is None or (found.kind is not PeriodKind.SEASON and found.kind not in self.kinds):
            return None
        return found

    def live_until(self, period: Period) -> datetime | None:
        """Return until when scores can come to a board live, UTC, exclusive; None = for ever."""
        return None if period.end is None else period.end + max(self.grace, LIVE_WINDOW)

    def is_held(self, score: int) -> bool:
        """Say whether a score has to be approved before it is ranked."""
        if self.hold_above is None:
            return False
        return score < self.hold_above if self.mode is Mode.BEST_LOW else score > self.hold_above


@dataclass(frozen=True, slots=True)
class Boards:
    """All games."""

    games: Mapping[str, Game]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `boards.toml`.

        Raises:
            InvalidBoardsError: not TOML, an unknown key or a value that cannot be, or two games of one name.
        """
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidBoardsError(str(error)) from error
        _refuse_unknown(document, frozenset({"game"}), "the file")
        entries = document.get("game", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            message = "game is a list of tables: write [[game]]"
            raise InvalidBoardsError(message)
        games = [_game(entry) for entry in entries]
        if len({game.name for game in games}) != len(games):
            message = "two games have one name"
            raise InvalidBoardsError(message)
        return cls({game.name: game for game in games})


def board_name(game: str, period_key: str) -> str:
    """Return the name of a board: neither part can hold the bar."""
    return f"{game}|{period_key}"


ONE_GAME: Final = Boards({DEFAULT_GAME: Game(name=DEFAULT_GAME)})  # where there is no file


def _game(entry: dict[str, Any]) -> Game:
    name = _name(entry.get("name"), "name of a game")
    where = f"game {name!r}"
    _refuse_unknown(entry, _GAME_KEYS, where)
    mode = entry.get("mode", Mode.BEST_HIGH.value)
    if mode not in set(Mode):
        message = f"mode of {where} must be one of {', '.join(Mode)}, not {mode!r}"
        raise InvalidBoardsError(message)
    kinds = entry.get("periods", [kind.value for kind in _PLAIN_PERIODS])
    if not isinstance(kinds, list) or not all(kind in _PLAIN_PERIODS for kind in kinds) or len({*kinds}) < len(kinds):
        message = f"periods of {where} must be different ones of {', '.join(_PLAIN_PERIODS)}, not {kinds!r}"
        raise InvalidBoardsError(message)
    held = entry.get("hold_above")
    writes = entry.get("player_writes", False)
    if not isinstance(writes, bool):
        message = f"player_writes of {where} must be true or false, not {writes!r}"
        raise InvalidBoardsError(message)
    return Game(
        name=name,
        mode=Mode(mode),
        kinds=tuple(PeriodKind(kind) for kind in kinds),
        seasons=_seasons(entry.get("season", []), where),
        grace=timedelta(minutes=_whole(entry.get("grace_minutes", 10), f"grace_minutes of {where}", 0, 24 * 60)),
        archive_size=_whole(entry.get("archive_size", 1000), f"archive_size of {where}", 1, _MOST_ARCHIVED),
        player_writes=writes,
        hold_above=None if held is None else _whole(held, f"hold_above of {where}", -(2**62), 2**62),
        bands=None if "bands" not in entry else _bands(entry["bands"], f"bands of {where}"),
    )


def _seasons(entries: object, where: str) -> tuple[Period, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        message = f"season of {where} is a list of tables: write [[game.season]]"
        raise InvalidBoardsError(message)
    found = []
    for entry in entries:
        name = _name(entry.get("name"), f"name of a season of {where}")
        _refuse_unknown(entry, _SEASON_KEYS, f"season {name!r} of {where}")
        start, end = (_moment(entry.get(edge), f"{edge} of season {name!r} of {where}") for edge in ("start", "end"))
        if start >= end:
            message = f"season {name!r} of {where} ends before it starts"
            raise InvalidBoardsError(message)
        found.append(Period(f"{PeriodKind.SEASON.value}:{name}", start, end))
    if len({season.key for season in found}) != len(found):
        message = f"two seasons of {where} have one name"
        raise InvalidBoardsError(message)
    return tuple(found)


def _bands(entry: object, where: str) -> Bands:
    if not isinstance(entry, dict):
        message = f"{where} is a table: {{min = 0, max = 1000, width = 10}}"
        raise InvalidBoardsError(message)
    _refuse_unknown(entry, _BAND_KEYS, where)
    low, high = (_whole(entry.get(edge), f"{edge} of {where}", -(2**62), 2**62) for edge in ("min", "max"))
    width = _whole(entry.get("width", 1), f"width of {where}", 1, 2**62)
    if low > high or (high - low) // width >= _MOST_BANDS:
        message = f"{where} must be from min to max, {_MOST_BANDS:,} of them at most"
        raise InvalidBoardsError(message)
    return Bands(min=low, max=high, width=width)


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        message = f"{where} must be 1 to 64 of A-Z a-z 0-9 _ . -, a letter or digit first, not {value!r}"
        raise InvalidBoardsError(message)
    return value


def _whole(value: object, where: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        message = f"{where} must be a whole number from {least} to {most}, not {value!r}"
        raise InvalidBoardsError(message)
    return value


def _moment(value: object, where: str) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), tzinfo=UTC)
    message = f"{where} must be a date, or a moment with its zone, not {value!r}"
    raise InvalidBoardsError(message)


def _refuse_unknown(table: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    unknown = sorted(table.keys() - known)
    if unknown:
        message = f"{where} has unknown keys {', '.join(unknown)}; known: {', '.join(sorted(known))}"
        raise InvalidBoardsError(message)
