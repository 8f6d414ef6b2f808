"""`lakeboard tables`: what the lake holds, and what every column means."""

from pathlib import Path
from typing import Any

import click

from domain.errors import BadRequestError
from domain.table import Column, Table
from domain.table_docs import tables_markdown
from domain.tables import ALL
from ingest.read_files import PinnedTable
from lakeboard.commands.reading import JSON_OPTION, ReadingSettings, open_reader, print_json, print_table


class UnknownTableError(BadRequestError):
    """A table was asked for that the lake does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"there is no table {self.name!r}: choose among {', '.join(table.view for table in ALL)}"


@click.command(
    "tables",
    epilog="""\b
Examples:
  lakeboard tables
  lakeboard tables --columns hourly_counts
  lakeboard tables --json
  lakeboard tables --markdown docs/tables.md""",
)
@click.option("--columns", "of_table", metavar="TABLE", help="The columns of one table, with types and meaning.")
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page about all tables to a file.",
)
@JSON_OPTION
@click.pass_obj
def tables_command(settings: ReadingSettings, *, of_table: str | None, markdown: Path | None, as_json: bool) -> None:
    """List the tables of the lake as the newest release has them.

    Rows and size are of the Delta version that the release names; `releases` and `rejects` are as they stand.
    """
    if markdown is not None:
        markdown.write_text(tables_markdown(), encoding="utf-8")
    elif of_table is not None:
        _print_columns(_named(of_table), as_json=as_json)
    else:
        with open_reader(settings) as reader:
            _print_tables(reader.tables(), as_json=as_json)


def _named(name: str) -> Table:
    for table in ALL:
        if name in (table.view, table.name, table.name.replace("/", ".")):
            return table
    raise UnknownTableError(name)


def _print_tables(tables: list[PinnedTable], *, as_json: bool) -> None:
    if as_json:
        print_json([_facts(pinned) for pinned in tables])
        return
    rows = [
        (
            p.table.view,
            p.rows,
            _size(p.size_bytes),
            "" if p.version is None else str(p.version),
            p.table.grain,
        )
        for p in tables
    ]
    headings = ["table", "rows", "size", "version", "one row is"]
    print_table(headings, rows, right=["rows", "size", "version"], folding=["one row is"])


def _facts(pinned: PinnedTable) -> dict[str, Any]:
    return {
        "table": pinned.table.view,
        "folder": pinned.table.name,
        "rows": pinned.rows,
        "size_bytes": pinned.size_bytes,
        "version": pinned.version,
        "grain": pinned.table.grain,
        "partition_by": pinned.table.partition_by,
        "writer": pinned.table.writer.value,
    }


def _print_columns(table: Table, *, as_json: bool) -> None:
    if as_json:
        print_json([_column_facts(column) for column in table.columns])
        return
    rows = [(c.name, c.type.value, "yes" if c.nullable else "", c.meaning) for c in table.columns]
    print_table(["column", "type", "NULL", "meaning"], rows, title=f"{table.view}: {table.grain}", folding=["meaning"])


def _column_facts(column: Column) -> dict[str, Any]:
    return {
        "column": column.name,
        "type": column.type.value,
        "nullable": column.nullable,
        "meaning": column.meaning,
    }


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:  # noqa: PLR2004  kilo
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
