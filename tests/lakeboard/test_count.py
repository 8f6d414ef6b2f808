import json
from pathlib import Path

import pytest

from domain.questions import EmptySpanError, ItemInvalidError, MomentInvalidError, UnalignedHourError
from domain.releases import UnknownReleaseError
from ingest.read_releases import NoReleaseThenError
from lakeboard.commands.count import count_command
from tests.command_line import ran, said
from tests.lakes import ModelLake, Play, at

pytestmark = pytest.mark.lake

SPAN = ["--item", "a", "--from", "2026-11-14", "--to", "2026-11-15"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = ModelLake()
    plays = [Play("e1", "a", at(1), "IN", 3), Play("e1", "a", at(1), "IN", 3), Play("e1", "a", at(2), "IN", 5)]
    model.release(plays, frontier=at(0, day=15))
    model.release([Play("e2", "a", at(1), "SE", 4)], frontier=at(0, day=15))
    return model.write(tmp_path_factory.mktemp("lake"))


def test_json_has_the_five_measures_and_the_release(lake: Path) -> None:
    assert json.loads(said(count_command, lake, *SPAN, "--json")) == {
        "item_id": "a",
        "region": "*",
        "from": "2026-11-14T00:00:00Z",
        "to": "2026-11-15T00:00:00Z",
        "received": 15,
        "duplicates": 3,
        "conflicts": 5,
        "excluded": 0,
        "counted": 7,
        "release": 2,
        "status": "final",
        "hours_not_certified": 0,
    }


@pytest.mark.parametrize("as_of", ["1", "2026-11-20T13:30Z", "2026-11-20T14:29Z"])
def test_as_of_a_release_is_what_it_published(lake: Path, as_of: str) -> None:
    body = json.loads(said(count_command, lake, *SPAN, "--as-of", as_of, "--json"))

    assert (body["counted"], body["received"], body["release"]) == (3, 11, 1)


def test_as_of_a_date_is_the_last_release_of_that_day(lake: Path) -> None:
    assert json.loads(said(count_command, lake, *SPAN, "--as-of", "2026-11-20", "--json"))["release"] == 2


def test_a_region_counts_by_itself(lake: Path) -> None:
    assert json.loads(said(count_command, lake, *SPAN, "--region", "se", "--json"))["counted"] == 4


def test_a_person_reads_what_each_number_means(lake: Path) -> None:
    text = said(count_command, lake, "--item", "a", "--from", "2026-11-14T00:00Z", "--to", "2026-11-16T00:00Z")

    assert "a, all regions, 2026-11-14 00:00 UTC to 2026-11-16 00:00 UTC" in text
    assert "left out: same event id, other content" in text
    assert "24 hours of the span were not certified in that release" in text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--item", "a", "--from", "2026-11-14T00:30Z", "--to", "2026-11-15"], UnalignedHourError),
        (["--item", "a", "--from", "2026-11-15", "--to", "2026-11-15"], EmptySpanError),
        (["--item", "a", "--from", "2026-11-15", "--to", "soon"], MomentInvalidError),
        (["--item", "", "--from", "2026-11-14", "--to", "2026-11-15"], ItemInvalidError),
        ([*SPAN, "--as-of", "3"], UnknownReleaseError),
        ([*SPAN, "--as-of", "2026-11-19"], NoReleaseThenError),
        ([*SPAN, "--as-of", "then"], MomentInvalidError),
    ],
)
def test_what_cannot_be_asked_is_refused(lake: Path, arguments: list[str], error: type[Exception]) -> None:
    assert isinstance(ran(count_command, lake, *arguments).exception, error)
