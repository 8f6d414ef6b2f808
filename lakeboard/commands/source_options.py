"""The options that say how files are read: the same ones for `import` and `send`."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import click

from ingest.importers.request import Format, ImportRequest
from ingest.local_time import Ambiguous
from ingest.validate import DurationUnit

Command = TypeVar("Command", bound=Callable[..., Any])
_COLUMN = "COLUMN"


def _names(choices: type[StrEnum]) -> list[str]:
    """Return what users write; click would offer the names of the members."""
    return [choice.value for choice in choices]


_OPTIONS = (
    click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE..."),
    click.option("--format", type=click.Choice(_names(Format)), help="Default: by the file's name."),
    click.option("--item", metavar=_COLUMN, help="What was played. Needed, but for --format spotify."),
    click.option("--time", metavar=_COLUMN, help="When it was played. Needed, but for --format spotify."),
    click.option("--region", metavar=_COLUMN, help="Where. Without it, or empty: ZZ, unknown."),
    click.option("--user", metavar=_COLUMN, help="Who played."),
    click.option("--id", "event_id", metavar=_COLUMN, help="Id of the play. Without it: source, file and row."),
    click.option("--duration", metavar=_COLUMN, help="How long it was played."),
    click.option("--count", metavar=_COLUMN, help="How many plays the row stands for. Without it, or empty: 1."),
    click.option(
        "--time-format",
        default="iso",
        show_default=True,
        metavar="FORMAT",
        help="iso (ISO 8601), epoch_s, epoch_ms, epoch_us, epoch_ns, or a pattern such as '%d.%m.%Y %H:%M:%S'.",
    ),
    click.option(
        "--time-zone",
        default="UTC",
        show_default=True,
        metavar="ZONE",
        help="Clock of times that name no zone (IANA name). A bare date is midnight UTC all the same.",
    ),
    click.option(
        "--ambiguous",
        type=click.Choice(_names(Ambiguous)),
        default=Ambiguous.REFUSE.value,
        show_default=True,
        help="What to do with local times that the clock showed twice, in the night it was set back.",
    ),
    click.option(
        "--duration-unit",
        type=click.Choice(_names(DurationUnit)),
        default=DurationUnit.MILLISECONDS.value,
        show_default=True,
    ),
    click.option("--delimiter", metavar="CHARACTER", help="Of CSV. Default: comma, or tab for .tsv."),
    click.option("--source", metavar="NAME", help="Default: the file's name without extensions."),
    click.option("--append", is_flag=True, help="Add other files to a source that has files already."),
    click.option(
        "--dedup-by-content",
        is_flag=True,
        help="Rows with equal text are one play: `recount` leaves the later ones out. Default: each is a play.",
    ),
)


def source_options(command: Command) -> Command:
    """Give a command FILE... and the options that say how the files are read, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def source_request(files: tuple[Path, ...], options: dict[str, Any]) -> ImportRequest:
    """Return the request that the options make, all of which must be of `source_options`."""
    chosen = options | {
        "format": None if options["format"] is None else Format(options["format"]),
        "ambiguous": Ambiguous(options["ambiguous"]),
        "duration_unit": DurationUnit(options["duration_unit"]),
    }
    return ImportRequest(files=files, **chosen)
