"""`lakeboard publish`: hand the newest release over to the live charts."""

import click

from domain.windows import HOUR
from lakeboard.commands.reading import JSON_OPTION, clock_time, print_json
from lakeboard.commands.steps import shown_steps
from lakeboard.publishing import LONG_BEHIND, Published, publish
from lakeboard.settings import Settings


@click.command(
    "publish",
    epilog="""\b
Examples:
  lakeboard publish                  after each recount; `lakeboard up` does so every hour itself
  lakeboard publish --json

Killed at any point, the live charts keep the view that they have.""",
)
@JSON_OPTION
@click.pass_obj
def publish_command(settings: Settings, /, *, as_json: bool) -> None:
    """Hand the newest release over to the live charts: exact up to its frontier, live from there on.

    Doing it twice changes nothing. It is refused while the release lacks events that the log took before the frontier.
    """
    with shown_steps() as steps:
        done = publish(settings, on_step=steps.begin, on_wait=steps.wait)
    if as_json:
        print_json(_body(done))
        return
    click.echo(summary(done))
    if done.behind > LONG_BEHIND:
        click.echo(
            f"That is {done.behind // HOUR} hours ago, which no live window reaches: run `lakeboard recount`, then "
            "`lakeboard publish` again."
        )


def summary(done: Published) -> str:
    """Say in a few words what was published."""
    up_to = f"certified up to {clock_time(done.frontier)}"
    if not done.is_new:
        return f"Nothing new: the live charts use release {done.release} already, {up_to}."
    return f"Release {done.release} published, {up_to}: {done.items:,} items, {done.regions:,} regions with `*`."


def _body(done: Published) -> dict[str, object]:
    return {
        "version": done.version,
        "release": done.release,
        "frontier": done.frontier,
        "new": done.is_new,
        "regions": done.regions,
        "items": done.items,
        "behind_seconds": int(done.behind.total_seconds()),
    }
