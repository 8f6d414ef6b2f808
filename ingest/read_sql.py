"""Free SQL over the lake: one SELECT, read only, confined to the files of the newest release.

Two fences, each enough for what people try. First the parsed statement: since DuckDB 2.0 a `WITH` clause may
hold `COPY .. TO`, and table functions can run a query given as text, so only known kinds of queries and known
table functions pass. Then the engine: no access to any file but the release's own, no extensions, no Python
variables, and settings that cannot be changed back.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from domain.errors import BadRequestError
from ingest.lake_reader import LakeReader
from ingest.read_files import LakeFiles, LakeUnreadableError, PinnedTable

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLE_FUNCTIONS = frozenset(
    {"range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree",
     "duckdb_tables", "duckdb_views", "duckdb_columns", "duckdb_functions", "duckdb_types"}
)  # fmt: skip
_PIVOT = "PIVOT has to name its values with IN (..), or it is more than one query"
_LAKE = "a file of the lake"


class SqlRefusedError(BadRequestError):
    """A statement was given that is not one reading query."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"refused: {self.reason}; write one SELECT over the tables that `lakeboard tables` lists"


class SqlFailedError(BadRequestError):
    """DuckDB could not run a query."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.detail.rstrip('.!')}; see `lakeboard tables --columns TABLE` for names and types"


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """Column names, rows, and whether more rows than these were found."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    cut: bool


def run_sql(reader: LakeReader, sql: str, *, most: int | None) -> SqlAnswer:
    """Run one SELECT over the tables of the newest release and return up to `most` rows, all when it is None.

    Tables go by their short names (`charts`) and by their full ones (`gold.charts`). The reader is confined
    for good.

    Raises:
        SqlRefusedError: not exactly one reading query.
        SqlFailedError: DuckDB could not run it.
        LakeUnreadableError: a file of the release is missing or damaged.
    """
    connection = reader.files.connection
    refuse_all_but_select(connection, sql)
    tables = reader.tables()
    create_views(reader.files, tables)
    _confine(connection, tables)
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchall() if most is None else cursor.fetchmany(most + 1)
        columns = [column[0] for column in cursor.description or ()]
    except duckdb.IOException as error:
        raise LakeUnreadableError(_LAKE, _one_sentence(error)) from error
    except (duckdb.Error, ValueError, OverflowError) as error:
        raise SqlFailedError(_one_sentence(error)) from error
    return SqlAnswer(columns, rows if most is None else rows[:most], most is not None and len(rows) > most)


def create_views(files: LakeFiles, tables: Sequence[PinnedTable]) -> None:
    """Make each table readable as `charts` and as `gold.charts`.

    Raises:
        LakeUnreadableError: a file is missing or damaged.
    """
    for pinned in tables:
        room, name = pinned.table.name.split("/")
        files.rows(f"CREATE SCHEMA IF NOT EXISTS {room}")
        files.rows(f"CREATE VIEW {room}.{name} AS {pinned.scan()[1:-1]}")
        files.rows(f"CREATE VIEW main.{name} AS SELECT * FROM {room}.{name}")  # noqa: S608


def refuse_all_but_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Let a text pass only when it is one query that can do nothing but read.

    Raises:
        SqlRefusedError: it is not.
        SqlFailedError: it is no SQL.
    """
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise SqlFailedError(_one_sentence(error)) from error
    if len(statements) != 1:
        reason = f"{len(statements)} statements were given"
        raise SqlRefusedError(reason)
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = statements[0].type.name
        reason = _PIVOT if kind == "MULTI" else f"this is {kind}"
        raise SqlRefusedError(reason)
    parsed = json.loads(connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql]).fetchall()[0][0])
    if parsed["error"]:
        raise SqlRefusedError(str(parsed["error_message"]).rstrip(".!"))
    for reason in _objections(parsed):
        raise SqlRefusedError(reason)


def _objections(node: object) -> Iterator[str]:
    """Yield what is not allowed anywhere in a parsed query."""
    if isinstance(node, list):
        for part in node:
            yield from _objections(part)
    elif isinstance(node, dict):
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in _QUERIES:
            yield f"it holds {kind.removesuffix('_NODE').removesuffix('_QUERY')} inside a query"
        if kind == "TABLE_FUNCTION" and (name := _function_name(node)) not in _TABLE_FUNCTIONS:
            yield f"the table function {name} is not among {', '.join(sorted(_TABLE_FUNCTIONS))}"
        for part in node.values():
            yield from _objections(part)


def _function_name(table_function: dict[str, Any]) -> str:
    return str(table_function.get("function", {}).get("function_name", "?")).lower()


def _confine(connection: duckdb.DuckDBPyConnection, tables: Sequence[PinnedTable]) -> None:
    paths = [path for pinned in tables for path in pinned.paths()]
    allowed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _one_sentence(error: Exception) -> str:
    text = str(error).split("\nLINE ")[0]
    return " ".join(text.split())
