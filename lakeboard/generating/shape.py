"""What made-up plays are like, checked: numbers, shares, span, names."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from domain.errors import BadRequestError
from domain.events import UNKNOWN_REGION, normal_region

DEFAULT_START = datetime(2026, 3, 2, tzinfo=UTC)
DEFAULT_DAYS = 2.0
DEFAULT_REGIONS = ("US", "IN", "BR", "GB", "DE", "FR", "MX", "JP", UNKNOWN_REGION)
_MOST_NAMES = 10_000_000
_MOST_SKEW = 10.0  # beyond it there is one item only


class BadShapeError(BadRequestError):
    """Plays of such a kind cannot be made up."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(option, problem)
        self.option = option
        self.problem = problem

    def __str__(self) -> str:
        return f"--{self.option} {self.problem}; `lakeboard generate --help` shows what can be asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the plays are like. Checked in `__post_init__`.

    Attributes:
        items: Different items beside the hot one.
        skew: Exponent of Zipf's law: the n-th best item is played n^-skew times as often as the best.
        regions: In the order of how much is played there, by Zipf's law with exponent 1.
        users: Different users, all playing alike.
        start: Begin of event time, included, UTC.
        end: End of event time, excluded, UTC.
        hot_share: Share of the plays that are of one more item, the hot one.
        duplicate_share: Share of the rows that repeat an earlier one's id; each fifth of them with another item.
        late_share: Share of the plays that come between 1 minute and 26 hours after they happened.
    """

    items: int = 20_000
    skew: float = 1.0
    regions: tuple[str, ...] = DEFAULT_REGIONS
    users: int = 200_000
    start: datetime = DEFAULT_START
    end: datetime = DEFAULT_START + timedelta(days=DEFAULT_DAYS)
    hot_share: float = 0.0
    duplicate_share: float = 0.0
    late_share: float = 0.0

    def __post_init__(self) -> None:
        for option, problem in self._problems():
            raise BadShapeError(option, problem)

    def _problems(self) -> Iterator[tuple[str, str]]:
        for option, names in (("items", self.items), ("users", self.users)):
            if not 1 <= names <= _MOST_NAMES:
                yield option, f"must be from 1 to {_MOST_NAMES}, not {names}"
        if not 0 <= self.skew <= _MOST_SKEW:
            yield "skew", f"must be from 0 to {_MOST_SKEW}, not {self.skew}"
        shares = {"hot-item": self.hot_share, "duplicates": self.duplicate_share, "late": self.late_share}
        for option, share in shares.items():
            if not 0 <= share <= 1:
                yield option, f"must be a share from 0 to 1, not {share}"
        wrong = [region for region in self.regions if normal_region(region) != region]
        if wrong or not self.regions or len(set(self.regions)) < len(self.regions):
            yield "regions", "must name regions, each once, such as US,IN,BR in capitals"
        if self.end - self.start < timedelta(seconds=1):
            yield "end", "must be at least a second after --start"


DEFAULT_SHAPE = Shape()
