import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.events import Reject
from domain.windows import EPOCH
from ingest.local_time import Ambiguous, LocalZone, UnknownZoneError, locked_zone
from ingest.times import TimeReader, TimeRules, UnknownTimeFormatError
from ingest.verdicts import Verdicts

pytestmark = pytest.mark.fast

OLDEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
NEW_YORK = "America/New_York"
MICROSECOND = timedelta(microseconds=1)


def read(
    values: list[str | None] | pa.Array,
    time_format: str = "iso",
    zone: str = "UTC",
    ambiguous: Ambiguous = Ambiguous.REFUSE,
) -> list[str]:
    """Return each moment in ISO 8601, or the reason."""
    column = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    rules = TimeRules(time_format=time_format, zone=LocalZone(zone, ambiguous), oldest=OLDEST, latest=LATEST)
    verdicts = Verdicts(len(column))
    us = TimeReader(rules).read(column, verdicts)
    refused = dict(verdicts.refused())
    return [
        refused[row].value if row in refused else shown(EPOCH + int(us[row]) * MICROSECOND)
        for row in range(len(column))
    ]


def shown(moment: datetime) -> str:
    return moment.isoformat().removesuffix("+00:00")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01T10:20:30Z", "2024-01-01T10:20:30"),
        ("2024-01-01 10:20", "2024-01-01T10:20:00"),
        ("2024-01-01T10:20:30.381Z", "2024-01-01T10:20:30.381000"),
        ("2024-01-01T10:20:30.123456789Z", "2024-01-01T10:20:30.123456"),  # the rest is cut off
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999"),
        ("2024-01-01T00:30:00+05:45", "2023-12-31T18:45:00"),
        ("2024-01-01", "2024-01-01T00:00:00"),
        ("20240101T102030Z", "2024-01-01T10:20:30"),
        ("2024-W01-1", "2024-01-01T00:00:00"),
        ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00"),
        ("2023-02-29T12:00:00Z", "time_invalid"),
        ("2000-02-29", "2000-02-29T00:00:00"),
        ("1900-02-29", "time_invalid"),
        ("2024-04-31T00:00:00Z", "time_invalid"),
        ("2024-01-01T24:00:00Z", "time_invalid"),
        ("2024-01-01T10:20:60Z", "time_invalid"),
        ("2024-01-01T10:20:30+24:00", "time_invalid"),
        (" 2024-01-01", "time_invalid"),
        ("yesterday", "time_invalid"),
        ("٢٠٢٤-01-01", "time_invalid"),  # digits, but not ASCII ones
        ("2024-01-01T10:20:30Z\n", "time_invalid"),
        ("\x00[1, 2]", "time_invalid"),
        ("", "time_missing"),
        (None, "time_missing"),
        ("1900-01-01T00:00:00Z", "1900-01-01T00:00:00"),
        ("1899-12-31T23:59:59.999999Z", "time_out_of_range"),
        ("0001-01-01T00:00:00+14:00", "time_out_of_range"),
        ("2026-03-01T12:05:00Z", "2026-03-01T12:05:00"),
        ("2026-03-01T12:05:00.000001Z", "in_the_future"),
        ("2026-03-01T14:05:00+02:00", "2026-03-01T12:05:00"),
        ("9999-12-31T23:59:59.999999Z", "in_the_future"),
        ("9999-12-31T23:59:59-23:59", "in_the_future"),
    ],
)
def test_iso_times(text: str | None, expected: str) -> None:
    assert read([text]) == [expected]


@pytest.mark.parametrize(
    ("time_format", "text", "expected"),
    [
        ("epoch_s", "0", "1970-01-01T00:00:00"),
        ("epoch_s", "-1", "1969-12-31T23:59:59"),
        ("epoch_s", "1442059191.5", "2015-09-12T11:59:51.500000"),
        ("epoch_s", "0.1", "1970-01-01T00:00:00.100000"),
        ("epoch_s", "-0.0000005", "1969-12-31T23:59:59.999999"),  # floored, as a cut ISO time is
        ("epoch_s", "1.442059191e9", "2015-09-12T11:59:51"),
        ("epoch_s", "1e99", "in_the_future"),
        ("epoch_s", "1e999999999", "time_invalid"),
        ("epoch_s", "-99999999999", "time_out_of_range"),
        ("epoch_s", "nan", "time_invalid"),
        ("epoch_s", "1_000", "time_invalid"),
        ("epoch_s", "2024-01-01", "time_invalid"),
        ("epoch_ms", "1442059191381", "2015-09-12T11:59:51.381000"),
        ("epoch_ms", "-1", "1969-12-31T23:59:59.999000"),
        ("epoch_us", "1442059191381001", "2015-09-12T11:59:51.381001"),
        ("epoch_ns", "1442059191381001999", "2015-09-12T11:59:51.381001"),
        ("epoch_ns", "-1", "1969-12-31T23:59:59.999999"),
        ("epoch_ns", "9223372036854775808", "in_the_future"),
        ("epoch_s", "", "time_missing"),
        ("%d.%m.%Y %H:%M", "29.02.2024 07:05", "2024-02-29T07:05:00"),
        ("%d.%m.%Y %H:%M", "29.02.2023 07:05", "time_invalid"),
        ("%d.%m.%Y", "01.03.2024", "2024-03-01T00:00:00"),
        ("%Y-%m-%d %H:%M:%S %z", "2024-03-01 00:00:00 +0545", "2024-02-29T18:15:00"),
        ("%Y-%m-%d %H:%M:%S", "9999-12-31 23:59:59", "in_the_future"),
    ],
)
def test_other_formats(time_format: str, text: str, expected: str) -> None:
    assert read([text], time_format) == [expected]


@pytest.mark.parametrize(
    ("text", "refused", "earlier", "later"),
    [
        ("2013-03-10T01:59:59", "2013-03-10T06:59:59", "2013-03-10T06:59:59", "2013-03-10T06:59:59"),
        ("2013-03-10T02:00:00", *["time_nonexistent"] * 3),
        ("2013-03-10T02:59:59.999", *["time_nonexistent"] * 3),
        ("2013-03-10T03:00:00", "2013-03-10T07:00:00", "2013-03-10T07:00:00", "2013-03-10T07:00:00"),
        ("2013-11-03T00:59:59", "2013-11-03T04:59:59", "2013-11-03T04:59:59", "2013-11-03T04:59:59"),
        ("2013-11-03T01:00:00", "time_ambiguous", "2013-11-03T05:00:00", "2013-11-03T06:00:00"),
        ("2013-11-03T01:59:59", "time_ambiguous", "2013-11-03T05:59:59", "2013-11-03T06:59:59"),
        ("2013-11-03T02:00:00", "2013-11-03T07:00:00", "2013-11-03T07:00:00", "2013-11-03T07:00:00"),
        ("2013-11-03T01:30:00-05:00", *["2013-11-03T06:30:00"] * 3),  # it names its offset
        ("2013-11-03", *["2013-11-03T00:00:00"] * 3),  # a bare date is midnight UTC
    ],
)
def test_both_clock_changes_of_new_york(text: str, refused: str, earlier: str, later: str) -> None:
    read_so = [read([text], zone=NEW_YORK, ambiguous=ambiguous)[0] for ambiguous in Ambiguous]

    assert read_so == [refused, earlier, later]


@pytest.mark.parametrize(
    ("zone", "text", "expected"),
    [
        ("Asia/Kathmandu", "2024-01-01T05:45:00", "2024-01-01T00:00:00"),
        ("Asia/Kathmandu", "1986-01-01T00:10:00", "time_nonexistent"),  # +05:30 became +05:45 that midnight
        ("Asia/Kathmandu", "1986-01-01T00:15:00", "1985-12-31T18:30:00"),
        ("Australia/Lord_Howe", "2024-04-07T01:45:00", "time_ambiguous"),  # set back by half an hour
        ("Australia/Lord_Howe", "2024-04-07T01:29:00", "2024-04-06T14:29:00"),
        ("Pacific/Apia", "2011-12-30T12:00:00", "time_nonexistent"),  # a whole day was skipped
        ("Africa/Monrovia", "1930-01-01T00:00:00", "1930-01-01T00:44:30"),  # an offset of odd seconds
        ("Asia/Tokyo", "1900-01-01T00:00:00", "time_out_of_range"),  # still 1899 in UTC
    ],
)
def test_odd_zones(zone: str, text: str, expected: str) -> None:
    assert read([text], zone=zone) == [expected]


@pytest.mark.parametrize("pattern", ["", "nonsense", "%Q %Y", "%H:%M", "%d.%m.", "%Y %Z", "%Y %"])
def test_a_pattern_that_cannot_be_read_back_is_refused(pattern: str) -> None:
    with pytest.raises(UnknownTimeFormatError, match="--time-format"):
        read(["2024"], pattern)


@pytest.fixture
def other_zones(tmp_path: Path) -> Iterator[None]:
    """A machine whose own database takes New York for Kathmandu and knows a zone of Mars."""
    (tmp_path / "America").mkdir()
    for name in (NEW_YORK, "Mars"):
        content = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Kathmandu").read_bytes()
        (tmp_path / name).write_bytes(content)
    zoneinfo.reset_tzpath([tmp_path])
    ZoneInfo.clear_cache()
    locked_zone.cache_clear()
    yield
    zoneinfo.reset_tzpath()
    ZoneInfo.clear_cache()


@pytest.mark.usefixtures("other_zones")
def test_zones_are_those_of_the_locked_package_whatever_the_machine_has() -> None:
    assert ZoneInfo(NEW_YORK).utcoffset(datetime(2024, 7, 1)) == timedelta(hours=5, minutes=45)  # noqa: DTZ001

    assert read(["2024-07-01T08:00:00"], zone=NEW_YORK) == ["2024-07-01T12:00:00"]
    with pytest.raises(UnknownZoneError):
        LocalZone("Mars")


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "America", "../etc/passwd", "/etc/localtime", "a\0b"])
def test_a_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(UnknownZoneError, match="time zone"):
        LocalZone(zone)


def plain(text: str | None, zone: str) -> str:
    """The same by Python's own types, one text at a time."""
    if not text:
        return Reject.TIME_MISSING
    try:
        moment = datetime.combine(date.fromisoformat(text), datetime.min.time(), tzinfo=UTC)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return Reject.TIME_INVALID
    if moment.tzinfo is None:
        clock = locked_zone(zone)
        readings = [moment.replace(tzinfo=clock, fold=fold) for fold in (0, 1)]
        round_trips = [r.astimezone(UTC).astimezone(clock).replace(tzinfo=None) for r in readings]
        if moment not in round_trips:
            return Reject.TIME_NONEXISTENT
        if readings[0].utcoffset() != readings[1].utcoffset():
            return Reject.TIME_AMBIGUOUS
        moment = readings[0]
    moment = moment.astimezone(UTC)
    if moment < OLDEST:
        return Reject.TIME_OUT_OF_RANGE
    return Reject.IN_THE_FUTURE if moment > LATEST else shown(moment)


@st.composite
def time_texts(draw: st.DrawFn) -> str | None:
    day = f"{draw(st.integers(1898, 2027))}-{draw(st.integers(0, 13)):02d}-{draw(st.integers(0, 32)):02d}"
    clock = f"{draw(st.integers(0, 24)):02d}:{draw(st.integers(0, 60)):02d}:{draw(st.integers(0, 60)):02d}"
    parts = ["", "T", " ", clock, clock[:5], ".", "5", "123", "123456", "1234567", "Z", "+05:45", "-25:00"]
    shape = draw(st.sampled_from(["{d}", "{d}T{c}", "{d} {c}.{f}", "{d}T{c}Z", "{d}T{c}.{f}+05:45", "{mess}"]))
    mess = day + "".join(draw(st.lists(st.sampled_from(parts), max_size=4)))
    fraction = draw(st.sampled_from(["1", "12", "123", "1234", "123456", "1234567", "999999999"]))
    return draw(st.none() | st.just(shape.format(d=day, c=clock, f=fraction, mess=mess)))


@given(
    st.lists(time_texts() | st.text(max_size=12), max_size=8),
    st.sampled_from(["UTC", NEW_YORK, "Asia/Kathmandu", "Australia/Lord_Howe", "America/Los_Angeles"]),
)
@example(["2013-03-10T02:30:00", "2013-11-03 01:30", "2012-02-29T10:00:00"], NEW_YORK)
def test_a_column_reads_as_each_of_its_times_alone(texts: list[str | None], zone: str) -> None:
    assert read(texts, zone=zone) == [plain(text, zone) for text in texts]


@given(st.lists(st.integers(-(10**20), 10**20), max_size=8), st.sampled_from(["s", "ms", "us", "ns"]))
def test_epochs_are_exact(numbers: list[int], unit: str) -> None:
    nanoseconds = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]

    def expected(number: int) -> str:
        us = number * nanoseconds // 1000
        if us < (OLDEST - EPOCH) // MICROSECOND:
            return Reject.TIME_OUT_OF_RANGE
        too_late = us > (LATEST - EPOCH) // MICROSECOND
        return Reject.IN_THE_FUTURE if too_late else shown(EPOCH + us * MICROSECOND)

    texts: list[str | None] = [str(number) for number in numbers]
    assert read(texts, f"epoch_{unit}") == [expected(number) for number in numbers]


def test_arrow_times_keep_their_zone_and_others_follow_the_option() -> None:
    noon = datetime.fromisoformat("2024-07-01T12:00")
    zoned = pa.array([noon, None], pa.timestamp("ms", "Asia/Tokyo"))  # noon UTC, shown in Tokyo

    assert read(zoned, zone=NEW_YORK) == ["2024-07-01T12:00:00", "time_missing"]
    assert read(pa.array([noon], pa.timestamp("s")), zone=NEW_YORK) == ["2024-07-01T16:00:00"]
    assert read(pa.array([date(2024, 7, 1)], pa.date32()), zone=NEW_YORK) == ["2024-07-01T00:00:00"]
    assert read(pa.array([date(2024, 7, 1)], pa.date64()), zone=NEW_YORK) == ["2024-07-01T00:00:00"]


def test_arrow_times_of_any_unit_and_size() -> None:
    far = 2**63 - 1

    assert read(pa.array([-1, 1999], pa.timestamp("ns"))) == [
        "1969-12-31T23:59:59.999999",
        "1970-01-01T00:00:00.000001",
    ]
    for unit in ("s", "ms", "us"):
        column = pa.array([far, -far - 1, 0], pa.timestamp(unit))
        assert read(column) == ["in_the_future", "time_out_of_range", "1970-01-01T00:00:00"]
    assert read(pa.array([2**31 - 1, -(2**31)], pa.date32())) == ["in_the_future", "time_out_of_range"]
