"""`lakeboard merge`: joins what the partitions count into the charts that the API serves."""

from collections.abc import Callable
from functools import partial

import click

from lakeboard.commands.service import LOG_OPTION, VIEWS_OPTION, AskedToEnd, json_lines
from lakeboard.settings import Settings

STATE_FILE = "merger.json"
_RETRY_SECONDS = 0.5


@click.command(
    "merge",
    epilog="""\b
Examples:
  lakeboard merge                      as `lakeboard up` runs it
  lakeboard merge --once               one cycle, then leave
  lakeboard merge --log redis://10.0.0.5:6379 --views redis://10.0.0.6:6379

It leaves on SIGTERM and Ctrl-C. It keeps nothing of its own: killed at any point, the next one reads what the
partitions say and goes on.""",
)
@LOG_OPTION
@VIEWS_OPTION
@click.option("--once", is_flag=True, help="Leave after one cycle.")
@click.pass_obj
def merge_command(settings: Settings, /, *, log_address: str | None, views_address: str | None, once: bool) -> None:
    """Join what the partitions count into ready charts, with batch's counts before the frontier.

    One merger writes; a second one waits. What happens stands on stderr as JSON lines, and how it is in
    run/merger.json of LAKEBOARD_HOME.
    """
    from domain.errors import LakeboardError  # noqa: PLC0415  with the next ones: not for `--help`
    from domain.speed_policy import DEFAULT_SPEED_POLICY  # noqa: PLC0415
    from lakeboard.live.decode import partition_numbers  # noqa: PLC0415
    from lakeboard.part_state import PartStateFile  # noqa: PLC0415
    from speed_layer.store.connection import connect  # noqa: PLC0415
    from speed_layer.store.merge_loop import CycleReport, MergeJob, run  # noqa: PLC0415
    from speed_layer.store.views import ViewStore  # noqa: PLC0415

    tell, stop = json_lines("merger").info, AskedToEnd()
    state = PartStateFile(settings.run_folder / STATE_FILE, settings.machine_clock)

    def say(now: str, problem: str = "") -> None:
        if state.change(now, problem):
            tell(now, problem=problem)

    def report(cycle: CycleReport) -> None:
        state.note(cycle=cycle.number, charts=cycle.charts, bytes=cycle.bytes, seconds=round(cycle.seconds, 4))

    try:
        partitions = _partitions(settings, log_address, stop, say)
        job = MergeJob(
            connect=partial(connect, views_address or settings.views_address),
            partitions=partitions,
            partition_of=partial(partition_numbers, partitions=partitions),
            list_size=DEFAULT_SPEED_POLICY.list_size,
            load_view=lambda views, version: ViewStore(views).load(version),
            say=say,
            report=report,
            once=once,
        )
        run(job, stop)
    except LakeboardError as error:
        say("failed", str(error))
        raise
    say("stopped")


def _partitions(settings: Settings, address: str | None, stop: AskedToEnd, say: Callable[[str, str], None]) -> int:
    """Ask the log how many partitions plays have, waiting while it is away; 0 when asked to stop meanwhile."""
    from domain.log import LogUnavailableError, Stream  # noqa: PLC0415  as above
    from ingest.redis_log import RedisLog  # noqa: PLC0415

    while not stop.is_set():
        try:
            with RedisLog.open(address or settings.log_address, clock=settings.entry_clock) as log:
                return len(log.partitions(Stream.PLAYS))
        except LogUnavailableError as error:
            say("waiting", str(error))
            stop.wait(_RETRY_SECONDS)
    return 0
