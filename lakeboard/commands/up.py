"""`lakeboard up`: the whole stack in the foreground."""

import shlex
from pathlib import Path

import click
import msgspec

from domain.errors import BadRequestError
from ingest.log_clock import ReplayClock
from lakeboard.replay import replay_from, replay_text
from lakeboard.settings import REPLAY, Settings
from lakeboard.stack.health import reachable
from lakeboard.stack.launch import launch

UP = """
Everything is up. Stop it with Ctrl-C.
  API             {url}   pages: {url}/charts, {url}/docs
  state           {home}   (what the parts print: {logs})
  key             {key}   (the developer's; others: lakeboard keys add)

Send a play:
  {curl}

Then, in another terminal (the lake writer commits every {seconds:g} s):
  {prefix}lakeboard status
  {prefix}lakeboard recount
  {prefix}lakeboard chart
"""
CURL = (
    'curl -s -X POST {url}/v1/events -H "Authorization: Bearer $(cat {key})" '
    """-d '{{"item_id":"first-song","event_id":"first-play"}}'"""
)


class ClockTextError(BadRequestError):
    """The clock of a replay cannot be read."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(text, problem)
        self.text = text
        self.problem = problem

    def __str__(self) -> str:
        return f"--clock {self.text!r}: {self.problem}; write START,SPEED, such as 2026-11-14T00:00Z,60"


@click.command(
    "up",
    epilog="""\b
Examples:
  lakeboard up
  lakeboard up --port 9000 --workers 2
  lakeboard up --clock 2015-09-12T00:00Z,60       a replay: an hour of that day takes a minute

Ctrl-C ends it and all that it started. Settings: docs/settings.md; when something is wrong: docs/runbook.md.""",
)
@click.option("--host", help="Address to listen on. Default: the setting host, 127.0.0.1.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on. Default: the setting port, 8080.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes of the API. Default: the setting workers, 1.")
@click.option(
    "--hourly/--no-hourly", default=None, help="Recount and publish each hour. Default: the setting hourly, yes."
)
@click.option("--demo", is_flag=True, default=None, help="Send made-up plays to it, 20 a second, so that charts move.")
@click.option(
    "--clock",
    metavar="START,SPEED",
    help="For tests and demonstrations: all parts take START for now, and time runs SPEED times as fast.",
)
@click.pass_obj
def up_command(
    settings: Settings,
    /,
    *,
    host: str | None,
    port: int | None,
    workers: int | None,
    hourly: bool | None,
    demo: bool | None,
    clock: str | None,
) -> None:
    """Run the event log, the API and the lake writer in the foreground until Ctrl-C.

    Parts that end are started again. Nothing that was accepted is lost, whichever is killed.
    """
    replay = None if clock is None else _replay(clock, settings)
    chosen = {"host": host, "port": port, "workers": workers, "hourly": hourly, "demo": demo, "replay": replay}
    given = {name: value for name, value in chosen.items() if value is not None}
    stack = msgspec.structs.replace(settings, **given, home=settings.home.absolute())
    if host is None and stack.host != Settings().host:
        _require_own(stack.host)
    click.echo(f"lakeboard: starting the stack of {stack.home}")
    launch(stack, say=click.echo, on_all_up=lambda: click.echo(banner(stack, home=settings.home)))
    click.echo("lakeboard: stopped; nothing that was accepted is lost")


def banner(stack: Settings, *, home: Path) -> str:
    """Return what a newcomer needs once everything is up.

    Args:
        stack: Settings of the running stack.
        home: Its home as the person wrote it, so that lines can be copied.
    """
    url, key = f"http://{_in_url(reachable(stack.host))}:{stack.port}", home / "dev.key"
    curl = CURL.format(url=url, key=shlex.quote(str(key)))
    prefix = "" if stack.replay is None else f"{REPLAY}='{replay_text(stack.replay)}' "
    logs = home / "logs"
    return UP.format(url=url, home=home, logs=logs, key=key, curl=curl, seconds=stack.commit_seconds, prefix=prefix)


def _require_own(host: str) -> None:
    """Refuse to be open to other machines by a setting alone, as `lakeboard api` does.

    Raises:
        OpenToOthersError: other machines reach this address.
    """
    from lakeboard.commands.api import OpenToOthersError  # noqa: PLC0415  with the next: rarely needed
    from serving.settings import is_loopback  # noqa: PLC0415

    if not is_loopback(host):
        raise OpenToOthersError(host)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _replay(text: str, settings: Settings) -> ReplayClock:
    try:
        return replay_from(text, settings.machine_clock)
    except ValueError as error:
        raise ClockTextError(text, str(error)) from error
