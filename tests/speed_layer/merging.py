"""Several partitions that count for real, what each said last, and the same said plainly: what the merger is given."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.batch_view import BatchView
from domain.live_chart import LiveChart, LiveMoment
from domain.live_windows import LiveWindow
from domain.rules import Rules
from domain.speed_policy import SpeedPolicy
from domain.windows import EPOCH, HOUR
from speed_layer.changes import ChangedList
from speed_layer.merger import Cycle, Merger, Name, Said
from speed_layer.partition import LivePartition
from speed_layer.store.lists import PartitionStatus
from tests.speed_layer.live_model import LiveModel, Played, batch_of, view_of

MS = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
Truth = Mapping[LiveWindow, Mapping[str, Counter[str]]]


def partition_of(item: str, partitions: int) -> int:
    """Where a test's items live; Python's own text hash is another one in each process."""
    return sum(item.encode()) % partitions


def status_of(as_of: datetime, **other: object) -> PartitionStatus:
    """A status of a partition that is well, but for what is said of it."""
    plain: dict[str, object] = {
        "log_id": "log",
        "position": -1,
        "as_of_ms": (as_of - EPOCH) // MS,
        "complete_from_ms": 0,
        "view": None,
        "frontier_hour": None,
        "folding": False,
        "policy": "p",
        "cycle": 1,
        "written_ms": 0,
    }
    return PartitionStatus(**{**plain, **other})  # type: ignore[arg-type]  # of many kinds


@dataclass
class Saying:
    """One partition that counts for real, and what it says of itself."""

    policy: SpeedPolicy
    live: LivePartition = field(init=False)
    status: PartitionStatus | None = None
    handed: dict[str, tuple[BatchView, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.live = LivePartition(self.policy)

    def read(self, plays: Sequence[Played]) -> None:
        self.live.count(batch_of(plays))

    def certify(self, view: BatchView, own: BatchView, offset: int) -> None:
        """Be handed a view, of which `own` has the items of this partition: it is used once the log has come to it."""
        if self.live.certified(own, offset=offset):
            self.handed[view.version] = (view, offset)

    def publish(self, **other: object) -> Said:
        changed = {(one.kind, one.region): one if one.total else None for one in self.live.changed()}
        of_view: dict[str, object] = {}
        if self.live.view is not None:
            view, _ = self.handed[self.live.view]
            of_view = {"view": view.version, "frontier_hour": (view.frontier - EPOCH) // HOUR}
        self.status = status_of(self.live.as_of, folding=self.live.regions.folding, **of_view, **other)
        return Said(status=self.status, changed=changed)


@dataclass
class Counting(Saying):
    """The same said plainly too, and both as of when it published last."""

    model: LiveModel = field(init=False)
    plain: LiveModel = field(init=False)  # regions as sent, none folded into ZZ
    truth: Truth = field(default_factory=dict)
    unfolded: Truth = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model = LiveModel(self.policy, Rules())
        self.plain = LiveModel(self.policy, Rules())

    def read(self, plays: Sequence[Played]) -> None:
        super().read(plays)
        for play in plays:
            self.model.read(play, self.live.regions.names)
            self.plain.read(play, {play.region})

    def publish(self, **other: object) -> Said:
        found = super().publish(**other)
        if self.live.view is not None:
            view, offset = self.handed[self.live.view]
            self.model.frontier = self.plain.frontier = view.frontier
            self.model.offset = self.plain.offset = offset
        self.truth = {kind: self.model.of_window(kind, self.live.as_of) for kind in LiveWindow}
        self.unfolded = {kind: self.plain.of_window(kind, self.live.as_of) for kind in LiveWindow}
        return found


class Merging:
    """A merger over partitions that count for real.

    Attributes:
        charts: Those that are ready.
        moments: What the merger said of each window last.
        truths: Of each window, when its charts were made last: by partition what is counted, regions as counted and
            as sent.
        as_of: The same of the moment of each partition.
        of_batch: The same of what comes from batch.
    """

    def __init__(self, partitions: int, policy: SpeedPolicy) -> None:
        self.parts = [Counting(policy) for _ in range(partitions)]
        self.views: dict[str, BatchView] = {}
        self.sent: list[tuple[Played, int]] = []
        self.charts: dict[Name, LiveChart] = {}
        self.moments: Mapping[LiveWindow, LiveMoment] = {}
        self.truths: dict[LiveWindow, list[tuple[Mapping[str, Counter[str]], Mapping[str, Counter[str]]]]] = {}
        self.as_of: dict[LiveWindow, list[datetime | None]] = {}
        self.of_batch: dict[LiveWindow, dict[str, Counter[str]]] = {}
        self.merger = Merger(
            partitions=partitions,
            partition_of=self.partition_of,
            list_size=policy.list_size,
        )

    def read(self, plays: Sequence[Played]) -> None:
        """Count plays, each in the partition of its item."""
        for number, part in enumerate(self.parts):
            part.read([play for play in plays if partition_of(play.item, len(self.parts)) == number])
        self.sent += [(play, partition_of(play.item, len(self.parts))) for play in plays]

    def publish_view(self, frontier: datetime, *, most: int) -> None:
        """Let batch certify all that the partitions have read."""
        offsets = {number: part.live.position for number, part in enumerate(self.parts)}
        version = f"v{len(self.views)}"
        self.views[version] = view_of(self.sent, frontier, offsets, most=most, version=version)

    def take_view(self, number: int) -> None:
        """Let a partition take over the newest view."""
        view = list(self.views.values())[-1]
        own = view.split(self.partition_of, len(self.parts))[number]
        self.parts[number].certify(view, own, view.offset("log", number))

    def partition_of(self, items: Sequence[str]) -> list[int]:
        return [partition_of(item, len(self.parts)) for item in items]

    def batch_truth(self, view: BatchView, start: datetime) -> dict[str, Counter[str]]:
        """What is before the frontier of a view and not before `start`, region by region."""
        truth: dict[str, Counter[str]] = {}
        for play, partition in self.sent:
            if start <= play.at < view.frontier and play.version <= view.offset("log", partition):
                for region in ("*", play.region):
                    truth.setdefault(region, Counter())[play.item] += play.count
        return truth

    def cycle(self, publishing: Sequence[int] | None = None) -> Cycle:
        """Let some partitions publish, all by default, and merge; asks are answered at once, as far as they go."""
        numbers = range(len(self.parts)) if publishing is None else publishing
        found = self.merger.cycle({number: self.parts[number].publish() for number in numbers}, self.views)
        self.take(found)
        return found

    def take(self, found: Cycle) -> None:
        for kind, moment in found.moments.items():
            if moment is not self.moments.get(kind):  # while the partitions do not fit together, all stays
                self.truths[kind] = [(p.truth.get(kind, {}), p.unfolded.get(kind, {})) for p in self.parts]
                self.as_of[kind] = [None if p.status is None else p.status.as_of for p in self.parts]
                view = self.view_in_force(kind)
                self.of_batch[kind] = {} if view is None else self.batch_truth(view, moment.window.start)
        self.moments = found.moments
        for name, chart in found.charts.items():
            if chart is None:
                del self.charts[name]
            else:
                self.charts[name] = chart

    def view_in_force(self, kind: LiveWindow) -> BatchView | None:
        """The view that the charts of a window were joined with last."""
        joined_as = self.merger._joined_as[kind]
        assert isinstance(joined_as, tuple)
        version: str | None = joined_as[2]
        return None if version is None else self.views[version]


AT = datetime.fromisoformat("2026-11-15T00:01:30Z")


def said(
    rows: Mapping[str, int],
    *,
    kind: LiveWindow = LiveWindow.HOUR,
    region: str = "*",
    at: datetime = AT,
    **status: object,
) -> Said:
    """An exact list of one partition."""
    listed = ChangedList(
        kind=kind,
        window=kind.at(at),
        region=region,
        frontier=None,
        item_ids=list(rows),
        lower=list(rows.values()),
        upper=list(rows.values()),
        cut=None,
        residual=0,
        total=sum(rows.values()),
    )
    return Said(status=status_of(at, **status), changed={(kind, region): listed})


def merger(partitions: int) -> Merger:
    return Merger(partitions=partitions, partition_of=lambda items: [0 for _ in items], list_size=128)
