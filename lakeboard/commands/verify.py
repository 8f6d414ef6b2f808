"""`lakeboard verify`: prove the whole lake."""

from typing import Any

import click

from jobs.proof_sql import Proof
from jobs.verify import Verdict, run
from lakeboard.commands.reading import JSON_OPTION, ReadingSettings, print_json, print_table


@click.command(
    "verify",
    epilog="""\b
Examples:
  lakeboard verify
  lakeboard verify --only each_id_counts_once --memory 4GB
  lakeboard verify --json""",
)
@click.option("--only", multiple=True, metavar="PROOF", help="Run only this proof; may be given several times.")
@click.option("--memory", default="1GB", show_default=True, help="Memory to use; beyond it spills to disk.")
@JSON_OPTION
@click.pass_context
def verify_command(context: click.Context, *, only: tuple[str, ...], memory: str, as_json: bool) -> None:
    """Prove the whole lake as of the newest release, by counting it again with another engine.

    Exits with 0 when every proof holds and with 1 when one fails or cannot run.
    """
    settings: ReadingSettings = context.obj
    verdicts = run(
        settings.lake_root,
        policy=settings.policy,
        memory_limit=memory,
        only=only,
        on_start=_say,
    )
    if as_json:
        print_json([_facts(verdict) for verdict in verdicts])
    else:
        _print(verdicts)
    context.exit(0 if all(verdict.holds for verdict in verdicts) else 1)


def _say(proof: Proof) -> None:
    click.echo(f"{proof.name} ...", err=True)


def _print(verdicts: list[Verdict]) -> None:
    rows = [(_outcome(v), v.name, v.compared, f"{v.seconds:.1f} s", v.says) for v in verdicts]
    print_table(["verdict", "proof", "rows compared", "time", "what it says"], rows, right=["rows compared", "time"])
    for verdict in verdicts:
        if verdict.error is not None:
            click.echo(f"\n{verdict.name} could not run: {verdict.error}")
        elif not verdict.holds:
            shown = f"{len(verdict.sample):,} of {verdict.failures:,} contradicting rows"
            title = f"{verdict.name}: {shown}"
            print_table(verdict.columns, verdict.sample, title=title, folding=verdict.columns)
            click.echo(f"Look further with:\nlakeboard sql - <<'SQL'\n{verdict.query}\nSQL")


def _outcome(verdict: Verdict) -> str:
    if verdict.error is not None:
        return "NOT RUN"
    return "holds" if verdict.holds else f"FAILS ({verdict.failures:,})"


def _facts(verdict: Verdict) -> dict[str, Any]:
    return {
        "proof": verdict.name,
        "says": verdict.says,
        "holds": verdict.holds,
        "compared": verdict.compared,
        "failures": verdict.failures,
        "sample": [dict(zip(verdict.columns, row, strict=True)) for row in verdict.sample],
        "error": verdict.error,
        "seconds": round(verdict.seconds, 3),
        "query": verdict.query,
    }
