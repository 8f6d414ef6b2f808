import ast
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
ROOMS = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["root_packages"]
)
LONGEST_FUNCTION = 40  # lines of body, docstring not counted
LONGEST_FILE = 300
# Spark's launcher takes JAVA_HOME and PYSPARK_PYTHON from the environment only: the session sets them.
SETS_THE_ENVIRONMENT = Path("jobs/sessions.py")

LOOKED_AT = (ast.Attribute, ast.ImportFrom, ast.Call, ast.FunctionDef, ast.AsyncFunctionDef)
Rule = Callable[[ast.Module, Path], Iterator[str]]


# --- arrows between rooms ---


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_no_room_imports_against_the_arrows() -> None:
    result = lint_imports(ROOT)

    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


FORBIDDEN_IMPORTS = {
    "domain": "import msgspec",
    "ingest": "import pyspark\nimport pipelines",
    "pipelines": "import redis\nimport ingest",
    "jobs": "import lakeboard",
}


def test_each_contract_breaks_when_its_arrow_is_turned(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text(FORBIDDEN_IMPORTS.get(room, ""), encoding="utf-8")

    result = lint_imports(tmp_path)

    assert result.returncode == 1
    assert "0 kept, 4 broken" in result.stdout, result.stdout + result.stderr
    assert "pipelines is not allowed to import ingest" in result.stdout
    assert "ingest is not allowed to import pipelines" in result.stdout
    assert "jobs is not allowed to import lakeboard" in result.stdout


def test_every_room_on_disk_is_under_contract() -> None:
    not_rooms = {"tests", "bench", "setup", "docs", "notebooks"}
    on_disk = {file.parent.name for file in ROOT.glob("*/__init__.py")} - not_rooms

    assert on_disk == set(ROOMS), "a new room goes into pyproject.toml: root_packages and packages.find"


# --- rules that walk the syntax tree ---


def dotted(node: ast.expr) -> str:
    """`os.environ` for the expression `os.environ`, empty for anything that is not a dotted name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}" if dotted(node.value) else ""
    return node.id if isinstance(node, ast.Name) else ""


def uses(tree: ast.Module, modules: set[str], names: set[str]) -> Iterator[str]:
    """Each place that takes one of the names from one of the modules, dotted or by `from ... import`."""
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr in names and dotted(node.value) in modules:
            yield f"line {node.lineno}: {dotted(node)}"
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            yield from (f"line {node.lineno}: {taken.name}" for taken in node.names if taken.name in names)


def environment_is_read_in_settings_only(tree: ast.Module, file: Path) -> Iterator[str]:
    if file.name != "settings.py" and file != SETS_THE_ENVIRONMENT:
        yield from uses(tree, {"os"}, {"environ", "environb", "getenv", "getenvb", "putenv"})


def the_clock_is_read_in_domain_clock_only(tree: ast.Module, file: Path) -> Iterator[str]:
    if file != Path("domain/clock.py"):
        yield from uses(tree, {"datetime", "datetime.datetime", "dt.datetime"}, {"now", "utcnow", "today"})
        yield from uses(tree, {"date", "datetime.date", "dt.date"}, {"today"})
        yield from uses(tree, {"time"}, {"time", "time_ns", "localtime", "gmtime", "ctime"})


def only_the_front_door_prints(tree: ast.Module, file: Path) -> Iterator[str]:
    if file.parts[0] != "lakeboard":
        for node in nodes(tree):
            if isinstance(node, ast.Call) and dotted(node.func) == "print":
                yield f"line {node.lineno}: print"


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement after the docstring to the end."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def functions_are_short(tree: ast.Module, file: Path) -> Iterator[str]:
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > LONGEST_FUNCTION:
            yield f"line {node.lineno}: {node.name} has {body_lines(node)} lines"


RULES: tuple[Rule, ...] = (
    environment_is_read_in_settings_only,
    the_clock_is_read_in_domain_clock_only,
    only_the_front_door_prints,
    functions_are_short,
)


@cache
def parsed_rooms() -> dict[Path, ast.Module]:
    """Every file of the rooms by its path from the root, parsed once for all rules."""
    files = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
    return {file.relative_to(ROOT): ast.parse(file.read_text(encoding="utf-8")) for file in files}


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """The nodes of a tree that some rule looks at, walked once for all rules."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, LOOKED_AT))


def found_in(rule: Rule, source: str, file: str) -> list[str]:
    return list(rule(ast.parse(source), Path(file)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file_of_the_rooms_keeps_the_rule(rule: Rule) -> None:
    broken = [f"{file} {place}" for file, tree in parsed_rooms().items() for place in rule(tree, file)]

    assert len(parsed_rooms()) > len(ROOMS)
    assert broken == []


def test_no_file_of_the_rooms_is_longer_than_a_reader_can_hold() -> None:
    lengths = {file: len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in parsed_rooms()}

    assert {file: lines for file, lines in lengths.items() if lines > LONGEST_FILE} == {}


@pytest.mark.parametrize(
    ("rule", "source", "file", "places"),
    [
        (environment_is_read_in_settings_only, "import os\nos.environ['A']", "jobs/lake.py", 1),
        (environment_is_read_in_settings_only, "from os import environ, getenv", "jobs/lake.py", 2),
        (environment_is_read_in_settings_only, "import os\nos.getenv('A')", "jobs/settings.py", 0),
        (environment_is_read_in_settings_only, "import os\nos.environ['A']", "jobs/sessions.py", 0),
        (environment_is_read_in_settings_only, "import os\nos.path.join('A')", "jobs/lake.py", 0),
        (the_clock_is_read_in_domain_clock_only, "datetime.now(UTC)", "ingest/rows.py", 1),
        (the_clock_is_read_in_domain_clock_only, "datetime.datetime.utcnow()", "ingest/rows.py", 1),
        (the_clock_is_read_in_domain_clock_only, "date.today()", "ingest/rows.py", 1),
        (the_clock_is_read_in_domain_clock_only, "time.time()", "ingest/rows.py", 1),
        (the_clock_is_read_in_domain_clock_only, "from time import time_ns", "ingest/rows.py", 1),
        (the_clock_is_read_in_domain_clock_only, "time.monotonic()", "ingest/rows.py", 0),
        (the_clock_is_read_in_domain_clock_only, "datetime.now(UTC)", "domain/clock.py", 0),
        (the_clock_is_read_in_domain_clock_only, "datetime.now(UTC)", "ingest/clock.py", 1),
        (only_the_front_door_prints, "print('x')", "jobs/lake.py", 1),
        (only_the_front_door_prints, "console.print('x')", "jobs/lake.py", 0),
        (only_the_front_door_prints, "print('x')", "lakeboard/cli.py", 0),
        (functions_are_short, "def f():\n    'doc'\n" + "    x = 1\n" * 40, "jobs/lake.py", 0),
        (functions_are_short, "def f():\n    'doc'\n" + "    x = 1\n" * 41, "jobs/lake.py", 1),
        (functions_are_short, "class A:\n async def f(self):\n" + "  x = 1\n" * 41, "jobs/lake.py", 1),
    ],
)
def test_each_rule_sees_what_breaks_it(rule: Rule, source: str, file: str, places: int) -> None:
    assert len(found_in(rule, source, file)) == places
