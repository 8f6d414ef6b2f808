"""Writes `docs/tables.md` from the definitions, so that the page cannot say anything else than the code."""

from domain.table import Column, Table
from domain.tables import ALL

_HEAD = """# Tables

Written by `lakeboard tables --markdown docs/tables.md` from `domain/tables.py`; edit that file, not this
page.

Every table is a Delta table below `lake/` in `LAKEBOARD_HOME`, reader version 1, so Spark, deltalake, DuckDB,
Polars and pandas open it. Timestamps are UTC with microseconds, days are UTC days, a column is never NULL
unless it says so. Read the versions that the newest row of `gold/releases` names (`table_versions`): newer
ones may be there and unproved. In `lakeboard sql` a table goes by its short name (`charts`) or its full one
(`gold.charts`).

| table | one row is | written by |
|---|---|---|
"""


def tables_markdown() -> str:
    """Return the page: each table's grain, partitions, writer, checks, and its columns' types and meaning."""
    links = [(f"[`{t.name}`](#{_anchor(t)})", t) for t in ALL]
    index = "".join(f"| {link} | {_cell(t.grain)} | {t.writer.value} |\n" for link, t in links)
    return _HEAD + index + "".join(_section(table) for table in ALL)


def _section(table: Table) -> str:
    partitions = ", ".join(f"`{name}`" for name in table.partition_by) or "nothing"
    checks = "".join(f"- CHECK `{name}`: `{condition}`\n" for name, condition in table.checks)
    rows = "".join(_row(column) for column in table.columns)
    return (
        f"\n## {table.name}\n\nOne row is {table.grain}. Partitioned by {partitions}.\n\n"
        f"{checks}{chr(10) if checks else ''}| column | type | NULL | meaning |\n|---|---|---|---|\n{rows}"
    )


def _row(column: Column) -> str:
    null = "yes" if column.nullable else ""
    return f"| `{column.name}` | {column.type.value} | {null} | {_cell(column.meaning)} |\n"


def _anchor(table: Table) -> str:
    return table.name.replace("/", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
