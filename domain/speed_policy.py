"""The numbers of live charts: how much is kept, for how long, and how far apart a live answer's bounds may be."""

import hashlib
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Self

from domain.live_windows import MINUTE, TEN_SECONDS
from domain.sketches.shape import Shapes, SketchShape
from domain.windows import HOUR

_WIDTH = 4096
_SHARE = 4  # a region sees fewer events than `*`, and a head has fewer entries than a sketch has columns


def _shapes(width: int) -> Shapes:
    region = width // _SHARE
    return Shapes(SketchShape(width=width, head=width // _SHARE), SketchShape(width=region, head=region // _SHARE))


_SHAPES_OF_MINUTES = _shapes(_WIDTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedPolicy:
    """Bounds of live counting. Checked in `__post_init__`.

    Attributes:
        minutes: Shapes of buckets of a minute and of 10 seconds.
        hour_heads: Entries of the heads of hours, of `*` and of a region; hours have the widths of minutes.
        regions: Most regions with buckets of their own, `ZZ` among them; plays of others count in `ZZ`.
        retry_window: How far back in log time copies of an event are found.
        ahead: How far an event may be dated after its log time to be counted in a bucket.
        grace: How long after an hour's end, in log time, batch waits for its events; as in `Policy`.
        fine: How long a minute is kept as buckets of 10 seconds after it ended.
        coarse: How long minutes are kept, counted back from the present one.
        hours_kept: How many whole hours are kept before the present one. The live day begins at most 24 hours back.
        list_size: Rows of a partition's list.
    """

    minutes: Shapes = _SHAPES_OF_MINUTES
    hour_heads: tuple[int, int] = (_WIDTH, _WIDTH // _SHARE)
    regions: int = 200
    retry_window: timedelta = timedelta(minutes=15)
    ahead: timedelta = timedelta(minutes=6)
    grace: timedelta = timedelta(minutes=10)
    fine: timedelta = timedelta(minutes=2)
    coarse: timedelta = timedelta(minutes=62)
    hours_kept: int = 25
    list_size: int = 128

    def __post_init__(self) -> None:
        if self.regions < 1 or self.list_size < 1:
            message = "regions and list_size must be at least 1"
            raise ValueError(message)
        if self.fine < MINUTE + TEN_SECONDS or self.coarse < HOUR + MINUTE or self.hours_kept * HOUR < 25 * HOUR:
            message = "fine must be at least 70 s, coarse 61 minutes and hours_kept 25: live windows are made of them"
            raise ValueError(message)
        whole = (self.retry_window, self.ahead, self.grace, self.fine, self.coarse)
        if any(span % MINUTE or span < timedelta(0) for span in whole):
            message = "retry_window, ahead, grace, fine and coarse are whole minutes"
            raise ValueError(message)

    @classmethod
    def of_size(cls, *, regions: int, width: int) -> Self:
        """Return the policy whose sketches of all regions have `width` columns: memory is in proportion to both.

        Args:
            regions: Most with buckets of their own.
            width: A power of two, at least 256; sketches of a region have a quarter, heads a quarter of their sketch.
        """
        return cls(regions=regions, minutes=_shapes(width), hour_heads=(width, width // _SHARE))

    @property
    def hours(self) -> Shapes:
        """Shapes of buckets of an hour."""
        everywhere, region = self.hour_heads
        return Shapes(
            SketchShape(self.minutes.everywhere.width, everywhere, self.minutes.everywhere.exact),
            SketchShape(self.minutes.region.width, region, self.minutes.region.exact),
        )

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value above; stored state of another one is not used."""
        return hashlib.sha256(repr(sorted(asdict(self).items())).encode()).hexdigest()[:16]


DEFAULT_SPEED_POLICY = SpeedPolicy()
