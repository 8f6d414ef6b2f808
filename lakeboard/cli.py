"""`lakeboard`: the command line. Each command's module is loaded only when it is asked for."""

import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version

import click

from domain.errors import BadRequestError, LakeboardError
from lakeboard.settings import Settings

BAD_USE = 2
FAILED = 1
INTERRUPTED = 130

# In the order in which a newcomer needs them: where each is, and what `lakeboard --help` says of it.
COMMANDS = {
    "demo": (
        "lakeboard.commands.demo:demo_command",
        "Import the bundled flights from New York, count them exactly, prove it, and show a day's chart.",
    ),
    "up": (
        "lakeboard.commands.up:up_command",
        "Run the event log, the API and the lake writer in the foreground until Ctrl-C.",
    ),
    "status": (
        "lakeboard.commands.status:status_command",
        "Show how every part of the running stack is, from another terminal.",
    ),
    "import": (
        "lakeboard.commands.import_:import_command",
        "Import plays from CSV, JSON Lines, Parquet or Spotify exports, plain, gzip or zstd.",
    ),
    "send": (
        "lakeboard.commands.send:send_command",
        "Send plays from files to the HTTP API: at full speed, at a rate, or at the pace of their own times.",
    ),
    "generate": (
        "lakeboard.commands.generate:generate_command",
        "Make plays up, to try things out with: the same seed, the same bytes.",
    ),
    "recount": (
        "lakeboard.commands.recount:recount_command",
        "Count new events exactly, prove the numbers, and release them together.",
    ),
    "publish": (
        "lakeboard.commands.publish:publish_command",
        "Hand the newest release over to the live charts: exact up to its frontier, live from there on.",
    ),
    "chart": (
        "lakeboard.commands.chart:chart_command",
        "Show the best items of one UTC hour or day, exactly as counted.",
    ),
    "count": (
        "lakeboard.commands.count:count_command",
        "Count the plays of one item from one whole UTC hour up to another, exactly.",
    ),
    "changes": (
        "lakeboard.commands.changes:changes_command",
        "List every certified number that was changed after a release, with what it was, what it is, and why.",
    ),
    "releases": (
        "lakeboard.commands.releases:releases_command",
        "List the releases, newest first.",
    ),
    "tables": (
        "lakeboard.commands.tables:tables_command",
        "List the tables of the lake as the newest release has them.",
    ),
    "sql": (
        "lakeboard.commands.sql:sql_command",
        "Run one SELECT over the lake as of the newest release, in DuckDB's SQL, read only.",
    ),
    "verify": (
        "lakeboard.commands.verify:verify_command",
        "Prove the whole lake as of the newest release, by counting it again with another engine.",
    ),
    "api": (
        "lakeboard.commands.api:api_command",
        "Run the HTTP API alone; `lakeboard up` runs it with all that it needs.",
    ),
    "keys": (
        "lakeboard.commands.keys:keys_command",
        "Make, list and revoke keys of the HTTP API.",
    ),
    "lake-writer": (
        "lakeboard.commands.lake_writer:lake_writer_command",
        "Move accepted plays from the event log to the lake, exactly once, and let the log forget them.",
    ),
    "speed": (
        "lakeboard.commands.speed:speed_command",
        "Count accepted plays live: the last minute, hour and day, in every region, with true bounds.",
    ),
    "merge": (
        "lakeboard.commands.merge:merge_command",
        "Join what the partitions count into ready charts, with batch's counts before the frontier.",
    ),
    "boards": (
        "lakeboard.commands.boards:boards_command",
        "Rank players as their scores come: by their best or their sum, for each day, week, month and all time.",
    ),
    "rebuild-board": (
        "lakeboard.commands.rebuild_board:rebuild_board_command",
        "Count boards again from all scores of the lake, certify them, and put them in place of the live ones.",
    ),
    "restore": (
        "lakeboard.commands.restore:restore_command",
        "Rebuild what the views server lost: batch's view and the counts of every partition, from the lake.",
    ),
    "race": (
        "lakeboard.commands.race:race_command",
        "Watch a sketch make its errors: 60,000 plays of 5,000 songs, exact on the left, the sketch on the right.",
    ),
    "feed": (
        "lakeboard.commands.feed:feed_command",
        "Send made-up plays of this moment to the stack of this home until asked to end.",
    ),
    "hourly": (
        "lakeboard.commands.hourly:hourly_command",
        "Recount and publish by the clock, once another hour can be certified.",
    ),
    "maintain": (
        "lakeboard.commands.maintain:maintain_command",
        "Compact every table and remove files that no release of the last 30 days needs.",
    ),
    "doctor": (
        "lakeboard.commands.doctor:doctor_command",
        "Say what is installed and what the lake is like, what is missing, and what to do.",
    ),
}


class LazyCommands(click.Group):
    """A group whose commands are imported by name, so that `lakeboard chart` never loads what others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name, None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any: help takes no second."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
A first tour:
  lakeboard demo
  lakeboard import plays.csv --item title --time played_at --region country
  lakeboard recount
  lakeboard chart --window 1d
  lakeboard sql "select region, sum(counted) from daily_counts group by all"

State lives under LAKEBOARD_HOME (default .lakeboard). Exit codes: 0 done, 1 failed, 2 bad use.""",
)
@click.version_option(version("lakeboard"), prog_name="lakeboard")
@click.pass_context
def cli(context: click.Context) -> None:
    """Exact charts over an event lake: import plays, count them exactly, read what is proved."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    elif context.invoked_subcommand != "doctor":  # which says itself what is wrong with the settings
        context.obj = Settings.load()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code; an error of ours is one sentence, never a stack trace."""
    try:
        code = cli.main(args=arguments, prog_name="lakeboard", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("lakeboard: stopped; nothing is lost, run the same command again to go on", err=True)
        sys.exit(INTERRUPTED)
    except LakeboardError as error:
        click.echo(f"lakeboard: {error}", err=True)
        sys.exit(BAD_USE if isinstance(error, BadRequestError) else FAILED)
    except OSError as error:
        click.echo(f"lakeboard: {_machine_failure(error)}", err=True)
        sys.exit(FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def _machine_failure(error: OSError) -> str:
    """Say what the operating system refused: a full disk, a folder that may not be written, a file that is gone."""
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}; `lakeboard doctor` shows the disk and the home folder, then run again"
