"""What the reading commands share: what they need of the settings, and how they print."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import click
import msgspec

from domain.policy import Policy
from ingest.lake_reader import LakeReader

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
REGION_OPTION = click.option(
    "--region", default="*", show_default=True, help="A region, ZZ for the unknown one, * for all together."
)
_WIDEST = 100_000


class ReadingSettings(Protocol):
    """What a reading command takes from the settings."""

    @property
    def lake_root(self) -> Path:
        """Folder of the lake."""

    @property
    def policy(self) -> Policy:
        """The numbers that all parts agree on."""


def open_reader(settings: ReadingSettings, *, memory_limit: str = "1GB") -> LakeReader:
    """Open the lake of these settings, with so much memory at most; close it after use."""
    return LakeReader(settings.lake_root, memory_limit=memory_limit)


def print_json(body: object) -> None:
    """Print a value as indented JSON in UTF-8."""
    encoded = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode(body)
    click.echo(msgspec.json.format(encoded, indent=2).decode())


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str | None = None,
    right: Sequence[str] = (),
    folding: Sequence[str] = (),
) -> None:
    """Print a table; nothing is cut off, and nothing in a cell is taken for markup.

    Args:
        columns: Headings.
        rows: Cells, one sequence a row.
        title: Line above.
        right: Headings of the columns to align to the right, for numbers.
        folding: Headings of the columns that fold where a terminal is too narrow. What goes to a file or a
            pipe is as wide as it needs to be.
    """
    from rich.console import Console  # noqa: PLC0415  half of the time of a command that prints JSON
    from rich.measure import Measurement  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table()
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(Text(column), justify=justify, overflow="fold", no_wrap=column not in folding)
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    if title is not None:
        click.echo(title)
    console = Console(highlight=False)
    if not console.is_terminal:
        needed = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
        console = Console(highlight=False, width=needed)
    console.print(table)


def cell(value: object) -> str:
    """Return a value as a person reads it: numbers in groups of three, moments in UTC, nothing for NULL."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    return clock_time(value) if isinstance(value, datetime) and value.tzinfo is not None else str(value)


def clock_time(moment: datetime) -> str:
    """Return a moment as `2026-11-14 08:00 UTC`, with seconds and less only where they are not zero."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    whole_minutes = not utc.second and not utc.microsecond
    return f"{utc.isoformat(sep=' ', timespec='minutes' if whole_minutes else 'auto')} UTC"
