"""Lakes for tests of the batch side: bronze rows of the model, counted by the real job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from domain.policy import DEFAULT_POLICY, Policy
from domain.rules import Rules
from domain.table import Table
from domain.tables import DERIVED, PLAYS, RESTATEMENTS
from ingest.arrow import arrow_schema
from ingest.lake_reader import LakeReader
from ingest.lake_writer import BronzeWriter
from jobs.recount import RecountReport, RecountRequest, run
from tests.lake_rows import WRITER, Row
from tests.lakes import ModelLake

Rows = list[tuple[Any, ...]]
NO_RULES = Rules()


def received(lake_root: Path, rows: Sequence[Row], *, seq: int, writer: str = WRITER) -> None:
    """Commit rows to bronze as one transaction, through the real writer."""
    bronze = BronzeWriter(lake_root)
    bronze.create()
    stamped = [{**row, "writer": writer, "writer_seq": seq} for row in rows]
    bronze.append(PLAYS, pa.Table.from_pylist(stamped, schema=arrow_schema(PLAYS)), writer=writer, seq=seq)


def request_of(
    lake_root: Path,
    now: datetime,
    *,
    rules: Rules = NO_RULES,
    policy: Policy = DEFAULT_POLICY,
    full: bool = False,
    cause: str | None = None,
) -> RecountRequest:
    return RecountRequest(lake_root=lake_root, rules=rules, clock=lambda: now, code_version="test", policy=policy,
                          full=full, cause=cause)  # fmt: skip


def recount(
    spark: SparkSession,
    lake_root: Path,
    now: datetime,
    *,
    on_step: Callable[[str], None] = lambda step: None,
    **options: Any,
) -> RecountReport:
    return run(spark, request_of(lake_root, now, **options), on_step=on_step)


def released(lake_root: Path, table: Table, *, without: Iterable[str] = ()) -> Rows:
    """All rows of a table as the newest release names it, sorted; NULLs first."""
    columns = [name for name in table.column_names if name not in set(without)]
    with LakeReader(lake_root) as reader:
        scan = reader.table(table).scan()
        listed = ", ".join(f'"{name}"' for name in columns)
        return by_value(reader.files.rows(f"SELECT {listed} FROM {scan}"))


def by_value(rows: Iterable[Sequence[Any]]) -> Rows:
    return sorted((tuple(row) for row in rows), key=lambda row: [(value is not None, str(value)) for value in row])


def tables(lake_root: Path) -> Mapping[str, Rows]:
    """Every derived table as released."""
    return {table.name: released(lake_root, table) for table in DERIVED}


def said_by(model: ModelLake, table: Table, *, without: Iterable[str] = ()) -> Rows:
    """The rows a model expects, in the same form as `released`."""
    columns = [name for name in table.column_names if name not in set(without)]
    return by_value([row[name] for name in columns] for row in model.rows[table.name])


def assert_equals_model(lake_root: Path, model: ModelLake) -> None:
    """Every derived table says what the model says; causes of restatements are tested on their own."""
    for table in DERIVED:
        without = ("cause",) if table is RESTATEMENTS else ()
        assert released(lake_root, table, without=without) == said_by(model, table, without=without), table.name
