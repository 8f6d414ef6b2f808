"""What Spark read, by its own metrics: files and rows of each table, step by step."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

# Plans must show a path in full, and no query may be forgotten before it is asked for.
CONFIGURATION = {"spark.sql.maxMetadataStringLength": "2000", "spark.sql.ui.retainedExecutions": "100000"}
LOGS = "logs of the tables"
_LOCATION = re.compile(r"Location: \S+\(\d+ paths?\)\[file:([^\],]+)")
_FILES = "number of files read"
_ROWS = "number of output rows"


@dataclass(slots=True)
class Read:
    """Files opened and rows that left the scan: after skipping by folders and statistics, before any filter."""

    files: int = 0
    rows: int = 0


class Scans:
    """Collects the scans of one session, from its making on.

    Spark keeps them for its user interface, whether that is shown or not.
    """

    def __init__(self, spark: SparkSession, lake_root: Path) -> None:
        # No public way leads there: the metrics of finished queries are in the JVM only.
        self._context: Any = spark.sparkContext._jsc.sc()
        self._store: Any = spark._jsparkSession.sharedState().statusStore()
        self._root = str(lake_root)
        self._seen = self._finished()

    def take(self) -> dict[str, Read]:
        """Return what was read since the last call, by table; all tables' logs count as one."""
        first, self._seen = self._seen, self._finished()
        reads: dict[str, Read] = defaultdict(Read)
        for execution in self._executions(first, self._seen):
            for location, metrics in self._scans(execution.executionId()):
                read = reads[self._table(location)]
                read.files += metrics.get(_FILES, 0)
                read.rows += metrics.get(_ROWS, 0)
        return dict(reads)

    def _finished(self) -> int:
        """Return how many queries there were, once everything they told has arrived."""
        self._context.listenerBus().waitUntilEmpty()
        return int(self._store.executionsCount())

    def _executions(self, first: int, end: int) -> Iterator[Any]:
        if end > first:  # a list of none cannot be asked for
            yield from _items(self._store.executionsList(first, end - first))

    def _scans(self, execution: int) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield the location and the metrics of each scan of files in a query."""
        values = self._store.executionMetrics(execution)
        for node in _items(self._store.planGraph(execution).allNodes()):
            if found := _LOCATION.search(node.desc()):
                yield found[1], {metric.name(): _number(values, metric) for metric in _items(node.metrics())}

    def _table(self, location: str) -> str:
        if "/_delta_log" in location:
            return LOGS
        room, table = location.removeprefix(f"{self._root}/").split("/")[:2]  # files are named one by one too
        return f"{room}/{table}"


def _items(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def _number(values: Any, metric: Any) -> int:
    """Return a metric that is a sum; those of sizes and times are texts of another form and not asked for."""
    found = values.get(metric.accumulatorId())
    digits = found.get().replace(",", "") if found.isDefined() else "0"
    return int(digits) if digits.isdigit() else 0
