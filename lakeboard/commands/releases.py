"""`lakeboard releases`: what was published, and when."""

from typing import Any

import click

from domain.answers import iso
from domain.releases import Release
from ingest.read_releases import NothingCountedError
from lakeboard.commands.reading import JSON_OPTION, ReadingSettings, open_reader, print_json, print_table


@click.command(
    "releases",
    epilog="""\b
Examples:
  lakeboard releases
  lakeboard releases -n 100 --json""",
)
@click.option("-n", "most", type=click.IntRange(min=1), default=20, show_default=True, help="Most releases to list.")
@JSON_OPTION
@click.pass_obj
def releases_command(settings: ReadingSettings, *, most: int, as_json: bool) -> None:
    """List the releases, newest first.

    A release is the set of table versions that passed the proofs together.
    """
    with open_reader(settings) as reader:
        releases = reader.releases.latest(most)
    if not releases:
        raise NothingCountedError(settings.lake_root)
    if as_json:
        print_json([_facts(release) for release in releases])
        return
    rows = [
        (
            str(r.release),
            r.created_at,
            r.cause,
            r.frontier,
            r.position.events,
            r.hours_touched,
            f"{len(r.verdicts)} proofs hold",
        )
        for r in releases
    ]
    headings = ["release", "made", "cause", "certified up to", "events", "hours touched", "verdict"]
    print_table(headings, rows, right=["release", "events", "hours touched"], folding=["cause", "verdict"])
    if releases[-1].release > 1 and len(releases) == most:
        click.echo(f"Only the newest {most:,} are listed: -n lists more.", err=True)


def _facts(release: Release) -> dict[str, Any]:
    return {
        "release": release.release,
        "created_at": iso(release.created_at),
        "cause": release.cause,
        "frontier": iso(release.frontier),
        "bronze_version": release.position.version,
        "bronze_events": release.position.events,
        "hours_touched": release.hours_touched,
        "rules_fingerprint": release.rules.fingerprint(),
        "policy_fingerprint": release.policy_fingerprint,
        "code_version": release.code_version,
        "table_versions": dict(release.table_versions),
        "verdicts": dict(release.verdicts),
    }
