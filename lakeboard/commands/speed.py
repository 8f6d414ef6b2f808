"""`lakeboard speed`: counts accepted plays live."""

from functools import partial

import click

from lakeboard.commands.service import LOG_OPTION, VIEWS_OPTION, AskedToEnd, json_lines
from lakeboard.settings import Settings


@click.command(
    "speed",
    epilog="""\b
Examples:
  lakeboard speed                            as `lakeboard up` runs it
  lakeboard speed --once                     count what is there, then leave
  lakeboard speed --log redis://10.0.0.5:6379 --views redis://10.0.0.6:6379

It leaves on SIGTERM and Ctrl-C after storing its state. Killed at any point, the next one goes on where the last
checkpoint stands. Several may run: each works on partitions that no other one holds.""",
)
@LOG_OPTION
@VIEWS_OPTION
@click.option("--once", is_flag=True, help="Leave when all that is in the log is counted and stored.")
@click.pass_obj
def speed_command(settings: Settings, /, *, log_address: str | None, views_address: str | None, once: bool) -> None:
    """Count accepted plays live: the last minute, hour and day, in every region, with true bounds.

    What it does stands on stderr as JSON lines, and how it is in run/speed.json of LAKEBOARD_HOME.
    """
    from ingest.redis_log import RedisLog  # noqa: PLC0415  with the next ones: not for `--help`
    from lakeboard.live.decode import partition_numbers, play_batch  # noqa: PLC0415
    from speed_layer.consumer import ConsumerJob, run  # noqa: PLC0415
    from speed_layer.consumer_partition import Tools  # noqa: PLC0415
    from speed_layer.consumer_state import STATE_FILE  # noqa: PLC0415
    from speed_layer.store.connection import Views  # noqa: PLC0415
    from speed_layer.store.publishing import Publishing  # noqa: PLC0415
    from speed_layer.store.state import StateStore  # noqa: PLC0415
    from speed_layer.store.views import ViewStore  # noqa: PLC0415

    with Views(views_address or settings.views_address) as views:
        tools = Tools(
            leases=StateStore(views),
            lists=Publishing(views),
            decode=play_batch,
            policy=settings.speed_policy,
            rules=settings.rules(),
            tell=json_lines("speed").info,
        )
        job = ConsumerJob(
            open_log=partial(RedisLog.open, log_address or settings.log_address, clock=settings.entry_clock),
            tools=tools,
            views=ViewStore(views),
            partition_of=lambda number: partial(partition_numbers, partitions=number),
            state_file=settings.run_folder / STATE_FILE,
            clock=settings.machine_clock,
            checkpoint_seconds=settings.checkpoint_seconds,
            once=once,
        )
        run(job, AskedToEnd())
