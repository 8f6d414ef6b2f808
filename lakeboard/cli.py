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

COMMANDS = {
    "demo": "lakeboard.commands.demo:demo_command",
    "import": "lakeboard.commands.import_:import_command",
    "recount": "lakeboard.commands.recount:recount_command",
    "chart": "lakeboard.commands.chart:chart_command",
    "count": "lakeboard.commands.count:count_command",
    "changes": "lakeboard.commands.changes:changes_command",
    "releases": "lakeboard.commands.releases:releases_command",
    "tables": "lakeboard.commands.tables:tables_command",
    "sql": "lakeboard.commands.sql:sql_command",
    "verify": "lakeboard.commands.verify:verify_command",
    "maintain": "lakeboard.commands.maintain:maintain_command",
    "doctor": "lakeboard.commands.doctor:doctor_command",
}


class LazyCommands(click.Group):
    """A group whose commands are imported by name, so that `lakeboard chart` never loads Spark."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name, None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(
    cls=LazyCommands,
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
    sys.exit(code if isinstance(code, int) else 0)
