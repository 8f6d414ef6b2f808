"""What bronze really holds of a file: counted in the tables themselves, not remembered."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from domain.events import Reject
from domain.tables import PLAYS, REJECTS
from ingest.importers.request import RowsDoNotAddUpError
from ingest.manifest import log_id
from ingest.read_files import LakeFiles, PinnedTable, statistics

_MEMORY = "400MB"  # beyond it DuckDB spills to disk


class Held:
    """Counts the rows of one lake that came from a file or source; a table that is not there has none."""

    def __init__(self, lake_root: Path) -> None:
        self._lake_root = lake_root

    def plays(self, writer: str) -> int:
        """Return the rows of `bronze/plays` that this writer committed."""
        with _opened(self._lake_root) as files:
            mine = _files_with(files.pin(PLAYS), self._lake_root, "writer", writer)
            sql = f"SELECT count(*) FROM {mine.scan()} WHERE writer = $writer"  # noqa: S608  no text of a caller
            return int(files.rows(sql, {"writer": writer})[0][0])

    def rejects(self, writer: str) -> Counter[Reject]:
        """Return the rows of `bronze/rejects` that this writer committed, by reason."""
        with _opened(self._lake_root) as files:
            mine = _files_with(files.pin(REJECTS), self._lake_root, "writer", writer)
            sql = f"SELECT reason, count(*) FROM {mine.scan()} WHERE writer = $writer GROUP BY reason"  # noqa: S608
            return Counter({Reject(reason): int(rows) for reason, rows in files.rows(sql, {"writer": writer})})

    def repeated(self, source: str) -> Mapping[int, int] | None:
        """Return, by file number, the plays of a source whose event id an earlier play of it has. Exact.

        None where that cannot be known.
        """
        with _opened(self._lake_root) as files:
            plays = _files_with(files.pin(PLAYS), self._lake_root, "log_id", log_id(source)).scan()
            sql = f"""
                WITH rows AS (SELECT log_partition, event_id FROM {plays} WHERE log_id = $log),
                  firsts AS (SELECT min(log_partition) AS log_partition FROM rows GROUP BY event_id),
                  counted AS (SELECT log_partition, count(*) AS n FROM rows GROUP BY log_partition),
                  first_counted AS (SELECT log_partition, count(*) AS n FROM firsts GROUP BY log_partition)
                SELECT log_partition, counted.n - coalesce(first_counted.n, 0)
                FROM counted LEFT JOIN first_counted USING (log_partition)"""  # noqa: S608  no text of a caller
            return {int(number): int(n) for number, n in files.rows(sql, {"log": log_id(source)})}


def require_equal(source: str, what: str, *, expected: int, found: int) -> None:
    """Compare what was read with what is held.

    Raises:
        RowsDoNotAddUpError: they differ.
    """
    if expected != found:
        raise RowsDoNotAddUpError(source, what, expected, found)


@contextmanager
def _opened(lake_root: Path) -> Iterator[LakeFiles]:
    with LakeFiles(lake_root, memory_limit=_MEMORY) as files:
        yield files


def _files_with(pinned: PinnedTable, lake_root: Path, column: str, value: str) -> PinnedTable:
    """Return the table with only the files that may hold this value, by their statistics."""
    if pinned.version is None:
        return pinned
    delta = DeltaTable(lake_root / pinned.table.name, version=pinned.version)
    facts = statistics(delta, "path", f"min.{column}", f"max.{column}")
    spans = dict(zip(facts["path"], zip(facts[f"min.{column}"], facts[f"max.{column}"], strict=True), strict=True))
    kept = tuple(file for file in pinned.files if _may_hold(spans[file.path], value))
    return replace(pinned, files=kept)


def _may_hold(span: tuple[str | None, str | None], value: str) -> bool:
    """Compare with the smallest and largest text of a file, of which only the beginning may be kept."""
    smallest, largest = span
    if smallest is None or largest is None:
        return True
    return smallest <= value and value[: len(largest)] <= largest
