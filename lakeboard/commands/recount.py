"""`lakeboard recount`: count what is new, exactly, and release it."""

from typing import TYPE_CHECKING, Any

import click

from lakeboard.commands.reading import JSON_OPTION, clock_time, print_json
from lakeboard.settings import Settings

if TYPE_CHECKING:
    from jobs.recount import RecountReport


@click.command(
    "recount",
    epilog="""\b
Examples:
  lakeboard recount                            count what was imported since the last release
  lakeboard recount --full                     judge every event again, however old its copies are
  lakeboard recount --cause "ticket 4711"      what the list of restated numbers says as cause

Counting rules stand in rules.toml of LAKEBOARD_HOME; a change of them recounts the hours it concerns.""",
)
@click.option("--full", is_flag=True, help="Judge every event again from bronze alone, without the dedup horizon.")
@click.option("--cause", metavar="TEXT", help="Cause to record with each number that changes.")
@JSON_OPTION
@click.pass_obj
def recount_command(settings: Settings, /, *, full: bool, cause: str | None, as_json: bool) -> None:
    """Count new events exactly, prove the numbers, and release them together.

    Only hours with new events, changed copies or changed rules are computed. Nothing is published unless every
    proof holds; a run that was stopped is repaired by the next one.
    """
    from lakeboard.counting import recounted  # noqa: PLC0415  loads pyspark, which `--help` can do without

    report = recounted(settings, full=full, cause=cause)
    if as_json:
        print_json(_body(report))
    else:
        click.echo(summary(report))


def summary(report: "RecountReport") -> str:
    """Say in a few words what a recount did."""
    release = report.release
    if not report.is_new:
        return f"Nothing new: release {release.release} of {clock_time(release.created_at)} stays current."
    return (
        f"Release {release.release}: {report.new_events:,} new events, {release.hours_touched:,} hours computed, "
        f"{len(release.verdicts)} proofs hold, certified up to {clock_time(release.frontier)}."
    )


def _body(report: "RecountReport") -> dict[str, Any]:
    row = report.release.to_row()
    return {
        "release": row["release"],
        "new": report.is_new,
        "new_events": report.new_events,
        "hours_touched": row["hours_touched"] if report.is_new else 0,
        "frontier": row["frontier"],
        "verdicts": dict(report.release.verdicts),
    }
