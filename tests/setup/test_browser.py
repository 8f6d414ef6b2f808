"""The real script that looks for a browser, on machines made of a few links."""

from pathlib import Path

import pytest

from tests.setup.scripts import bare_path, program, ran, tree

pytestmark = pytest.mark.fast

TOOLS = ("cat", "grep", "id", "rm", "tail", "env")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tree(tmp_path / "project", "browser.sh", "common.sh")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return bare_path(tmp_path / "programs", TOOLS)


def choose(project: Path, programs: Path) -> tuple[int, str]:
    result = ran(project, 'as_root() { "$@"; }; choose_browser', path=programs)
    return result.returncode, result.stdout


def chosen(project: Path) -> str:
    return (project / ".venv" / "browser").read_text(encoding="utf-8").strip()


def test_a_browser_that_is_there_is_recorded(project: Path, programs: Path) -> None:
    browser = program(programs / "chromium", "echo Chromium 140.0")

    assert choose(project, programs) == (0, f"setup: tests look at pages in {browser}\n")
    assert chosen(project) == str(browser)
    assert choose(project, programs) == (0, "")


def test_one_that_does_not_run_is_passed_over(project: Path, programs: Path) -> None:
    program(programs / "chromium", "exit 127")
    other = program(programs / "google-chrome", "echo Google Chrome 140.0")

    assert choose(project, programs)[0] == 0
    assert chosen(project) == str(other)


def test_where_there_is_none_it_is_installed(project: Path, programs: Path) -> None:
    script = f'[ "$1" = update ] || printf "#!/bin/sh\\necho Chromium 140.0\\n" >{programs}/chromium; '
    program(programs / "apt-get", script + f"/bin/chmod -f 755 {programs}/chromium; true")

    code, said = choose(project, programs)

    assert (code, said.splitlines()[0]) == (0, "setup: installing chromium with apt-get")
    assert chosen(project) == str(programs / "chromium")


def test_without_any_set_up_goes_on_and_says_what_is_left_out(project: Path, programs: Path) -> None:
    (project / ".venv" / "browser").write_text("/gone/chromium\n", encoding="utf-8")

    code, said = choose(project, programs)

    assert code == 0
    assert "tests of the live pages will be skipped (Debian: apt-get install chromium, then repeat)" in said
    assert not (project / ".venv" / "browser").exists()
