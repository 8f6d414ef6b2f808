"""`lakeboard status`: how the running stack is, from another terminal."""

import click

from lakeboard.commands.reading import JSON_OPTION, print_json, print_table
from lakeboard.settings import Settings
from lakeboard.stack.facts import LakeFacts, LogFacts, StackFacts, stack_facts
from lakeboard.stack.speed_facts import SpeedFacts


@click.command(
    "status",
    epilog="""\b
Examples:
  lakeboard status
  lakeboard status --json | jq '.problems'
  watch lakeboard status""",
)
@JSON_OPTION
@click.pass_context
def status_command(context: click.Context, *, as_json: bool) -> None:
    """Show how every part of the running stack is, from another terminal.

    State, restarts, lag, room, and the age of what was committed. Exits with 0 when all is well, with 1 when something
    is not. Changes nothing.
    """
    settings: Settings = context.obj
    facts = stack_facts(settings)
    if as_json:
        print_json(facts)
    else:
        _print(facts)
    context.exit(1 if facts.problems else 0)


def _print(facts: StackFacts) -> None:
    if facts.parts:
        rows = [
            (part.name, part.state, str(part.pid or ""), part.restarts, ago(part.age_seconds), part.last_end)
            for part in facts.parts
        ]
        title = f"{facts.url}, supervised by process {facts.pid}{', a replay' if facts.replay else ''}"
        columns = ["part", "state", "process", "restarts", "for", "last end"]
        print_table(columns, rows, title=title, right=["restarts"], folding=["last end"])
    if facts.log is not None:
        _print_log(facts.log)
    _print_lake(facts.lake)
    if facts.speed is not None:
        _print_speed(facts.speed)
    for problem in facts.problems:
        click.echo(f"not well: {problem}")
    if not facts.problems:
        click.echo("all is well")


def _print_log(log: LogFacts) -> None:
    lags = [*log.readers]
    rows = [
        (each.partition, each.entries, each.end, *(f"{each.lag_seconds.get(name, 0.0):.1f} s" for name in lags))
        for each in log.partitions
    ]
    lag_columns = [f"lag of {name}" for name in lags]
    columns = ["partition", "entries", "last entry", *lag_columns]
    print_table(columns, rows, title=f"Event log {log.log_id}", right=["entries", *lag_columns])
    disk = "" if log.free_disk is None else f", {mib(log.free_disk)} of disk free, {mib(log.file)} of log files"
    click.echo(f"Log: {mib(log.used_memory)} of {mib(log.max_memory)} of memory{disk}")


def _print_lake(lake: LakeFacts) -> None:
    commit = "none yet" if lake.last_commit_age_seconds is None else f"{ago(lake.last_commit_age_seconds)} ago"
    release = "none yet" if lake.release_age_seconds is None else f"{lake.release}, {ago(lake.release_age_seconds)} ago"
    click.echo(f"Lake: last commit of plays {commit}; release {release}")


def _print_speed(speed: SpeedFacts) -> None:
    lag = "nothing read yet" if speed.largest_lag_seconds is None else f"largest lag {speed.largest_lag_seconds:.1f} s"
    view = "no view of batch yet" if speed.view is None else f"batch view {speed.view}"
    click.echo(f"Live counting: {speed.partitions} partitions, {lag}; {view}")


def mib(size: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{size / 2**20:,.0f} MiB"


def ago(seconds: int) -> str:
    """Return a span as a person reads it: its two largest units."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for name, length in units:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"
