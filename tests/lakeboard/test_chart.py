import json
from pathlib import Path

import pytest

from domain.questions import ChartLengthError, MomentInvalidError, RegionInvalidError
from domain.releases import UnknownReleaseError
from domain.rules import Rules
from domain.windows import UnalignedWindowError
from ingest.read_releases import NothingCountedError
from lakeboard.commands.chart import NoChartsError, chart_command
from tests.command_line import ran, said
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = ModelLake()
    model.release([Play("e1", "[red]é", at(1), "IN", 1000), Play("e2", "b", at(1), "SE", 1000)], frontier=at(2))
    model.release([Play("e3", "b", at(1), "SE"), Play("e4", "c", at(0, day=15))], frontier=at(0, day=15))
    return model.write(tmp_path_factory.mktemp("lake"))


def test_json_is_the_body_of_the_http_api(lake: Path) -> None:
    body = json.loads(said(chart_command, lake, "--window", "1h", "--start", "2026-11-14T01:00Z", "-n", "1", "--json"))

    entry = {"rank": 1, "item_id": "b", "count": 1001, "lower": 1001, "upper": 1001, "rank_min": 1, "rank_max": 1}
    assert body == {
        "window": "1h",
        "region": "*",
        "window_start": "2026-11-14T01:00:00Z",
        "window_end": "2026-11-14T02:00:00Z",
        "as_of": "2026-11-20T14:30:00Z",
        "status": "final",
        "exact": True,
        "frontier": "2026-11-15T00:00:00Z",
        "total": 2001,
        "missed_max": 1000,
        "tie_at_cut": False,
        "release": 2,
        "entries": [entry],
    }


def test_a_person_reads_items_as_they_are_spelled_totals_state_and_release(lake: Path) -> None:
    text = said(chart_command, lake, "--start", "2026-11-14")

    assert "Top 2, all regions, 2026-11-14 00:00 UTC to 2026-11-15 00:00 UTC" in text
    assert [line.split()[1:6:2] for line in text.splitlines() if line.startswith("│")] == [
        ["1", "b", "1,001"],
        ["2", "[red]é", "1,000"],
    ]
    assert "2,001 plays of 2 items; final; release 2 of 2026-11-20 14:30 UTC." in text


def test_without_a_start_it_is_the_newest_window_with_plays(lake: Path) -> None:
    newest = json.loads(said(chart_command, lake, "--json"))
    before = json.loads(said(chart_command, lake, "--json", "--version", "1"))

    assert (newest["window_start"], newest["status"], newest["exact"]) == ("2026-11-15T00:00:00Z", "provisional", False)
    assert (before["window_start"], before["release"], before["total"]) == ("2026-11-14T00:00:00Z", 1, 2000)


def test_a_provisional_chart_says_up_to_when_it_is_certified(lake: Path) -> None:
    assert "provisional, certified up to 2026-11-15 00:00 UTC" in said(chart_command, lake)


def test_a_tie_at_the_cut_is_told(lake: Path) -> None:
    text = said(chart_command, lake, "--start", "2026-11-14", "--version", "1", "-n", "1")

    assert "Tie at the cut: the next item also has 1,000 plays." in text


@pytest.mark.parametrize(("region", "words"), [("IN", "no plays."), ("xx", "no event of region XX was ever received.")])
def test_an_empty_chart_says_whether_the_region_is_known(lake: Path, region: str, words: str) -> None:
    text = said(chart_command, lake, "--start", "2026-11-13", "--region", region)

    assert words in text
    assert "0 plays of 0 items" in text


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            ["--window", "1d", "--start", "2026-11-14T01:00Z"],
            UnalignedWindowError,
            "nearest before is 2026-11-14T00:00",
        ),
        (["--start", "14.11.2026"], MomentInvalidError, "ISO 8601"),
        (["--region", "a b"], RegionInvalidError, "cannot be a region"),
        (["-n", "0"], ChartLengthError, "1 to 1000 rows"),
        (["-n", "1001"], ChartLengthError, "1 to 1000 rows"),
        (["--version", "3"], UnknownReleaseError, "from 1 to 2"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_words(
    lake: Path, arguments: list[str], error: type[Exception], words: str
) -> None:
    result = ran(chart_command, lake, *arguments)

    assert isinstance(result.exception, error)
    assert words in str(result.exception)


def test_without_a_release_it_says_to_import_and_recount(tmp_path: Path) -> None:
    assert isinstance(ran(chart_command, tmp_path).exception, NothingCountedError)


def test_a_release_in_which_nothing_counts_has_no_newest_window(tmp_path: Path) -> None:
    model = ModelLake(rules=Rules.parse('[[minimum_duration]]\nduration_ms = 1\nmissing = "exclude"'))
    model.release([Play("e", "a", at(1))], frontier=at(2))

    assert isinstance(ran(chart_command, model.write(tmp_path)).exception, NoChartsError)


def test_help_has_examples(lake: Path) -> None:
    assert "lakeboard chart --window 1d --start 2013-03-10" in said(chart_command, lake, "--help")
