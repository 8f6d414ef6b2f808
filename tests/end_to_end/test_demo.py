"""What `make run` does, as a newcomer sees it: the installed command, an empty home, another time zone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

LAKEBOARD = Path(sys.executable).with_name("lakeboard")


def lakeboard(home: Path, *arguments: str, code: int = 0) -> str:
    """Return what was printed: the answer of a command that went well, or also the steps and errors of one."""
    result = ran(home, *arguments, code=code)
    return result.stdout + (result.stderr if code else "")


def ran(home: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LAKEBOARD_HOME": str(home), "TZ": "America/Los_Angeles", "HOME": str(home / "nobody")}
    result = subprocess.run(
        [LAKEBOARD, *arguments], env=environment, capture_output=True, text=True, timeout=540, check=False
    )
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def test_the_demo_counts_the_flights_and_a_second_one_starts_no_spark(tmp_path: Path) -> None:
    first, second = ran(tmp_path, "demo"), ran(tmp_path, "demo")

    for said in (
        "5,235 flights in the lake, 5,235 of them new",
        "8 proofs hold",
        "ATL",
        "910 plays of 85 items; final",
    ):
        assert said in first.stdout, first
    for said in ("5,235 flights in the lake, 0 of them new", "Nothing new: release 1", "910 plays of 85 items; final"):
        assert said in second.stdout, second
    assert "start Spark" in first.stderr
    assert "start Spark" not in second.stderr

    chart = json.loads(lakeboard(tmp_path, "chart", "--window", "1d", "--start", "2013-03-10", "-n", "2", "--json"))
    assert [(row["item_id"], row["count"], row["rank"]) for row in chart["entries"]] == [("ATL", 45, 1), ("FLL", 44, 2)]
    assert (chart["status"], chart["exact"], chart["total"], chart["tie_at_cut"]) == ("final", True, 910, False)
    count = json.loads(
        lakeboard(tmp_path, "count", "--item", "ATL", "--from", "2013-03-10", "--to", "2013-03-11", "--json")
    )
    assert (count["received"], count["counted"], count["duplicates"], count["status"]) == (45, 45, 0, "final")
    assert lakeboard(tmp_path, "verify").count("holds ") == 11
    sql = lakeboard(tmp_path, "sql", "--format", "csv", "select sum(counted) as flights from daily_counts")
    assert sql.split() == ["flights", "5235"]


def test_bad_use_is_one_sentence_with_a_next_step(tmp_path: Path) -> None:
    nothing = lakeboard(tmp_path, "chart", code=1)
    unaligned = lakeboard(tmp_path, "chart", "--start", "2013-03-10T00:30Z", code=1)
    (tmp_path / "rules.toml").write_text("[[minimum_duration]]\nduration = 3\n", encoding="utf-8")
    rules = lakeboard(tmp_path, "recount", code=2)

    assert "lakeboard recount" in nothing
    assert unaligned.startswith("lakeboard: ")
    assert "unknown keys duration" in rules
    assert rules.count("\n") == 1
