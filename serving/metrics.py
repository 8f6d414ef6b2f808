"""The API's own numbers. Import it only after `serving.settings.use_metrics_folder`, which it depends on."""

from bisect import bisect_left
from collections import Counter as Numbers
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

REQUESTS = Counter("lakeboard_http_requests_total", "Requests answered, by route and status.", ["route", "status"])
_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SCORE_SECONDS = Histogram(
    "lakeboard_score_seconds",
    "From the request to the answer of taken scores, most of it waiting for the disk and for the boards.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)
ACCEPT_SECONDS = Histogram(
    "lakeboard_accept_seconds",
    "From the head of a request with events to its 202: reading, checking and the disk.",
    buckets=_BOUNDS,
)
ACCEPTED = Counter("lakeboard_events_accepted_total", "Events appended to the log, on disk.")
DUPLICATES = Counter("lakeboard_events_duplicates_total", "Events said twice in one request, appended once.")
ROWS_REFUSED = Counter("lakeboard_rows_refused_total", "Rows that were not taken, by code.", ["code"])
REFUSED = Counter("lakeboard_requests_refused_total", "Requests that were not served, by code.", ["code"])


class Tally:
    """What this worker counted since the last flush: writing to the shared files costs more than a plain number.

    A worker that is killed takes with it what it had not flushed.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._requests: Numbers[tuple[str, int]] = Numbers()
        self._events = 0
        self._duplicates = 0
        self._seconds = 0.0
        self._in_bucket = [0] * (len(_BOUNDS) + 1)

    def answered(self, route: str, status: int) -> None:
        """Count an answer."""
        self._requests[route, status] += 1

    def accepted(self, events: int, *, duplicates: int, seconds: float) -> None:
        """Count a request whose events are on disk."""
        self._events += events
        self._duplicates += duplicates
        self._seconds += seconds
        self._in_bucket[bisect_left(_BOUNDS, seconds)] += 1

    def flush(self) -> None:
        """Hand over to the files that all workers share."""
        for (route, status), number in self._requests.items():
            REQUESTS.labels(route, str(status)).inc(number)
        ACCEPTED.inc(self._events)
        DUPLICATES.inc(self._duplicates)
        ACCEPT_SECONDS._sum.inc(self._seconds)  # it has no way to take many at once
        for bucket, number in zip(ACCEPT_SECONDS._buckets, self._in_bucket, strict=True):
            if number:
                bucket.inc(number)
        self._begin()


def new_metrics_folder(folder: Path) -> None:
    """Begin all numbers at 0: what a former run left would count as this one's."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.db"):
        file.unlink()


def exposition(folder: Path, *others: Collector) -> bytes:
    """Return the numbers of all workers, and of others, as Prometheus reads them."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]  # ships half of its types
    for other in others:
        registry.register(other)
    return generate_latest(registry)
