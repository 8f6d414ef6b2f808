"""`lakeboard race`."""

import json

import pytest
from click.testing import CliRunner

from domain.race import WIDTHS
from lakeboard.cli import cli

pytestmark = pytest.mark.fast


def test_the_end_is_a_table_whose_wrong_places_are_marked() -> None:
    shown = CliRunner().invoke(cli, ["race", "--width", "64", "--seed", "1"])

    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    rows = [line for line in lines if "song-" in line]
    assert (len(rows), sum("✗" in row for row in rows)) == (10, 4)
    assert "4 of 10 places are wrong" in shown.output
    assert "--width 128" in lines[-1]


def test_json_has_every_width_with_memory_and_errors() -> None:
    shown = CliRunner().invoke(cli, ["race", "--json"])

    said = json.loads(shown.output)
    assert (said["plays"], said["songs"], said["seed"]) == (60_000, 5_000, 1)
    assert [one["width"] for one in said["widths"]] == list(WIDTHS)
    assert [one["sketch_bytes"] for one in said["widths"]] == [16 * width for width in WIDTHS]
    errors = [one["worst_error"] for one in said["widths"]]
    assert (errors[0] > 1_000, errors[-1] < 100) == (True, True)
    assert [len(one["rows"]) for one in said["widths"]] == [10] * len(WIDTHS)


def test_a_width_that_is_not_offered_is_bad_use() -> None:
    shown = CliRunner().invoke(cli, ["race", "--width", "100"])

    assert shown.exit_code == 2
    assert "'100' is not one of '64'" in shown.output
