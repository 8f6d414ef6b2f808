"""Checks of what is installed and of the machine: Python, packages, Java, jars, server, folder, disk, settings."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jobs.guard import (
    PROJECT_ROOT,
    Versions,
    accelerator_jars,
    delta_problems,
    find_java_home,
    found_versions,
    jar_paths,
    jar_problems,
    java_problems,
    package_problems,
)
from lakeboard.checks import Check, State
from lakeboard.settings import FILE_NAME, Settings, settable

PYTHON = (3, 11)
SERVERS = ("redis-server", "valkey-server")
OLDEST_SERVER = 7
SET_UP = "run `make setup`"
# Free bytes: a recount spills shuffles, and a replaced file stays for 30 days beside the new one.
LITTLE_DISK, NO_DISK = 5 * 10**9, 10**9


def python_version(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Check]:
    """The lock holds for one minor version of Python."""
    found = f"Python {'.'.join(map(str, version))}"
    if version[:2] == PYTHON:
        yield Check("Python", State.OK, found)
    else:
        yield Check("Python", State.PROBLEM, f"{found}, and the locked packages are for 3.11", SET_UP)


def spark_parts(settings: Settings, found: Versions | None = None) -> Iterator[Check]:
    """Java, packages and jars, by the rules of the guard that every start of Spark passes."""
    if found is None:
        java_home = find_java_home(java_home=settings.java_home, search_path=settings.search_path)
        found = found_versions(java_home=java_home, jars=jar_paths(jars=settings.jars))
    pair = f"pyspark {found.pyspark}, delta-spark {found.delta_spark}, pandas {found.pandas or 'not there'}"
    yield from _guarded("packages", pair, [*package_problems(found), *delta_problems(found)])
    yield from _guarded("Java", f"Java {found.java} in {found.java_home}", [*java_problems(found)])
    yield from _guarded("jars", f"{len(found.jars)} jars of Delta", [*jar_problems(found)])


def accelerator(settings: Settings) -> Iterator[Check]:
    """The accelerator's jar is optional unless it is switched on."""
    jars = accelerator_jars(jars=settings.jars)
    switched = "on" if settings.accelerator else "off"
    if jars:
        yield Check("accelerator", State.OK, f"{jars[0].name}, switched {switched}")
    elif settings.accelerator:
        step = "run `make accelerator`, or set accelerator to false"
        yield Check("accelerator", State.PROBLEM, "switched on, but its jar is not there", step)
    else:
        yield Check("accelerator", State.OK, "not there; it is optional")


def server(settings: Settings, project_root: Path = PROJECT_ROOT) -> Iterator[Check]:
    """A Redis or Valkey server: what set-up recorded, else what is on PATH. Files and Spark do without."""
    for program in _servers(settings, project_root):
        version = _server_version(program)
        if version is not None and version >= OLDEST_SERVER:
            yield Check("server", State.OK, f"{program.name} {version} in {program.parent}")
            return
    step = f"{SET_UP}, or install redis-server 7.0 or newer"
    yield Check("server", State.WARNING, "no Redis 7 or Valkey server; importing, counting and reading need none", step)


def home(settings: Settings) -> Iterator[Check]:
    """All state goes into the home folder, which is made at first use."""
    folder, existing = settings.home.absolute(), _existing(settings.home)
    step = "give yourself the right to write there, or set LAKEBOARD_HOME to another folder"
    if not existing.is_dir():
        yield Check("home folder", State.PROBLEM, f"{existing} is no folder", step)
    elif not _writable(existing):
        yield Check("home folder", State.PROBLEM, f"{existing} cannot be written", step)
    elif existing == folder:
        yield Check("home folder", State.OK, str(folder))
    else:
        yield Check("home folder", State.OK, f"{folder}, not there yet: the first import makes it")


def disk(settings: Settings) -> Iterator[Check]:
    """Spark needs room for shuffles, a lake for the files that replaced ones leave."""
    free = shutil.disk_usage(_existing(settings.home)).free
    state = State.PROBLEM if free < NO_DISK else State.WARNING if free < LITTLE_DISK else State.OK
    step = "" if state is State.OK else "free disk space, or set LAKEBOARD_HOME to a folder on a larger disk"
    yield Check("free disk", state, f"{free / 10**9:,.1f} GB", step)


def choices(settings: Settings) -> Iterator[Check]:
    """Which settings were chosen, in the file or in the environment."""
    unset = Settings()
    chosen = [f"{name} = {getattr(settings, name)}" for name in settable()
              if getattr(settings, name) != getattr(unset, name)]  # fmt: skip
    file = settings.home / FILE_NAME
    source = f"{file} is read" if file.is_file() else f"no {FILE_NAME}"
    yield Check("settings", State.OK, f"{source}; {', '.join(chosen) if chosen else 'all are the defaults'}")


def _guarded(name: str, found: str, problems: list[str]) -> Iterator[Check]:
    """One check for each problem of the guard, whose sentences end with a colon and the next step."""
    if not problems:
        yield Check(name, State.OK, found)
    for problem in problems:
        said, _, step = problem.rpartition(": ")
        yield Check(name, State.PROBLEM, said or problem, step if said else SET_UP)


def _servers(settings: Settings, project_root: Path) -> Iterator[Path]:
    record = project_root / ".venv" / "server_binary"
    if record.is_file():
        yield Path(record.read_text(encoding="utf-8").strip())
    for name in SERVERS:
        if program := shutil.which(name, path=settings.search_path or os.defpath):
            yield Path(program)


def _server_version(program: Path) -> int | None:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r" v=(\d+)\.", answer)
    return int(found[1]) if found else None


def _existing(path: Path) -> Path:
    """Return the path itself, or the nearest folder above it that is there."""
    absolute = path.absolute()
    return next(place for place in (absolute, *absolute.parents) if place.exists())


def _writable(folder: Path) -> bool:
    """Say whether a file can be made there; it leaves none behind."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
