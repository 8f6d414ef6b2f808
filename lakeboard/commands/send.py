"""`lakeboard send`: files to the HTTP API."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from domain.errors import LakeboardError
from lakeboard.commands.import_progress import progress_display
from lakeboard.commands.reading import JSON_OPTION, print_json, print_table
from lakeboard.commands.source_options import source_options, source_request
from lakeboard.sending.rejects import RejectsFile
from lakeboard.sending.request import MAX_BATCH, KeyUnreadableError, SendRequest, SendSummary, TwoPacesError
from lakeboard.sending.sender import Edges, Sender
from lakeboard.settings import Settings

_NUMBERS = ("read", "accepted", "refused")


class _Speed(click.ParamType[float]):
    """How many times as fast: `60x`, or only `60`."""

    name = "speed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            speed = float(str(value).removesuffix("x"))
        except ValueError:
            speed = 0.0
        if not 0 < speed < float("inf"):
            self.fail(f"{value!r} is no speed: write how many times as fast, such as 60x", param, ctx)
        return speed


@click.command(
    "send",
    epilog="""\b
Examples:
  lakeboard send plays.csv --item title --time played_at --region country
  lakeboard send plays.csv --item title --time played_at --rate 500
  lakeboard send edits.csv.gz --item page --time time --speed 60x         an hour of its own time takes a minute
  lakeboard send plays.csv --item title --time played_at --from-row 40000  go on where it was stopped
  lakeboard generate --events 50000 -o - | lakeboard send - --format csv --id event_id --item item_id \\
    --time event_time --region region

Rows and ids are those of `lakeboard import` with the same options, so sending a file that was imported, or sending it
again, counts nothing twice. Exit codes: 0 every row was taken or is in the file of rejects, 1 failed, 2 bad use,
130 stopped.""",
)
@source_options
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="Address of the service.")
@click.option(
    "--key-file", type=click.Path(path_type=Path), help="File with the key's text. Default: dev.key in LAKEBOARD_HOME."
)
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Events a second.")
@click.option("--speed", type=_Speed(), metavar="Nx", help="N times as fast as the events' own times.")
@click.option(
    "--batch", type=click.IntRange(1, MAX_BATCH), default=MAX_BATCH, show_default=True, help="Events a request."
)
@click.option(
    "--connections", type=click.IntRange(1, 64), default=4, show_default=True, help="Requests at the same time."
)
@click.option(
    "--from-row", type=click.IntRange(min=0), default=0, metavar="N", help="Leave out N rows, counted over all files."
)
@click.option("--rejects", type=click.Path(path_type=Path), metavar="FILE", help="Where rows go that are not taken.")
@click.option(
    "--give-up",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to try while the service takes nothing.",
)
@JSON_OPTION
@click.pass_obj
def send_command(settings: Settings, /, *, files: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Send plays from files to the HTTP API: at full speed, at a rate, or at the pace of their own times.

    - as FILE is the standard input. What the service cannot take now is sent again until it can, with the same ids.
    Rows that cannot be taken at all are listed by reason and kept in a file; nothing is left out silently.
    """
    key_file, rejects_path = options.pop("key_file"), options.pop("rejects")
    request = _request(files, options, key=_key(key_file or settings.home / "dev.key"))
    with progress_display() as display:
        edges = Edges(
            sent_root=settings.home / "sent",
            lake_root=settings.lake_root,
            clock=settings.clock,
            policy=settings.policy,
            on_progress=display.show,
            on_trouble=display.say,
        )
        sender = Sender(request, edges, rejects_path)
        summary = _sent(sender, request.from_row)
    if as_json:
        print_json(_json(summary, sender.rejects))
    else:
        _print(summary, sender.rejects)


def _request(files: tuple[Path, ...], options: dict[str, Any], *, key: str) -> SendRequest:
    """Split the options into how files are read and how they are sent."""
    if options["rate"] is not None and options["speed"] is not None:
        raise TwoPacesError
    how = ("url", "rate", "speed", "batch", "connections", "from_row")
    sending = {name: options.pop(name) for name in how}
    give_up = options.pop("give_up")
    return SendRequest(files=source_request(files, options), key=key, give_up_seconds=give_up, **sending)


def _sent(sender: Sender, from_row: int) -> SendSummary:
    """Send; when that ends early, say from which row to go on."""
    try:
        return sender.run()
    except (KeyboardInterrupt, LakeboardError, OSError):
        if sender.stands_at > from_row:
            click.echo(
                f"lakeboard: the {sender.stands_at:,} rows before that are done: "
                f"go on with the same command and --from-row {sender.stands_at}",
                err=True,
            )
        raise


def _key(path: Path) -> str:
    """Return the key of a file.

    Raises:
        KeyUnreadableError: there is none.
    """
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise KeyUnreadableError(str(path), error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise KeyUnreadableError(str(path), "it is no text of a key") from error
    if not text or not text.isprintable() or " " in text:
        raise KeyUnreadableError(str(path), "it is no text of a key")
    return text


def _json(summary: SendSummary, rejects: RejectsFile) -> dict[str, Any]:
    return {
        "accepted": summary.accepted,
        "refused": summary.refused,
        "repeated": summary.repeated,
        "from_row": summary.from_row,
        "seconds": round(summary.seconds, 3),
        "rejects": str(rejects.path) if rejects.rows else None,
        "files": [file.to_json() for file in summary.files],
    }


def _print(summary: SendSummary, rejects: RejectsFile) -> None:
    rows = [(file.path.name, file.source, file.read, file.accepted, file.refused.total()) for file in summary.files]
    print_table(["file", "source", *_NUMBERS], rows, right=_NUMBERS, folding=["file", "source"])
    reasons: Counter[str] = sum((file.refused for file in summary.files), Counter())
    if reasons:
        said = ", ".join(f"{reason} {n:,}" for reason, n in sorted(reasons.items(), key=lambda one: (-one[1], one[0])))
        click.echo(f"{summary.refused:,} refused: {said} (the rows are in {rejects.path}).")
    if summary.repeated:
        click.echo(
            f"{summary.repeated:,} of the accepted rows said again what another row had just said: they count once."
        )
    rate = f" ({summary.accepted / summary.seconds:,.0f}/s)" if summary.seconds else ""
    click.echo(f"{summary.accepted:,} accepted in {summary.seconds:,.1f} s{rate}: on disk in the event log.")
    click.echo("The lake writer brings them into the lake within seconds; then count them with: lakeboard recount")
