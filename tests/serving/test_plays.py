import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.events import Reject
from domain.policy import DEFAULT_POLICY
from domain.windows import EPOCH
from ingest.local_time import LocalZone
from ingest.log_entry import NOT_SAID, Play
from ingest.times import TimeReader, TimeRules
from ingest.validate import DurationUnit, RawFields, RowChecker
from ingest.verdicts import Verdicts
from serving.plays import Judged, RowJudge
from serving.problems import ROW_CODES, ZONE_MISSING, RefusedError
from serving.rows import FIELDS, rows_of_json, rows_of_lines

pytestmark = pytest.mark.fast

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
LATEST = NOW + timedelta(minutes=5)
MICROSECOND = timedelta(microseconds=1)


def judged(body: str | bytes | list[Any] | dict[str, Any]) -> Judged:
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    return RowJudge(DEFAULT_POLICY).judge(rows_of_json(raw)[0], NOW)


def code_of(**fields: Any) -> str:
    """The verdict on one play with these fields instead of good ones; empty when it is taken."""
    found = judged({"item_id": "a", "event_id": "1", **fields})
    return found.errors[0].code if found.errors else ""


def refusal(body: bytes) -> str:
    with pytest.raises(RefusedError) as caught:
        rows_of_json(body)
    return caught.value.code


# --- the same verdict as an import ---

texts = st.one_of(
    st.sampled_from(
        [
            "",
            "a",
            "é",
            "e\u0301",
            "\x00",
            "\x7f",
            "x" * 256,
            "x" * 257,
            "é" * 128,
            "é" * 129,
            "IN",
            "*",
            "i n",
            "US-NY",
            "3",
            "3.0",
            "2.5",
            "0",
            "-1",
            "1e3",
            "9" * 30,
            str(2**40),
            str(2**40 + 1),
            str(2**53),
            str(2**53 + 1),
        ]
    ),
    st.text(max_size=12),
)
times = st.one_of(
    st.sampled_from(["", "2026-11-14", "20261114", "2026-W46-6", "2026-11-14T09:30:00Z", "2026-11-14T09:30",
                     "2026-11-14T15:00:00+05:30", "2026-11-14T09:35:00Z", "2026-11-14T09:35:00.000001Z",
                     "2026-11-14T09:30:00.123456789Z", "1899-12-31T23:59:59Z", "1900-01-01T00:00:00Z", "1900-01-01",
                     "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "10000-01-01T00:00Z", "now",
                     "2026-02-30", "2026-11-14 09:30:00Z", "2026-11-14T24:00:00Z", "2026-11-14T09:30:60Z"]),
    st.datetimes(timezones=st.sampled_from([UTC])).map(datetime.isoformat),
    st.text(max_size=12),
)  # fmt: skip
rows = st.fixed_dictionaries(
    {"item_id": texts, "event_id": texts},
    optional={"region": texts, "user_id": texts, "event_time": times, "duration_ms": texts, "count": texts},
)


def importer_verdicts(found: list[dict[str, str]]) -> list[str | Play]:
    """What the importer makes of the same texts, as one file; times that the API stamps get a good one."""
    rules = TimeRules(time_format="iso", zone=LocalZone("UTC"), oldest=DEFAULT_POLICY.oldest_event, latest=LATEST)
    checker = RowChecker(times=TimeReader(rules), duration_unit=DurationUnit.MILLISECONDS, policy=DEFAULT_POLICY)
    stamped = [row | {"event_time": row.get("event_time", NOW.isoformat())} for row in found]
    columns = {name: pa.array([row.get(name) for row in stamped], pa.string()) for name in FIELDS}
    raw = RawFields(
        item=columns["item_id"], event_id=columns["event_id"], time=columns["event_time"], region=columns["region"],
        user=columns["user_id"], duration=columns["duration_ms"], count=columns["count"],
    )  # fmt: skip
    checked = checker.check(raw, Verdicts(len(found)))
    refused: dict[int, str] = dict(checked.verdicts.refused())
    event_ids = checked.event_id
    assert event_ids is not None
    return [refused.get(n) or _play(checked, event_ids, n, said="event_time" in row) for n, row in enumerate(found)]


def _play(checked: Any, event_ids: pa.Array, n: int, *, said: bool) -> Play:
    duration = checked.duration_ms[n].as_py()
    return Play(
        event_ids[n].as_py(), 0, checked.item_id[n].as_py(), checked.region[n].as_py(), checked.user_id[n].as_py(),
        int(checked.event_time_us[n]) if said else NOT_SAID, NOT_SAID if duration is None else duration,
        checked.count[n].as_py(),
    )  # fmt: skip


def api_verdicts(found: list[dict[str, str]]) -> list[str | Play]:
    """The API's verdict on each row alone, as copies within a request are another matter."""
    verdicts: list[str | Play] = []
    for row in found:
        result = judged([row])
        verdicts.append(result.errors[0].code if result.errors else
                        msgspec.structs.replace(result.plays[0], id_hash=0))  # fmt: skip
    return verdicts


def is_local(row: dict[str, str]) -> bool:
    try:
        return datetime.fromisoformat(row.get("event_time", "")).tzinfo is None and len(row["event_time"]) > 10
    except ValueError:
        return False


@given(st.lists(rows, min_size=1, max_size=8))
@example([{"item_id": "a", "event_id": "\ufb01", "event_time": "2026-11-14T09:35:00Z", "duration_ms": "1.9"}])
def test_the_api_and_an_import_judge_the_same_texts_alike(found: list[dict[str, str]]) -> None:
    zoned = [row for row in found if not is_local(row)]

    assert not zoned or api_verdicts(zoned) == importer_verdicts(zoned)


@given(st.lists(rows, min_size=1, max_size=8))
def test_a_request_is_judged_row_by_row_whatever_its_other_rows_are(found: list[dict[str, str]]) -> None:
    together = judged([row | {"event_id": f"{n}"} for n, row in enumerate(found)])
    alone = [judged([row | {"event_id": f"{n}"}]) for n, row in enumerate(found)]

    assert [play for one in alone for play in one.plays] == list(together.plays)
    assert [n for n, one in enumerate(alone) if one.errors] == [error.index for error in together.errors]
    assert [one.errors[0].code for one in alone if one.errors] == [error.code for error in together.errors]


plain = st.fixed_dictionaries(
    {"item_id": st.text("abc ~é\x1f", max_size=3), "event_id": st.text("12\x7f", max_size=3)},
    optional={
        "user_id": st.none() | st.text("uv\x00", max_size=2),
        "region": st.none() | st.sampled_from(["", "in", "IN", "*"]),
        "event_time": st.none() | times,
        "duration_ms": st.none() | st.sampled_from([0, 1, -1, 10**15 + 1, 2**53, 2**53 + 1, NOT_SAID, NOT_SAID - 1]),
        "count": st.none() | st.sampled_from([0, 1, -1, 2**40, 2**40 + 1, 2**64]),
    },
)


@given(plain)
def test_the_quick_way_through_plain_rows_says_what_the_long_one_says(row: dict[str, Any]) -> None:
    judge = RowJudge(DEFAULT_POLICY)
    quick = judge.judge(rows_of_json(json.dumps([row]).encode())[0], NOW)
    # The same row beside one that cannot be read quickly, so that all take the long way.
    both = judge.judge(rows_of_json(json.dumps([row, {"item_id": True}]).encode())[0], NOW)

    assert list(quick.plays) == list(both.plays)
    assert [error.code for error in quick.errors] == [error.code for error in both.errors if error.index == 0]


# --- what each field takes ---

GOOD = [
    {}, {"item_id": 7}, {"item_id": 2**70}, {"event_id": -1}, {"user_id": 12345678901234567890}, {"user_id": ""},
    {"region": ""}, {"region": None}, {"event_time": None}, {"event_time": "2026-11-14"}, {"duration_ms": 1.5},
    {"duration_ms": "201000"}, {"count": "3"}, {"count": 3.0}, {"count": 2**40}, {"item_id": "x" * 256},
    {"event_time": "2026-11-14T09:35:00Z"}, {"event_time": "1900-01-01T00:00:00Z"},
]  # fmt: skip
BAD = [
    ({"item_id": ""}, "item_missing"), ({"item_id": None}, "item_missing"), ({"item_id": True}, "item_invalid"),
    ({"item_id": 1.0}, "item_invalid"), ({"item_id": ["a"]}, "item_invalid"), ({"item_id": "x" * 257}, "item_invalid"),
    ({"item_id": "a\x00b"}, "item_invalid"), ({"item_id": "\x9f"}, "item_invalid"), ({"event_id": ""}, "id_missing"),
    ({"event_id": {}}, "id_invalid"), ({"event_id": "\ud800"}, "id_invalid"), ({"user_id": "\n"}, "user_invalid"),
    ({"user_id": False}, "user_invalid"), ({"region": "*"}, "region_invalid"), ({"region": "x" * 33}, "region_invalid"),
    ({"event_time": ""}, "time_missing"), ({"event_time": "soon"}, "time_invalid"), ({"event_time": 0}, "time_invalid"),
    ({"event_time": 20261114}, "time_invalid"), ({"event_time": "2026-11-14T09:30:00"}, ZONE_MISSING),
    ({"event_time": "1899-12-31"}, "time_out_of_range"), ({"event_time": "10000-01-01T00:00Z"}, "time_invalid"),
    ({"event_time": "2026-11-14T09:35:00.000001Z"}, "in_the_future"), ({"event_time": "9999-12-31"}, "in_the_future"),
    ({"duration_ms": -1}, "duration_invalid"), ({"duration_ms": NOT_SAID}, "duration_invalid"),
    ({"duration_ms": 2**53 + 1}, "duration_invalid"), ({"count": 0}, "count_invalid"), ({"count": -1}, "count_invalid"),
    ({"count": 2.5}, "count_invalid"), ({"count": 2**40 + 1}, "count_invalid"), ({"count": 10**400}, "count_invalid"),
    ({"count": True}, "count_invalid"), ({"count": "many"}, "count_invalid"),
]  # fmt: skip


@pytest.mark.parametrize("fields", GOOD, ids=str)
def test_good_values_are_taken(fields: dict[str, Any]) -> None:
    assert code_of(**fields) == ""


@pytest.mark.parametrize(("fields", "code"), BAD, ids=lambda value: str(value)[:40])
def test_a_bad_value_is_refused_with_the_code_of_its_field(fields: dict[str, Any], code: str) -> None:
    found = judged({"item_id": "a", "event_id": "1", **fields})

    assert [error.code for error in found.errors] == [code]
    assert found.errors[0].field == next(iter(fields))
    assert found.errors[0].index == 0
    assert list(found.plays) == []


def test_whole_numbers_are_ids_in_their_decimal_digits() -> None:
    found = judged([{"item_id": 2**70, "event_id": 12345678901234567890123}, {"item_id": -5, "event_id": 0}])

    assert [(p.item_id, p.event_id) for p in found.plays] == [(str(2**70), "12345678901234567890123"), ("-5", "0")]


def test_a_time_is_kept_to_the_microsecond_and_a_date_is_midnight() -> None:
    said = ["2026-11-14", "2026-11-14T05:30:00.000001+05:30", "1969-12-31T23:59:59.999999Z"]
    found = judged([{"item_id": "a", "event_id": str(n), "event_time": text} for n, text in enumerate(said)])

    moments = [EPOCH + play.event_time_us * MICROSECOND for play in found.plays]
    midnight = datetime(2026, 11, 14, tzinfo=UTC)
    assert moments == [midnight, midnight + MICROSECOND, EPOCH - MICROSECOND]


def test_an_id_is_stored_in_its_one_spelling_with_the_hash_of_it() -> None:
    decomposed, composed = (
        judged([{"item_id": "a", "event_id": "e\u0301"}]),
        judged([{"item_id": "a", "event_id": "é"}]),
    )

    assert decomposed.plays[0] == composed.plays[0]
    assert decomposed.plays[0].event_id == "é"


# --- repeats within a request ---


def test_an_equal_repeat_is_counted_and_another_payload_goes_to_the_log() -> None:
    row = {"item_id": "a", "event_id": "1"}
    found = judged([row, row, row | {"item_id": "b"}, row | {"item_id": "b"}, row, {"item_id": "a", "event_id": "2"}])

    assert [(play.event_id, play.item_id) for play in found.plays] == [("1", "a"), ("1", "b"), ("2", "a")]
    assert found.duplicates == 3


def test_spellings_of_one_payload_are_repeats() -> None:
    found = judged([
        {"item_id": "a", "event_id": "1", "region": "in", "event_time": "2026-11-14"},
        {"item_id": "a", "event_id": 1, "region": "IN", "event_time": "2026-11-14T01:00:00+01:00", "count": "1"},
    ])  # fmt: skip

    assert len(found.plays) == 1
    assert found.duplicates == 1


# --- bodies ---


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "empty"), (b" \n", "empty"), (b"[]", "empty"), (b"[ ]", "empty"), (b"{", "invalid_json"),
        (b"[{}", "invalid_json"), (b"[{},]", "invalid_json"), (b"nonsense", "invalid_json"),
        (b'{"item_id":NaN,"event_id":"1"}', "invalid_json"), (b'[{"item_id":"a","count":Infinity}]', "invalid_json"),
        (b'{"item_id":"\x01","event_id":"1"}', "invalid_json"), (b'{"item_id":"\xff","event_id":"1"}', "invalid_json"),
        (b"\xef\xbb\xbf[]", "invalid_json"), (b"[" * 100_000, "invalid_json"), (b'{"a":' * 100_000, "invalid_json"),
        (b'{"item_id":"a","event_id":"1","x":1}', "unknown_field"), (b'[{"itemid":"a"}]', "unknown_field"),
        (b"[" + b"1," * 1000 + b"1]", "too_many_rows"),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else value,
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused(body: bytes, code: str) -> None:
    assert refusal(body) == code


def test_the_thousandth_row_is_taken_and_one_more_is_too_many() -> None:
    rows = [{"item_id": "a", "event_id": str(n)} for n in range(1001)]

    assert len(judged(rows[:1000]).plays) == 1000
    assert refusal(json.dumps(rows).encode()) == "too_many_rows"


def test_values_that_are_no_objects_are_bad_rows() -> None:
    found = judged('[1, "a", null, [], {"item_id":"a","event_id":"1"}, NULL]'.replace("NULL", "true"))

    assert [(error.index, error.code) for error in found.errors] == [(n, "unreadable_row") for n in (0, 1, 2, 3, 5)]
    assert len(found.plays) == 1


def test_half_a_surrogate_pair_is_the_fault_of_its_row_only() -> None:
    found = judged(r'[{"item_id":"\ud83d","event_id":"1"},{"item_id":"\ud83d\ude00","event_id":"2"}]')

    assert [(error.index, error.code) for error in found.errors] == [(0, "item_invalid")]
    assert [play.item_id for play in found.plays] == ["😀"]


def test_an_unknown_field_is_named_with_its_row() -> None:
    with pytest.raises(RefusedError) as caught:
        rows_of_json(b'[{"item_id":"a","event_id":"1"},{"item_id":"a","event_id":"2","event-time":"2026-11-14"}]')

    assert (caught.value.code, caught.value.field, caught.value.index) == ("unknown_field", "event-time", 1)


def test_lines_may_end_in_two_ways_and_be_blank_and_a_broken_one_is_one_bad_row() -> None:
    body = (
        b'{"item_id":"a","event_id":1}\r\n\n{"item_id":\n[1]\n \n'
        b'{"item_id":"b\xff","event_id":3}\n{"item_id":"c","event_id":4}'
    )
    found = RowJudge(DEFAULT_POLICY).judge(rows_of_lines(body), NOW)

    assert [play.item_id for play in found.plays] == ["a", "c"]
    assert [(e.index, e.code) for e in found.errors] == [(1, "unreadable_row"), (2, "unreadable_row"), (3, "not_utf8")]


def test_plain_lines_are_rows_too() -> None:
    body = b'{"item_id":"a","event_id":"1"}\n\n{"item_id":"b","event_id":"2"}\r\n'

    assert [play.item_id for play in RowJudge(DEFAULT_POLICY).judge(rows_of_lines(body), NOW).plays] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "code"), [(b"\n\n", "empty"), (b"{}\n" * 1001, "too_many_rows"), (b"\n" * 2001, "too_many_rows")]
)
def test_lines_without_rows_or_with_too_many_are_refused(body: bytes, code: str) -> None:
    with pytest.raises(RefusedError) as caught:
        rows_of_lines(body)

    assert caught.value.code == code


def test_every_verdict_has_its_words() -> None:
    of_files_only = {Reject.WRONG_COLUMNS, Reject.TIME_AMBIGUOUS, Reject.TIME_NONEXISTENT}

    assert set(ROW_CODES) == (set(Reject) - of_files_only) | {ZONE_MISSING}
    assert np.all([detail for _, detail in ROW_CODES.values()])
