"""The log's numbers, read from its server when somebody asks for metrics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from domain.log import EntryId, Partition, Stream, TrimmedError
from domain.windows import EPOCH
from ingest.log_clock import EntryClock
from ingest.log_server import LogRoom
from ingest.redis_log import RedisLog

_TIMEOUT_SECONDS = 2.0  # shorter than a scraper waits
_LONG_AGO = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What is known of the log at one moment.

    Attributes:
        lengths: Entries in each partition.
        lags: By reader, the age of the oldest entry that it has not committed; zero when there is none.
        room: Memory and disk.
    """

    lengths: Mapping[Partition, int]
    lags: Mapping[str, timedelta]
    room: LogRoom


def read_log_state(address: str, *, clock: EntryClock, folder: Path | None, min_free_bytes: int) -> LogState:
    """Ask the server.

    Raises:
        LogUnavailableError: it does not answer.
        LogReplacedError: it was replaced while we asked.
        UnsafeLogServerError: its settings would lose accepted events.
    """
    with RedisLog.open(address, clock=clock, timeout_seconds=_TIMEOUT_SECONDS) as log:
        ends = log.end_offsets(Stream.PLAYS)
        return LogState(
            lengths={partition: number for stream in Stream for partition, number in log.lengths(stream).items()},
            lags={reader: _lag(log, reader, ends) for reader in log.readers()},
            room=log.room(folder=folder, min_free_bytes=min_free_bytes),
        )


def _lag(log: RedisLog, reader: str, ends: Mapping[Partition, EntryId]) -> timedelta:
    committed = log.offsets(reader, Stream.PLAYS)
    behind = {partition: offset for partition, offset in committed.items() if offset < ends[partition]}
    return max((_age_of_next(log, partition, offset) for partition, offset in behind.items()), default=_LONG_AGO)


def _age_of_next(log: RedisLog, partition: Partition, offset: EntryId) -> timedelta:
    """Return how old the first entry after an offset is."""
    try:
        reading = log.read(partition, after=offset, limit=1)
    except TrimmedError:  # its lease ended and the others went on: it starts over, and is as late as can be known
        return log.now() - _moment(offset)
    return reading.at - _moment(reading.entries[0].id) if reading.entries else _LONG_AGO


def _moment(entry: EntryId) -> datetime:
    return EPOCH + timedelta(milliseconds=entry.ms)


class LogCollector(Collector):
    """The state as metrics."""

    def __init__(self, state: LogState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        entries = GaugeMetricFamily("lakeboard_log_entries_total", "Entries held.", labels=["stream", "partition"])
        for partition, number in self._state.lengths.items():
            entries.add_metric([partition.stream.value, str(partition.number)], number)
        lags = GaugeMetricFamily(
            "lakeboard_log_lag_seconds", "Age of the oldest entry that a reader has not committed.", labels=["reader"]
        )
        for reader, lag in self._state.lags.items():
            lags.add_metric([reader], lag.total_seconds())
        yield entries
        yield lags
        yield from self._room()

    def _room(self) -> Iterator[Metric]:
        room = self._state.room
        yield GaugeMetricFamily("lakeboard_log_memory_bytes", "Memory of the log server in use.", room.used_bytes)
        yield GaugeMetricFamily("lakeboard_log_memory_limit_bytes", "Its limit; refused from 90 %.", room.max_bytes)
        if room.free_bytes is not None:
            yield GaugeMetricFamily("lakeboard_log_disk_bytes", "Its files on disk.", room.log_bytes)
            yield GaugeMetricFamily("lakeboard_log_disk_free_bytes", "Free beside them.", room.free_bytes)
