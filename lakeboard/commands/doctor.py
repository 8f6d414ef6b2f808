"""`lakeboard doctor`: what is installed, what is missing, what to do."""

from collections.abc import Callable, Iterator
from functools import partial

import click

from domain.capacity import Load
from domain.errors import LakeboardError
from lakeboard import checks_of_installation as installation
from lakeboard import checks_of_lake as lake
from lakeboard import checks_of_servers
from lakeboard.checks import Check, State
from lakeboard.commands.capacity import show_capacity
from lakeboard.commands.reading import JSON_OPTION, print_json, print_table
from lakeboard.settings import InvalidSettingError, Settings


@click.command(
    "doctor",
    epilog="""\b
Examples:
  lakeboard doctor
  lakeboard doctor --json
  lakeboard doctor --capacity --rate 10000      what live counting takes in memory, from its bounds""",
)
@click.option("--capacity", is_flag=True, help="Only say how much memory live counting takes at most.")
@click.option(
    "--rate", type=click.IntRange(1), default=10_000, show_default=True, help="Plays a second, for --capacity."
)
@click.option("--regions", type=click.IntRange(1, 10_000), help="For --capacity.  [default: the setting live_regions]")
@click.option("--partitions", type=click.IntRange(1, 1024), default=8, show_default=True, help="For --capacity.")
@JSON_OPTION
@click.pass_context
def doctor_command(
    context: click.Context, *, capacity: bool, rate: int, regions: int | None, partitions: int, as_json: bool
) -> None:
    """Say what is installed and what the lake is like, what is missing, and what to do.

    Changes nothing and starts no Spark. Exits with 1 when there is a problem; a warning is none.
    """
    if capacity:
        settings = context.obj or Settings.load()
        most = settings.live_regions if regions is None else regions
        load = Load(plays_per_second=rate, regions=most, partitions=partitions)
        return show_capacity(settings.speed_policy, load, as_json=as_json)
    checks = examined(context.obj)
    if as_json:
        print_json([{"check": c.name, "state": c.state.value, "found": c.found, "next": c.step} for c in checks])
    else:
        rows = [(check.state.value, check.name, check.found, check.step) for check in checks]
        print_table(["state", "check", "found", "what to do"], rows, folding=["found", "what to do"])
    context.exit(1 if any(check.state is State.PROBLEM for check in checks) else 0)


def examined(settings: Settings | None = None) -> list[Check]:
    """Run every check; without settings, read those of the environment, and say when they cannot be read."""
    settings, checks = (settings, [*installation.choices(settings)]) if settings else _settings()
    examinations: dict[str, Callable[[], Iterator[Check]]] = {
        "Python": installation.python_version,
        "Spark": partial(installation.spark_parts, settings),
        "accelerator": partial(installation.accelerator, settings),
        "server": partial(installation.server, settings),
        "home folder": partial(installation.home, settings),
        "free disk": partial(installation.disk, settings),
        "running servers": partial(checks_of_servers.servers, settings),
        "rules.toml": partial(lake.rules, settings),
        "lake": partial(lake.lake, settings),
    }
    for name, examination in examinations.items():
        checks += _survived(name, examination)
    return checks


def _settings() -> tuple[Settings, list[Check]]:
    try:
        settings = Settings.load()
    except InvalidSettingError as error:
        step = "mend it, see docs/settings.md; the checks below are of the defaults"
        return Settings.unset(), [Check("settings", State.PROBLEM, f"{error.source}: {error.problem}", step)]
    return settings, [*installation.choices(settings)]


def _survived(name: str, examination: Callable[[], Iterator[Check]]) -> list[Check]:
    """Return what an examination found before it failed, and its failure as a check: a doctor does not faint."""
    found: list[Check] = []
    try:
        found.extend(examination())
    except LakeboardError as error:
        found.append(Check(name, State.PROBLEM, str(error), lake.LOOK_UP))
    except Exception as error:  # whatever a damaged table or a strange machine raises
        said = str(error).strip().split("\n")[0]
        found.append(Check(name, State.PROBLEM, f"{type(error).__name__}: {said}", lake.LOOK_UP))
    return found
