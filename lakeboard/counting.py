"""Counting for a command: Spark is started only when there is something to count."""

from importlib.metadata import version

from jobs.recount import RecountReport, RecountRequest, nothing_new, run
from lakeboard.batch import started_spark
from lakeboard.commands.steps import shown_steps
from lakeboard.settings import Settings


def recounted(settings: Settings, *, full: bool = False, cause: str | None = None) -> RecountReport:
    """Recount the lake, showing each step; without anything new, return the current release at once."""
    request = RecountRequest(
        lake_root=settings.lake_root.absolute(),
        rules=settings.rules(),
        clock=settings.clock,
        code_version=version("lakeboard"),
        policy=settings.policy,
        full=full,
        cause=cause,
    )
    return nothing_new(request) or _counted(settings, request)


def _counted(settings: Settings, request: RecountRequest) -> RecountReport:
    with shown_steps() as steps:
        steps.begin("start Spark")
        with started_spark(settings, "recount") as spark:
            return run(spark, request, on_step=steps.begin, on_wait=steps.wait)
