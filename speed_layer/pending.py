"""Plays that batch may not have: counted per hour and region, without items, until a published view covers them.

An hour is certified when batch has read every partition past its end and a grace. A play that came later than that is
**tardy**: it is in its bucket while there is one, and when the frontier passes its hour it is neither in the view nor
in a bucket that is summed up. Then any item can have it: it belongs to upper bounds, residuals and totals, as long as
batch's offset in this partition is below its position.

A play dated too far **ahead** has no bucket. It is pending in its hour until that hour is certified.
"""

from collections import defaultdict
from typing import Final

import numpy as np

from domain.sketches.keys import EVERYWHERE, Int64s, Mask, Numbers

_POSITIONS_A_CHUNK: Final = 2**20 * 600_000  # 10 minutes of log time
HOURS_AHEAD: Final = 48

Chunks = dict[int, tuple[int, int]]  # part of the log -> (last position in it, plays)


class Pending:
    """Tardy plays and plays dated ahead, of one partition.

    Attributes:
        tardy: (hour since 1970, region number) -> where in the log they came.
        ahead: The same -> plays.
        far: The first hour, and the plays, of those dated so far ahead that their hours are not told apart.
    """

    __slots__ = ("ahead", "far", "tardy")

    def __init__(self) -> None:
        self.tardy: dict[tuple[int, int], Chunks] = {}
        self.ahead: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.far: tuple[int, int] | None = None

    def add_tardy(self, hours: Int64s, regions: Numbers, positions: Int64s, counts: Int64s) -> None:
        """Note plays that came after their hour's grace."""
        chunks = positions // _POSITIONS_A_CHUNK
        columns = (hours.tolist(), regions.tolist(), chunks.tolist(), positions.tolist(), counts.tolist())
        for hour, region, chunk, position, count in zip(*columns, strict=True):
            of_hour = self.tardy.setdefault((hour, region), {})
            before = of_hour.get(chunk, (0, 0))
            of_hour[chunk] = (max(before[0], position), before[1] + count)

    def add_ahead(self, hours: Int64s, regions: Numbers, counts: Int64s, *, log_hour: int) -> None:
        """Note plays dated too far ahead of the log's hour; called for `*` and for their regions."""
        for hour, region, count in zip(hours.tolist(), regions.tolist(), counts.tolist(), strict=True):
            if hour <= log_hour + HOURS_AHEAD:
                self.ahead[hour, region] += count
            elif region == EVERYWHERE:
                first, plays = self.far or (hour, 0)
                self.far = (min(first, hour), plays + count)

    def certified(self, frontier: int, offset: int) -> None:
        """Forget what a view covers.

        Args:
            frontier: Hours below it are in the view.
            offset: Position up to which, included, batch has read this partition.
        """
        for key, chunks in list(self.tardy.items()):
            if key[0] < frontier:
                left = {chunk: held for chunk, held in chunks.items() if held[0] > offset}
                self.tardy[key] = left
                if not left:
                    del self.tardy[key]

    def forget_before(self, hour: int) -> None:
        """Forget hours that no live window reaches any more."""
        self.tardy = {key: chunks for key, chunks in self.tardy.items() if key[0] >= hour}
        for key in [key for key in self.ahead if key[0] < hour]:
            del self.ahead[key]

    def of_window(self, regions: int, *, hours: range, frontier: int | None) -> Int64s:
        """Return by region number the plays that any item of a window may have beside its buckets and the view.

        Args:
            regions: How many numbers there are.
            hours: That the window reaches into.
            frontier: Hours below it come from the view; None for windows that never read batch.
        """
        plays = np.zeros(regions, dtype=np.int64)
        for (hour, region), count in self.ahead.items():
            if hour in hours and (frontier is None or hour >= frontier):
                plays[region] += count
        for (hour, region), chunks in self.tardy.items():
            if frontier is not None and hour in hours and hour < frontier:
                plays[region] += sum(count for _, count in chunks.values())
        if self.far is not None and self.far[0] < hours.stop:
            plays += self.far[1]
        return plays

    def regions_used(self, regions: int) -> Mask:
        """Say of each region number whether something is noted of it."""
        used = np.zeros(regions, dtype=np.bool_)
        used[[region for _, region in (*self.tardy, *self.ahead)]] = True
        return used
