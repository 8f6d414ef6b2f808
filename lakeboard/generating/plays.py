"""Makes plays up, whole columns at once, from a seed (`domain/draws.py`). Each batch has a stream of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.draws import Floats, Int64s, drawn, even_shares, zipf_shares
from domain.windows import milliseconds
from lakeboard.generating.shape import Shape

BATCH_ROWS = 100_000  # fixed: the rows depend on it
HOT_ITEM = "Hot Song"
CONFLICT_SHARE = 0.2  # of the repeated ids: they come with another item
# Plays in each hour of the day, UTC, against the busiest one: nights are quiet.
HOURS = (30, 20, 14, 10, 9, 12, 20, 34, 48, 56, 60, 64, 68, 66, 64, 66, 72, 82, 92, 100, 98, 86, 66, 46)
_LEAST_LATE_MS = 60_000
_MOST_LATE_MS = 26 * 3_600_000  # a listener's day offline, and into the day before
_SHORTEST_MS, _LONGEST_MS = 1_000, 400_000
_HOUR_MS = 3_600_000
_ID_BYTES = 16
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)

Mask = npt.NDArray[np.bool_]


class _Draws:
    """Numbers of one batch, from its own stream."""

    def __init__(self, seed: int, batch: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, batch]))

    def shares(self, rows: int) -> Floats:
        """Return numbers from 0, included, to 1, excluded, evenly spread."""
        return even_shares(self._bits.random_raw(rows))

    def up_to(self, most: int, rows: int) -> Int64s:
        """Return whole numbers from 0, included, to `most`, excluded."""
        return (self.shares(rows) * most).astype(np.int64)

    def ids(self, rows: int) -> pa.Array:
        """Return random ids of 32 hex digits."""
        raw: npt.NDArray[np.uint64] = self._bits.random_raw(2 * rows)
        return _hex_texts(raw.astype("<u8").view(np.uint8).reshape(rows, _ID_BYTES))


@dataclass(frozen=True, slots=True)
class _Names:
    """What the columns name, and how often each is drawn."""

    items: pa.Array
    item_shares: Floats
    regions: pa.Array
    region_shares: Floats
    users: pa.Array
    ends_ms: Floats  # hours of the span: where they end, and the share of the plays before that
    shares_before: Floats

    @classmethod
    def of(cls, shape: Shape) -> "_Names":
        ends, before = _intensity(shape.start, shape.end)
        return cls(
            items=pa.array([*_item_names(shape.items), HOT_ITEM]),
            item_shares=zipf_shares(shape.items, shape.skew),
            regions=pa.array(shape.regions),
            region_shares=zipf_shares(len(shape.regions), 1.0),
            users=pa.array([f"listener-{number:06d}" for number in range(shape.users)]),
            ends_ms=ends,
            shares_before=before,
        )


def made_up(events: int, *, seed: int, shape: Shape | None = None) -> Iterator[pa.Table]:
    """Yield rows in the order in which they come in: event time grows but for the late ones and the repeats.

    Columns: `event_id, item_id, region, user_id, event_time` (milliseconds, UTC), `duration_ms`.

    Args:
        events: How many rows, repeats included.
        seed: Rows of two seeds share no id.
        shape: What they are like.
    """
    shape = shape or Shape()
    names = _Names.of(shape)
    for number, first in enumerate(range(0, events, BATCH_ROWS)):
        rows = min(BATCH_ROWS, events - first)
        yield _batch(_Draws(seed, number), names, shape, rows=rows, span=(first / events, (first + rows) / events))


def _batch(draws: _Draws, names: _Names, shape: Shape, *, rows: int, span: tuple[float, float]) -> pa.Table:
    """Return one batch; `span` is the share of all plays before it, and up to its end."""
    times = _times(draws, names, rows, span)
    times = _made_late(draws, times, shape)
    items = _drawn(draws, names.item_shares, rows)
    items[draws.shares(rows) < shape.hot_share] = shape.items
    regions = _drawn(draws, names.region_shares, rows)
    users = draws.up_to(shape.users, rows)
    durations = _SHORTEST_MS + draws.up_to(_LONGEST_MS - _SHORTEST_MS, rows)
    ids = draws.ids(rows)
    origin, is_conflict = _origins(draws, rows, shape.duplicate_share)
    items = np.where(is_conflict, (items[origin] + 1) % (shape.items + 1), items[origin])
    return pa.table(
        {
            "event_id": ids.take(pa.array(origin)),
            "item_id": names.items.take(pa.array(items)),
            "region": names.regions.take(pa.array(regions[origin])),
            "user_id": names.users.take(pa.array(users[origin])),
            "event_time": pa.array(times[origin]).cast(pa.timestamp("ms", "UTC")),
            "duration_ms": pa.array(durations[origin]),
        }
    )


def _times(draws: _Draws, names: _Names, rows: int, span: tuple[float, float]) -> Int64s:
    """Return growing times in milliseconds since 1970 UTC, dense where the hour is busy."""
    begin, end = span
    shares = np.sort(begin + draws.shares(rows) * (end - begin))
    return np.interp(shares, names.shares_before, names.ends_ms).astype(np.int64)


def _made_late(draws: _Draws, times: Int64s, shape: Shape) -> Int64s:
    """Move some plays back in event time, short delays more often than long ones, none before the start."""
    is_late = draws.shares(len(times)) < shape.late_share
    stretch = np.log(_MOST_LATE_MS / _LEAST_LATE_MS)
    delays = (_LEAST_LATE_MS * np.exp(draws.shares(len(times)) * stretch)).astype(np.int64)
    is_late &= times - delays >= milliseconds(shape.start)
    return np.where(is_late, times - delays, times)


def _origins(draws: _Draws, rows: int, share: float) -> tuple[Int64s, Mask]:
    """Return the row each row repeats, itself when it is new, and which ones repeat with another item."""
    is_new = draws.shares(rows) >= share
    is_new[0] = True
    new_rows = np.flatnonzero(is_new)
    new_before = np.cumsum(is_new)
    chosen = (draws.shares(rows) * new_before).astype(np.int64)
    origin = np.where(is_new, np.arange(rows), new_rows[np.minimum(chosen, new_before - 1)])
    return origin, ~is_new & (draws.shares(rows) < CONFLICT_SHARE)


def _drawn(draws: _Draws, shares: Floats, rows: int) -> Int64s:
    return drawn(shares, draws.shares(rows))


def _intensity(start: datetime, end: datetime) -> tuple[Floats, Floats]:
    """Return the ends of the span's hours in milliseconds since 1970 UTC, and the share of the plays before each."""
    first, last = milliseconds(start), milliseconds(end)
    inner = np.arange((first // _HOUR_MS + 1) * _HOUR_MS, last, _HOUR_MS)
    ends = np.concatenate(([first], inner, [last])).astype(np.float64)
    hours = (ends[:-1] // _HOUR_MS % 24).astype(np.int64)
    weights = np.diff(ends) * np.array(HOURS)[hours]
    before = np.concatenate(([0.0], np.cumsum(weights)))
    return ends, before / before[-1]


def _item_names(items: int) -> list[str]:
    """Return names of which every tenth is no ASCII."""
    return [f"{'Été' if number % 10 == 0 else 'Song'} {number:06d}" for number in range(items)]


def _hex_texts(identity: npt.NDArray[np.uint8]) -> pa.Array:
    """Return each row of bytes as text in hex, made in one piece."""
    rows, width = identity.shape[0], 2 * identity.shape[1]
    digits = np.stack((_HEX[identity >> 4], _HEX[identity & 15]), axis=-1).reshape(rows * width)
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits))


def iso_texts(times: pa.Array) -> pa.Array:
    """Return moments in UTC as ISO 8601 with milliseconds, `2026-03-02T00:00:00.123Z`."""
    return pc.utf8_replace_slice(times.cast(pa.string()), start=10, stop=11, replacement="T")
