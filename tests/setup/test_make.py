"""What `make run` would do, without doing it."""

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("words", "is_fed"), [((), True), (("DEMO=1",), True), (("DEMO=0",), False)])
def test_make_run_comes_with_made_up_plays_unless_told_otherwise(words: tuple[str, ...], is_fed: bool) -> None:
    command = ["make", "--no-print-directory", "--dry-run", "run", *words]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout

    (up,) = [line for line in said.splitlines() if "lakeboard up" in line]
    assert ("lakeboard up --demo;" in up) == is_fed
