"""`lakeboard restore`: rebuild what the views server lost."""

from typing import TYPE_CHECKING

import click

from lakeboard.commands.reading import JSON_OPTION, clock_time, print_json
from lakeboard.commands.steps import shown_steps
from lakeboard.settings import Settings

if TYPE_CHECKING:
    from lakeboard.live.restoring import Restored


@click.command(
    "restore",
    epilog="""\b
Examples:
  lakeboard restore                  after the views server lost its memory, with `lakeboard up` running
  lakeboard restore --json

Killed at any point, run it again. A running `lakeboard speed` takes up what was rebuilt within seconds.""",
)
@JSON_OPTION
@click.pass_obj
def restore_command(settings: Settings, /, *, as_json: bool) -> None:
    """Rebuild what the views server lost: batch's view and the counts of every partition, from the lake.

    Plays are counted again from the lake up to where it stands; the log has the rest, and drops none of it meanwhile.
    """
    from lakeboard.live.restoring import restore  # noqa: PLC0415  `--help` can do without

    with shown_steps() as steps:
        done = restore(settings, on_step=steps.begin, on_wait=steps.wait)
    if as_json:
        print_json(_body(done))
        return
    click.echo(
        f"Counted {done.plays:,} plays of {done.partitions} partitions again, from {clock_time(done.since)} on."
        + ("" if done.release is None else f" The live day joins with release {done.release}.")
    )
    if done.without_release:
        click.echo(f"The live day has no release to join with: {done.without_release}")


def _body(done: "Restored") -> dict[str, object]:
    return {
        "log_id": done.log_id,
        "partitions": done.partitions,
        "plays": done.plays,
        "since": done.since,
        "release": done.release,
        "without_release": done.without_release or None,
    }
