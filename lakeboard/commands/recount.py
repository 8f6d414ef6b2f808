"""`lakeboard recount`: count what is new, exactly, and release it."""

from importlib.metadata import version
from typing import Any

import click

from jobs.recount import RecountReport, RecountRequest, nothing_new, run
from lakeboard.batch import started_spark
from lakeboard.commands.reading import JSON_OPTION, clock_time, print_json
from lakeboard.commands.steps import shown_steps
from lakeboard.settings import Settings


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
    request = request_of(settings, full=full, cause=cause)
    report = nothing_new(request) or counted(settings, request)
    if as_json:
        print_json(_body(report))
    else:
        click.echo(summary(report))


def request_of(settings: Settings, *, full: bool = False, cause: str | None = None) -> RecountRequest:
    """Return the request that these settings stand for."""
    return RecountRequest(
        lake_root=settings.lake_root.absolute(),
        rules=settings.rules(),
        clock=settings.clock,
        code_version=version("lakeboard"),
        policy=settings.policy,
        full=full,
        cause=cause,
    )


def counted(settings: Settings, request: RecountRequest) -> RecountReport:
    """Start Spark and recount, showing each step."""
    with shown_steps() as steps:
        steps.begin("start Spark")
        with started_spark(settings) as spark:
            return run(spark, request, on_step=steps.begin, on_wait=steps.wait)


def summary(report: RecountReport) -> str:
    """Say in a few words what a recount did."""
    release = report.release
    if not report.is_new:
        return f"Nothing new: release {release.release} of {clock_time(release.created_at)} stays current."
    return (
        f"Release {release.release}: {report.new_events:,} new events, {release.hours_touched:,} hours computed, "
        f"{len(release.verdicts)} proofs hold, certified up to {clock_time(release.frontier)}."
    )


def _body(report: RecountReport) -> dict[str, Any]:
    row = report.release.to_row()
    return {
        "release": row["release"],
        "new": report.is_new,
        "new_events": report.new_events,
        "hours_touched": row["hours_touched"] if report.is_new else 0,
        "frontier": row["frontier"],
        "verdicts": dict(report.release.verdicts),
    }
