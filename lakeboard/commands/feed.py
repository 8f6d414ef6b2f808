"""`lakeboard feed`: a gentle stream of made-up plays, so that the charts of a newcomer move."""

import secrets
from collections.abc import Iterator
from itertools import islice

import click

from lakeboard.commands.service import AskedToEnd, json_lines
from lakeboard.settings import Settings

STATE_FILE = "feed.json"
SONGS = 500  # so few that the best are told apart within a minute
_EVERY_SECONDS = 0.5
_GIVE_UP_SECONDS = 3600.0


@click.command(
    "feed",
    epilog="""\b
Examples:
  lakeboard feed                      as `lakeboard up --demo` runs it
  lakeboard feed --rate 200

What it sends counts like everything else: for trying things out only. Ctrl-C ends it.""",
)
@click.option(
    "--rate", type=click.FloatRange(min=1, max=10_000), default=20.0, show_default=True, help="Plays a second."
)
@click.pass_obj
def feed_command(settings: Settings, /, *, rate: float) -> None:
    """Send made-up plays of this moment to the stack of this home until asked to end."""
    from domain.answers import iso  # noqa: PLC0415  with the next ones: not for `--help`
    from lakeboard.part_state import PartStateFile  # noqa: PLC0415
    from lakeboard.sending.client import Client, Event, StoppedError  # noqa: PLC0415
    from lakeboard.stack.health import reachable  # noqa: PLC0415

    stop, tell = AskedToEnd(), json_lines("feed").info
    state = PartStateFile(settings.run_folder / STATE_FILE, settings.machine_clock)
    key = (settings.home / "dev.key").read_text(encoding="ascii").strip()
    with Client(
        f"http://{reachable(settings.host)}:{settings.port}",
        key,
        connections=1,
        give_up_seconds=_GIVE_UP_SECONDS,
        on_trouble=lambda said: tell("trouble", problem=said),
        stop=stop,
    ) as client:
        state.change("working")
        sent, plays = 0, made_up_plays()
        while not stop.is_set():
            now = iso(settings.clock())
            some = islice(plays, max(round(rate * _EVERY_SECONDS), 1))
            events = [Event(event_id, item, now, region, user) for event_id, item, region, user in some]
            try:
                client.post(events)
            except StoppedError:
                break
            sent += len(events)
            state.note(sent=sent)
            stop.wait(_EVERY_SECONDS)
    state.change("stopped")


def made_up_plays() -> Iterator[tuple[str, str, str, str]]:
    """Yield (event id, item id, region, user id) for ever; no two processes make the same id."""
    from lakeboard.generating.plays import BATCH_ROWS, made_up  # noqa: PLC0415  loads Arrow
    from lakeboard.generating.shape import Shape  # noqa: PLC0415

    while True:
        (batch,) = made_up(BATCH_ROWS, seed=secrets.randbits(63), shape=Shape(items=SONGS))
        columns = [batch.column(name).to_pylist() for name in ("event_id", "item_id", "region", "user_id")]
        yield from zip(*columns, strict=True)
