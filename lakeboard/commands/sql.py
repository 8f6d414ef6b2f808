"""`lakeboard sql`: one SELECT over the lake."""

import csv
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from domain.answers import iso
from ingest.read_sql import SqlAnswer, run_sql
from lakeboard.commands.reading import ReadingSettings, open_reader, print_json, print_table


@click.command(
    "sql",
    epilog="""\b
Examples:
  lakeboard sql "select region, sum(counted) from daily_counts group by all order by 2 desc"
  lakeboard sql "select reason, count(*) from rejects group by reason"
  lakeboard sql "describe hourly_counts"
  lakeboard sql "select * from plays" --format csv --limit 0 > plays.csv
  lakeboard sql - < query.sql""",
)
@click.argument("query")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Most rows to print; 0 = all.",
)
@click.option("--memory", default="1GB", show_default=True, help="Memory for the query; beyond it spills to disk.")
@click.pass_obj
def sql_command(settings: ReadingSettings, *, query: str, form: str, limit: int, memory: str) -> None:
    """Run one SELECT over the lake as of the newest release, in DuckDB's SQL, read only.

    With - as QUERY it is read from the standard input. Tables go by the names that `lakeboard tables` lists.
    No other file can be read and nothing can be written.
    """
    with open_reader(settings, memory_limit=memory) as reader:
        if not reader.releases.latest(1):
            click.echo("No play has been counted yet: hours, days and charts have no rows.", err=True)
        text = sys.stdin.read() if query == "-" else query
        answer = run_sql(reader, text, most=limit or None)
    {"table": _print_table, "csv": _print_csv, "json": _print_json}[form](answer)
    if answer.cut:
        click.echo(f"Only the first {limit:,} rows are shown: --limit 0 shows all.", err=True)


def _print_table(answer: SqlAnswer) -> None:
    numbers = [
        name
        for name, values in zip(answer.columns, zip(*answer.rows, strict=True), strict=False)
        if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)
    ]
    texts = [name for name in answer.columns if name not in numbers]
    print_table(answer.columns, answer.rows, right=numbers, folding=texts)


def _print_csv(answer: SqlAnswer) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_csv_cell(value) for value in row] for row in answer.rows)


def _print_json(answer: SqlAnswer) -> None:
    names = _distinct(answer.columns)
    print_json([dict(zip(names, row, strict=True)) for row in answer.rows])


def _csv_cell(value: Any) -> Any:
    """NULL becomes an empty field, as CSV has no word for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return iso(value) if isinstance(value, datetime) and value.tzinfo is not None else value


def _distinct(names: Sequence[str]) -> list[str]:
    """Number repeated column names, or a JSON object would keep only the last."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct
