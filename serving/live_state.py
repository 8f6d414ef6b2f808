"""How far the live counting is, read from the views server when somebody asks for metrics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from domain.windows import EPOCH
from ingest.log_clock import EntryClock
from speed_layer.store.connection import connect
from speed_layer.store.publishing import Publishing
from speed_layer.store.views import ViewStore

_TIMEOUT_SECONDS = 2.0  # shorter than a scraper waits
_MS = timedelta(milliseconds=1)
_COPIES_SAYS = "Events of the 24 hours before the frontier that batch left out: sent again, or one id on two items."
_PLAYS_SAYS = "Plays read live, by what became of them: read, copy, excluded, counted, late, ahead, too_old, folded."


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """What is known of the live counting at one moment; a partition that has said nothing yet is absent.

    Attributes:
        lags: By partition number, how far the log's clock is ahead of what is counted and said.
        silences: By partition number, how long ago it said something.
        plays: By partition number, what became of its plays since its state began.
        copies: Events of the view in force that batch left out as copies, by reason.
    """

    lags: Mapping[int, timedelta]
    silences: Mapping[int, timedelta]
    plays: Mapping[int, Mapping[str, int]]
    copies: Mapping[str, int]


def read_live_state(address: str, partitions: Sequence[int], *, clock: EntryClock) -> LiveState:
    """Ask the views server.

    Args:
        address: Of the views server.
        partitions: Numbers of the partitions of the plays.
        clock: What stamps entries of the log.

    Raises:
        ViewsUnavailableError: it does not answer.
        UnknownListFormatError: another version of this program writes there.
    """
    with connect(address, timeout_seconds=_TIMEOUT_SECONDS) as views:
        now = EPOCH + views.now_ms() * _MS
        found = Publishing(views).read_statuses(partitions)
        store = ViewStore(views)
        view = store.current()
        meta = None if view is None else store.meta(view)
    statuses = {number: status for number, status in found.items() if status is not None}
    log_now, nothing = clock.of_server(now), timedelta(0)
    return LiveState(
        lags={number: max(log_now - status.as_of, nothing) for number, status in statuses.items()},
        silences={number: max(now - EPOCH - status.written_ms * _MS, nothing) for number, status in statuses.items()},
        plays={number: status.plays for number, status in statuses.items()},
        copies={} if meta is None else meta.copies,
    )


class LiveCollector(Collector):
    """The state as metrics."""

    def __init__(self, state: LiveState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield _by_partition(
            "lakeboard_live_lag_seconds", "How far the log's clock is ahead of what is counted live.", self._state.lags
        )
        yield _by_partition(
            "lakeboard_live_silence_seconds", "How long ago a partition said its lists.", self._state.silences
        )
        plays = CounterMetricFamily("lakeboard_live_plays", _PLAYS_SAYS, labels=["partition", "outcome"])
        for number, by_outcome in self._state.plays.items():
            for outcome, value in by_outcome.items():
                plays.add_metric([str(number), outcome], value)
        yield plays
        copies = GaugeMetricFamily("lakeboard_batch_copies", _COPIES_SAYS, labels=["reason"])
        for reason, number in self._state.copies.items():
            copies.add_metric([reason], number)
        yield copies


def _by_partition(name: str, says: str, values: Mapping[int, timedelta]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, says, labels=["partition"])
    for number, value in values.items():
        family.add_metric([str(number)], value.total_seconds())
    return family
