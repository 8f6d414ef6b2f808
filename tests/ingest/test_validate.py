from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.events import normal_id, normal_region
from domain.policy import Policy
from ingest.local_time import LocalZone
from ingest.times import TimeReader, TimeRules
from ingest.validate import Checked, DurationUnit, RawFields, RowChecker
from ingest.verdicts import Verdicts

pytestmark = pytest.mark.fast

DAY = datetime(2024, 1, 1, tzinfo=UTC)


def check(unit: DurationUnit = DurationUnit.MILLISECONDS, **columns: list[str | None]) -> list[Any]:
    """Return of each row (item, region, user, id, duration, count), or the reason."""
    rows = len(next(iter(columns.values())))
    defaults: dict[str, list[str | None]] = {"item": ["a"] * rows, "time": ["2024-01-01"] * rows}
    fields = {name: pa.array(values, pa.string()) for name, values in (defaults | columns).items()}
    rules = TimeRules(time_format="iso", zone=LocalZone("UTC"), oldest=DAY, latest=DAY)
    checker = RowChecker(times=TimeReader(rules), duration_unit=unit, policy=Policy())
    checked = checker.check(RawFields(**fields), Verdicts(rows))
    refused = dict(checked.verdicts.refused())
    return [refused[row].value if row in refused else values(checked, row) for row in range(rows)]


def values(checked: Checked, row: int) -> tuple[Any, ...]:
    event_id = None if checked.event_id is None else checked.event_id[row].as_py()
    columns = (checked.item_id, checked.region, checked.user_id)
    numbers = (checked.duration_ms, checked.count)
    return (*(c[row].as_py() for c in columns), event_id, *(c[row].as_py() for c in numbers))


def play(**said: Any) -> tuple[Any, ...]:
    every = {"item": "a", "region": "ZZ", "user": None, "id": None, "duration": None, "count": 1}
    return tuple((every | said).values())


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("a", play()),
        ("A", play(item="A")),  # case makes another id
        ("e\u0301", play(item="\u00e9")),  # one spelling, NFC
        ("😀", play(item="😀")),
        ("x" * 256, play(item="x" * 256)),
        ("é" * 128, play(item="é" * 128)),
        ("é" * 128 + "x", "item_invalid"),
        ("x" * 257, "item_invalid"),
        ("e\u0301" * 128, play(item="é" * 128)),  # counted as stored
        (" ", play(item=" ")),
        ("a\x00", "item_invalid"),
        ("a\x7f", "item_invalid"),
        ("a\u0085", "item_invalid"),
        ("", "item_missing"),
        (None, "item_missing"),
    ],
)
def test_items(item: str | None, expected: Any) -> None:
    assert check(item=[item]) == [expected]


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ("de", play(region="DE")),
        ("us-ca_1", play(region="US-CA_1")),
        ("", play()),
        (None, play()),
        ("zz", play()),
        ("*", "region_invalid"),
        ("a b", "region_invalid"),
        ("ß", "region_invalid"),
        ("x" * 32, play(region="X" * 32)),
        ("x" * 33, "region_invalid"),
    ],
)
def test_regions(region: str | None, expected: Any) -> None:
    assert check(region=[region]) == [expected]


def test_an_empty_user_is_not_said_and_an_impossible_one_refuses_the_row() -> None:
    users: list[str | None] = ["u", "", None, "a\n", "x" * 257]

    assert check(user=users) == [play(user="u"), play(), play(), "user_invalid", "user_invalid"]


def test_where_ids_come_from_a_column_each_row_needs_one() -> None:
    ids: list[str | None] = ["e1", "", None, "\t"]

    assert check(event_id=ids) == [play(id="e1"), "id_missing", "id_missing", "id_invalid"]


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("ms", "0", 0),
        ("ms", "6408", 6408),
        ("ms", "6408.0", 6408),
        ("ms", "6408.9", 6408),
        ("ms", "", None),
        ("ms", None, None),
        ("ms", "-1", "duration_invalid"),
        ("ms", "long", "duration_invalid"),
        ("ms", "nan", "duration_invalid"),
        ("ms", "1e400", "duration_invalid"),
        ("ms", "9007199254740993", "duration_invalid"),
        ("ms", "9007199254740992", 2**53),
        ("s", "29.9", 29_900),
        ("s", "30.0", 30_000),
        ("s", "0.1", 100),
        ("s", "1.0009999", 1000),
        ("s", "30", 30_000),
        ("s", "99999999999999", "duration_invalid"),
        ("s", "3e2", 300_000),
    ],
)
def test_durations(unit: str, text: str | None, expected: int | str | None) -> None:
    checked = check(DurationUnit(unit), duration=[text])

    assert checked == [expected if isinstance(expected, str) else play(duration=expected)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("1000000000", 10**9),
        (str(2**40), 2**40),
        (str(2**40 + 1), "count_invalid"),
        ("0", "count_invalid"),
        ("-1", "count_invalid"),
        ("3.0", 3),
        ("3.5", "count_invalid"),
        ("1e9", 10**9),
        ("1e99", "count_invalid"),
        ("007", 7),
        ("many", "count_invalid"),
        ("", 1),
        (None, 1),
    ],
)
def test_counts(text: str | None, expected: int | str) -> None:
    assert check(count=[text]) == [expected if isinstance(expected, str) else play(count=expected)]


def test_a_row_with_several_faults_has_the_first_reason() -> None:
    assert check(item=[""], time=["no"], count=["no"], region=["*"]) == ["item_missing"]


@given(st.lists(st.none() | st.text(max_size=300), min_size=1))
def test_a_column_is_checked_as_each_of_its_texts_alone(texts: list[str | None]) -> None:
    def item(text: str | None) -> Any:
        spelled = normal_id(text) if text else None
        return play(item=spelled) if spelled else ("item_invalid" if text else "item_missing")

    def region(text: str | None) -> Any:
        code = normal_region(text)
        return "region_invalid" if code is None else play(region=code)

    assert check(item=texts) == [item(text) for text in texts]
    assert check(region=texts) == [region(text) for text in texts]
