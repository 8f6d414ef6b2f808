"""The live counting rules said plainly, over lists of plays: what the buckets are compared with."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from domain.batch_view import HOURS_IN_VIEW, BatchView, RegionView, narrowed
from domain.live_windows import LiveWindow
from domain.rules import Rules
from domain.speed_policy import SpeedPolicy
from domain.windows import DAY, EPOCH, HOUR
from speed_layer.play_batch import NOT_SAID, PlayBatch

US = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Played:
    """A play of the log: `position` counts entries, `logged` is the log's time."""

    position: int
    logged: datetime
    event: int
    item: str
    region: str
    happened: datetime | None
    duration_ms: int | None = None
    count: int = 1

    @property
    def at(self) -> datetime:
        return self.happened or self.logged

    @property
    def version(self) -> int:
        return (self.logged - EPOCH) // timedelta(milliseconds=1) * 2**20 + self.position


def batch_of(plays: Sequence[Played]) -> PlayBatch:
    def numbers(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, dtype=np.int64)

    return PlayBatch(
        positions=numbers([play.version for play in plays]),
        id_hashes=(np.array([play.event for play in plays], dtype=np.uint64) + np.uint64(1))
        * np.uint64(0x9E3779B97F4A7C15),
        items=[play.item for play in plays],
        regions=[play.region for play in plays],
        event_times_us=numbers(
            [NOT_SAID if play.happened is None else (play.happened - EPOCH) // US for play in plays]
        ),
        durations_ms=numbers([NOT_SAID if play.duration_ms is None else play.duration_ms for play in plays]),
        counts=numbers([play.count for play in plays]),
    )


class LiveModel:
    """All plays that count, and sums over them."""

    def __init__(self, policy: SpeedPolicy, rules: Rules) -> None:
        self.policy = policy
        self.rules = rules
        self.counted: list[Played] = []
        self.sent: list[Played] = []  # the same with the regions that were sent, as batch counts them
        self.frontier: datetime | None = None
        self.offset = -1
        self._last: dict[int, datetime] = {}

    def read(self, play: Played, regions: Collection[str]) -> None:
        """Count a play after the partition has, which has these regions: others are counted in ZZ."""
        minute = EPOCH + (play.logged - EPOCH) // MINUTE * MINUTE
        before = self._last.get(play.event)
        self._last[play.event] = minute
        if before is not None and before >= minute - self.policy.retry_window:
            return
        if self.rules.too_short(play.at, play.duration_ms):
            return
        self.sent.append(play)
        self.counted.append(play if play.region in regions else replace(play, region="ZZ"))

    def of_window(self, kind: LiveWindow, as_of: datetime, *, as_sent: bool = False) -> dict[str, Counter[str]]:
        """Region -> item -> plays of the window that are not in batch's view; no region folded when `as_sent`."""
        window = kind.at(as_of)
        truth: dict[str, Counter[str]] = {}
        for play in self.sent if as_sent else self.counted:
            in_view = (
                kind is LiveWindow.DAY
                and self.frontier is not None
                and play.at < self.frontier
                and play.version <= self.offset
            )
            if window.contains(play.at) and not in_view:
                for region in ("*", play.region):
                    truth.setdefault(region, Counter())[play.item] += play.count
        return truth


def view_of(
    sent: Sequence[tuple[Played, int]], frontier: datetime, offsets: Mapping[int, int], *, most: int, version: str = "v"
) -> BatchView:
    """What batch says of plays with their partition: those of 24 hours before the frontier that it has read."""
    hourly: dict[str, dict[str, list[int]]] = {}
    for play, partition in sent:
        hour = (play.at - (frontier - DAY)) // HOUR
        if 0 <= hour < HOURS_IN_VIEW and play.version <= offsets[partition]:
            for region in ("*", play.region):
                counts = hourly.setdefault(region, {}).setdefault(play.item, [0] * HOURS_IN_VIEW)
                counts[hour] += play.count
    return BatchView(
        version=version,
        release=1,
        frontier=frontier,
        log_id="log",
        offsets={f"log/{partition}": offset for partition, offset in offsets.items()},
        regions={region: _region_view(counts, most) for region, counts in hourly.items()},
    )


def _region_view(counts: Mapping[str, Sequence[int]], most: int) -> RegionView:
    order = sorted(counts, key=lambda item: (-sum(counts[item]), item.encode()))
    return RegionView(
        item_ids=order[:most],
        hourly=narrowed(np.array([counts[item] for item in order[:most]], dtype=np.int64)),
        residual=sum(counts[order[most]]) if len(order) > most else 0,
        totals=np.array(list(counts.values()), dtype=np.int64).sum(axis=0),
    )


def certified_through(plays: Sequence[Played], index: int, grace: timedelta) -> tuple[datetime, int]:
    """Frontier and offset of a batch that has read the log up to a play, included."""
    read_to = plays[index].logged
    return EPOCH + (read_to - grace - EPOCH) // HOUR * HOUR, plays[index].version


HOURS_BACK = DAY
START = datetime(2026, 11, 14, 9, 58, 20, tzinfo=UTC)
