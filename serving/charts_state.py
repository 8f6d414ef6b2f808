"""How the merger is, as metrics."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from domain.live_windows import LiveWindow
from speed_layer.store.charts import ChartReading


class ChartsCollector(Collector):
    """What the views server said last of the charts; nothing before a merger has written."""

    def __init__(self, reading: ChartReading | None) -> None:
        self._reading = reading

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        if self._reading is None or self._reading.status is None:
            return
        status = self._reading.status
        as_of = GaugeMetricFamily(
            "lakeboard_charts_as_of_timestamp_seconds", "Log time up to which all was read.", labels=["window"]
        )
        partial = GaugeMetricFamily(
            "lakeboard_charts_partial_partitions", "Partitions of which not all is in.", labels=["window"]
        )
        for kind, moment in status.moments.items():
            as_of.add_metric([kind.value], moment.as_of.timestamp())
            partial.add_metric([kind.value], len({one.partition for one in moment.partial}))
        if (
            frontier := status.moments[LiveWindow.DAY].frontier if LiveWindow.DAY in status.moments else None
        ) is not None:
            says = "Batch's counts are in the live day up to here; far behind now: batch is late."
            yield GaugeMetricFamily("lakeboard_charts_frontier_timestamp_seconds", says, frontier.timestamp())
        yield as_of
        yield partial
        silent = max(self._reading.now_ms - status.written_ms, 0) / 1000
        yield GaugeMetricFamily("lakeboard_charts_silent_seconds", "Since the merger wrote last.", silent)
