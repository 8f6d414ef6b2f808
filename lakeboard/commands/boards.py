"""`lakeboard boards`: ranks players as their scores come."""

from collections.abc import Mapping

import click

from lakeboard.commands.service import LOG_OPTION, VIEWS_OPTION, AskedToEnd, json_lines
from lakeboard.settings import Settings

STATE_FILE = "boards.json"


@click.command(
    "boards",
    epilog="""\b
Examples:
  lakeboard boards                      as `lakeboard up` runs it
  lakeboard boards --once               apply all that is in the log, then leave
  lakeboard boards --log redis://10.0.0.5:6379 --views redis://10.0.0.6:6379

It leaves on SIGTERM and Ctrl-C. How far it is stands beside the boards: killed at any point, the next one goes on
there, and nothing counts twice. What is ranked says boards.toml of LAKEBOARD_HOME: docs/boards.md.""",
)
@LOG_OPTION
@VIEWS_OPTION
@click.option("--once", is_flag=True, help="Leave when all that is in the log is applied.")
@click.pass_obj
def boards_command(settings: Settings, /, *, log_address: str | None, views_address: str | None, once: bool) -> None:
    """Rank players as their scores come: by their best or their sum, for each day, week, month and all time.

    What happens stands on stderr as JSON lines, and how it is in run/boards.json of LAKEBOARD_HOME.
    """
    from domain.errors import LakeboardError  # noqa: PLC0415  with the next ones: not for `--help`
    from lakeboard.live.boards import boards_job  # noqa: PLC0415
    from lakeboard.part_state import PartStateFile  # noqa: PLC0415
    from speed_layer.boards.consumer import run  # noqa: PLC0415

    tell = json_lines("boards").info
    state = PartStateFile(settings.run_folder / STATE_FILE, settings.machine_clock)

    def say(now: str, problem: str = "") -> None:
        if state.change(now, problem):
            tell(now, problem=problem)

    def report(facts: Mapping[str, object]) -> None:
        state.note(**facts)

    try:
        job = boards_job(
            settings, say=say, report=report, log_address=log_address, views_address=views_address, once=once
        )
        run(job, AskedToEnd())
    except LakeboardError as error:
        say("failed", str(error))
        raise
    say("stopped")
