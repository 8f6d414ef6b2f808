from datetime import UTC, datetime, timedelta

import pytest

from domain.errors import BadRequestError
from domain.questions import (
    AsOf,
    ChartLengthError,
    EmptySpanError,
    ItemInvalidError,
    MomentInvalidError,
    RegionInvalidError,
    UnalignedHourError,
    checked_length,
    parse_as_of,
    parse_hours,
    parse_item,
    parse_moment,
    parse_region,
)

pytestmark = pytest.mark.fast

DAY_14 = datetime(2026, 11, 14, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-11-14", "2026-11-14T00:00Z", "2026-11-14T05:30+05:30", "20261114T000000Z"])
def test_moments_are_iso_8601_with_zone_or_a_date_at_midnight_utc(text: str) -> None:
    assert parse_moment(text) == DAY_14
    assert parse_moment(text).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-11-14T08:00", "2026-02-29", "9999-12-31", "0001-01-01T00:00+05:00", "1e9"]
)
def test_what_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(MomentInvalidError, match="2026-11-14T08:00Z"):
        parse_moment(text)


def test_a_span_of_part_hours_names_the_nearest_whole_ones() -> None:
    with pytest.raises(UnalignedHourError, match=r"start at 2026-11-14T08:00:00\+00:00 and 2026-11-14T09:00:00"):
        parse_hours("2026-11-14", "2026-11-14T08:30Z")


@pytest.mark.parametrize("end", ["2026-11-14", "2026-11-13"])
def test_a_span_that_ends_before_it_has_begun_is_refused(end: str) -> None:
    with pytest.raises(EmptySpanError, match="--to must be later"):
        parse_hours("2026-11-14", end)


def test_as_of_a_date_is_what_was_known_when_that_day_was_over() -> None:
    assert parse_as_of("2026-11-14") == AsOf(moment=DAY_14 + timedelta(days=1) - timedelta(microseconds=1))
    assert parse_as_of("2026-11-14T00:00Z") == AsOf(moment=DAY_14)
    assert parse_as_of("12") == AsOf(release=12)


@pytest.mark.parametrize(("text", "region"), [("*", "*"), ("in", "IN"), ("ZZ", "ZZ")])
def test_regions_are_upper_cased(text: str, region: str) -> None:
    assert parse_region(text) == region


@pytest.mark.parametrize("text", ["", "a b", "x" * 33, "é", "**"])
def test_what_no_event_can_have_as_region_is_refused(text: str) -> None:
    with pytest.raises(RegionInvalidError, match="ZZ for the unknown region"):
        parse_region(text)


def test_items_are_compared_in_their_one_spelling() -> None:
    assert parse_item("e\u0301") == "\u00e9"
    with pytest.raises(ItemInvalidError, match="256 bytes"):
        parse_item("x" * 257)


@pytest.mark.parametrize("n", [0, -1, 1001])
def test_a_chart_has_as_many_rows_as_are_kept(n: int) -> None:
    assert checked_length(1000, most=1000) == 1000
    with pytest.raises(ChartLengthError, match="1 to 1000 rows"):
        checked_length(n, most=1000)


def test_everything_refused_here_is_a_bad_request() -> None:
    errors = (
        MomentInvalidError,
        UnalignedHourError,
        EmptySpanError,
        RegionInvalidError,
        ItemInvalidError,
        ChartLengthError,
    )

    assert all(issubclass(error, BadRequestError) for error in errors)
