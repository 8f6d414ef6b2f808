"""How fast is `lakeboard import`? A made-up CSV (plain, gzip, all texts in quotes) beside DuckDB's read_csv to Parquet.

The importer also judges every row, hashes it, numbers it by file and row, commits it exactly once and counts in
the tables what it wrote; DuckDB parses and writes, and checks nothing. So the ratio says what all of that costs.

  python -m bench.import_speed --rows 200000
"""

import argparse
import gzip
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from bench.children import in_child, peak_memory_bytes
from bench.made_up import START, batches
from bench.report import print_machine, print_table, rate, ratio, require_equal, say
from ingest.importers.request import ImportRequest
from ingest.importers.run import import_files

ROWS = 1_000_000
_BATCH_ROWS = 250_000
_SPAN = timedelta(days=2)
_MIB = 1 << 20
_GZIP_LEVEL = 6
_FILES = ("plain.csv", "gzip.csv.gz", "quoted.csv")
_DUCKDB_TYPES = {
    "id": "VARCHAR",
    "played_at": "TIMESTAMPTZ",
    "title": "VARCHAR",
    "country": "VARCHAR",
    "listener": "VARCHAR",
    "ms_played": "BIGINT",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one import took: rows in the result, seconds, peak memory of its process."""

    rows: int
    seconds: float
    peak_bytes: int


def write_files(folder: Path, rows: int) -> None:
    """Write made-up plays as CSV: plain, the same with gzip, and with every text in quotes."""
    with (folder / "plain.csv").open("wb") as plain, (folder / "quoted.csv").open("wb") as quoted:
        for number, batch in enumerate(batches(rows, of_rows=_BATCH_ROWS, span=_SPAN)):
            exported = _as_exported(batch.said)
            for file, style in ((plain, "none"), (quoted, "needed")):
                options = csv.WriteOptions(include_header=number == 0, quoting_style=style)
                csv.write_csv(exported, file, options)
    with (
        (folder / "plain.csv").open("rb") as source,
        gzip.open(folder / "gzip.csv.gz", "wb", compresslevel=_GZIP_LEVEL) as packed,
    ):
        shutil.copyfileobj(source, packed, _MIB)


def import_with_lakeboard(path: Path, lake_root: Path) -> Measured:
    """Import a file into a new lake."""
    request = ImportRequest(
        files=(path,),
        item="title",
        time="played_at",
        region="country",
        user="listener",
        event_id="id",
        duration="ms_played",
    )
    began = time.perf_counter()
    summary = import_files(request, lake_root=lake_root, clock=lambda: START + _SPAN)
    seconds = time.perf_counter() - began
    return Measured(sum(file.accepted for file in summary.files), seconds, peak_memory_bytes())


def import_with_duckdb(path: Path, target: Path) -> Measured:
    """Parse the same file and write it as one Parquet file."""
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in _DUCKDB_TYPES.items())
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # it would stand in our tables
        connection.execute("SET TimeZone = 'UTC'")
        began = time.perf_counter()
        connection.execute(
            f"""COPY (SELECT * FROM read_csv('{path}', header = true, columns = {{{types}}}))
            TO '{target}' (FORMAT parquet, COMPRESSION zstd)"""  # noqa: S608  paths and types of our own
        )
        seconds = time.perf_counter() - began
        rows = connection.execute(f"SELECT count(*) FROM read_parquet('{target}')").fetchall()[0][0]  # noqa: S608
    return Measured(rows, seconds, peak_memory_bytes())


def run(rows: int) -> None:
    """Make the files, measure, print the table."""
    with tempfile.TemporaryDirectory(prefix="lakeboard-bench-") as name:
        folder = Path(name)
        say(f"import_speed: writing {rows:,} rows of CSV, three times")
        in_child(write_files, folder, rows)
        lines = [line for file in _FILES for line in _compared(folder / file, rows)]
    print_table(
        f"Import of {rows:,} rows of CSV",
        ["engine, file", "MiB", "seconds", "events/s", "MiB/s", "peak MiB", "rate / DuckDB"],
        lines,
        remark="Each in a process of its own. DuckDB parses and writes; the importer also judges, hashes and commits.",
    )


def _compared(path: Path, rows: int) -> list[Sequence[str]]:
    """Return a line for each engine on one file."""
    kind = path.name.split(".")[0]
    say(f"import_speed: lakeboard, {kind}")
    ours = in_child(import_with_lakeboard, path, path.with_name(f"lake-{kind}"))
    say(f"import_speed: DuckDB, {kind}")
    theirs = in_child(import_with_duckdb, path, path.with_name(f"{kind}.parquet"))
    require_equal(f"rows that lakeboard took from {path.name}", expected=rows, found=ours.rows)
    require_equal(f"rows that DuckDB took from {path.name}", expected=rows, found=theirs.rows)
    size = path.stat().st_size
    return [_line(f"lakeboard, {kind}", ours, theirs, size), _line(f"DuckDB, {kind}", theirs, theirs, size)]


def _line(name: str, one: Measured, peer: Measured, size: int) -> Sequence[str]:
    megabytes = size / _MIB
    return [
        name,
        f"{megabytes:,.0f}",
        f"{one.seconds:.2f}",
        rate(one.rows, one.seconds),
        f"{megabytes / one.seconds:,.1f}",
        f"{one.peak_bytes / _MIB:,.0f}",
        ratio(peer.seconds, one.seconds),
    ]


def _as_exported(said: pa.Table) -> pa.Table:
    """Return plays under the names and in the forms that an exporting service would use."""
    return pa.table(
        {
            "id": said.column("event_id"),
            "played_at": pc.strftime(said.column("event_time"), format="%Y-%m-%dT%H:%M:%SZ"),
            "title": said.column("item_id"),
            "country": said.column("region"),
            "listener": said.column("user_id"),
            "ms_played": said.column("duration_ms"),
        }
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.import_speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the CSV (default: %(default)s)")
    arguments = parser.parse_args(argv)
    print_machine()
    run(arguments.rows)


if __name__ == "__main__":
    main()
