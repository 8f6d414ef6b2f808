"""What lands in bronze, value by value."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.events import normal_id, normal_region
from domain.policy import Policy
from ingest.hashing import content_hash, id_hash, payload_hash
from ingest.importers.run import import_files
from ingest.local_time import Ambiguous
from ingest.manifest import manifest_path
from tests.ingest.importing import (
    HEADER,
    NOW,
    file_of,
    import_into,
    import_text,
    items,
    plays,
    reasons,
    rejects,
    request_of,
    times,
)


def test_a_play_has_every_column(tmp_path: Path) -> None:
    text = "item,time,where,who,ms,n\napple,2024-02-29T13:59:59.5Z,de,u1,30000,2\n"

    summary = import_text(tmp_path, text, region="where", user="who", duration="ms", count="n")

    (play,) = plays(tmp_path / "lake")
    moment = datetime(2024, 2, 29, 13, 59, 59, 500_000, tzinfo=UTC)
    said: dict[str, Any] = {"item_id": "apple", "region": "DE", "user_id": "u1", "duration_ms": 30000, "count": 2}
    assert play == {
        "event_id": "plays#0:0",
        "id_hash": id_hash("plays#0:0"),
        "payload_hash": payload_hash(**said, event_time=moment),
        **said,
        "event_time": moment,
        "event_date": date(2024, 2, 29),
        "event_hour": 13,
        "source": "plays",
        "source_row": 0,
        "time_source": "client",
        "ingested_at": NOW,
        "log_id": "import/plays",
        "log_partition": 0,
        "log_ms": 1772366400000,
        "log_sequence": 0,
        "log_index": 0,
        "writer": "lake_writer/import/plays/0",
        "writer_seq": 1,
    }
    assert (summary.read, summary.accepted, summary.rejected, summary.new_rows, summary.already) == (1, 1, 0, 1, 0)


def test_a_refused_row_has_its_place_reason_and_text(tmp_path: Path) -> None:
    text = b'item,time\r\n\r\n"a\r\nb",2024-01-01\r\nc,soon\r\n"d \xff",2024-01-01\r\n'

    summary = import_text(tmp_path, text, "folder/plays.csv.gz", source="s")

    control, soon, not_utf8 = rejects(tmp_path / "lake")
    assert (control["reason"], control["source_row"], control["source_line"]) == ("item_invalid", 0, 3)
    assert control["payload"] == '"a\r\nb",2024-01-01'
    assert soon == {
        "reason": "time_invalid",
        "detail": "soon",
        "source": "s",
        "source_file": "plays.csv.gz",
        "source_row": 1,
        "source_line": 5,
        "payload": "c,soon",
        "ingested_at": NOW,
        "ingested_date": NOW.date(),
        "writer": "lake_writer/import/s/0",
        "writer_seq": 3,
    }
    assert (not_utf8["reason"], not_utf8["payload"]) == ("not_utf8", '"d \\xff",2024-01-01')
    assert (summary.read, summary.accepted, summary.rejected) == (3, 0, 3)
    assert summary.to_json()["rejected_by_reason"] == {"item_invalid": 1, "not_utf8": 1, "time_invalid": 1}


def test_a_refused_row_is_kept_up_to_64_kib(tmp_path: Path) -> None:
    import_text(tmp_path, HEADER + "é" * 40_000 + ",soon\n")

    assert rejects(tmp_path / "lake")[0]["payload"] == "é" * 32_768


ODD = f"""item,time,n
{"x" * 256},2024-01-01,1
{"é" * 129},2024-01-01,1
😀,2024-01-01,1000000000
e\u0301,2024-01-01,1
\u00e9,2024-01-01,1
abc,2024-01-01,1
ABC,2024-01-01,1
a,9999-12-31T23:59:59Z,1
a,1899-12-31,1
a,2024-02-29T00:00:00Z,1
a,2023-02-29T00:00:00Z,1
a,2026-03-01T12:05:00Z,1
a,2026-03-01T12:05:01Z,1
"""


def test_odd_rows_are_right_or_refused_for_a_reason(tmp_path: Path) -> None:
    summary = import_text(tmp_path, ODD, count="n")

    lake = tmp_path / "lake"
    assert items(lake) == ["x" * 256, "😀", "é", "é", "abc", "ABC", "a", "a"]
    assert [play["count"] for play in plays(lake)][:2] == [1, 10**9]
    assert [row["source_row"] for row in plays(lake)] == [0, 2, 3, 4, 5, 6, 9, 11]
    assert reasons(lake) == [
        "item_invalid", "in_the_future", "time_out_of_range", "time_invalid", "in_the_future"
    ]  # fmt: skip
    assert summary.read == 13 == summary.accepted + summary.rejected


@pytest.mark.parametrize("text", ["", "item,time\n", "\ufeffitem,time"])
def test_an_empty_file_has_no_rows_and_is_fine(tmp_path: Path, text: str) -> None:
    summary = import_text(tmp_path, text)

    assert (summary.read, summary.accepted, summary.new_rows) == (0, 0, 0)
    assert plays(tmp_path / "lake") == []


def test_rows_that_look_the_same_are_plays_of_their_own(tmp_path: Path) -> None:
    import_text(tmp_path, HEADER + "a,2024-01-01\n" * 3)

    assert [play["event_id"] for play in plays(tmp_path / "lake")] == ["plays#0:0", "plays#0:1", "plays#0:2"]


def test_ids_come_from_their_column(tmp_path: Path) -> None:
    import_text(tmp_path, "item,time,id\na,2024-01-01,e\u0301\na,2024-01-01,\n", event_id="id")

    assert [play["event_id"] for play in plays(tmp_path / "lake")] == ["é"]
    assert reasons(tmp_path / "lake") == ["id_missing"]


def test_equal_rows_share_an_id_when_asked_and_the_summary_counts_them(tmp_path: Path) -> None:
    text = HEADER + "a,2024-01-01\nb,2024-01-01\na,2024-01-01\na,2024-01-01T00:00:00\na,2024-01-01\n"
    first = file_of(tmp_path, text, "one.csv")
    second = file_of(tmp_path, HEADER + "b,2024-01-01\nc,2024-01-01\n", "two.csv")

    summary = import_into(tmp_path / "lake", first, second, source="s", dedup_by_content=True)

    ids = [play["event_id"] for play in plays(tmp_path / "lake")]
    assert ids[0] == f"s:{content_hash(b'a,2024-01-01')}"
    assert [ids.index(event_id) for event_id in ids] == [0, 1, 0, 3, 0, 1, 6]
    assert [file.repeated for file in summary.files] == [2, 1]
    assert summary.files[0].accepted == 5  # bronze keeps the copies


def test_a_template_joins_columns_and_lacks_a_value_where_one_is_empty(tmp_path: Path) -> None:
    text = "artist,track,day,clock\nX,Y,2024-01-01,10:00\nX,,2024-01-01,10:00\n"
    path = file_of(tmp_path, text)

    import_into(tmp_path / "lake", path, item="{track} ({artist})", time="{day}T{clock}Z")

    assert items(tmp_path / "lake") == ["Y (X)"]
    assert times(tmp_path / "lake") == ["2024-01-01T10:00:00+00:00"]
    assert reasons(tmp_path / "lake") == ["item_missing"]


NIGHTS = """item,time
before,2013-03-10T01:59:59
skipped,2013-03-10T02:30:00
after,2013-03-10T03:00:00
first,2013-11-03T00:59:59
twice,2013-11-03T01:30:00
later,2013-11-03T02:00:00
day,2013-11-03
"""


def test_both_nights_of_new_york(tmp_path: Path) -> None:
    import_text(tmp_path, NIGHTS, time_zone="America/New_York")

    assert items(tmp_path / "lake") == ["before", "after", "first", "later", "day"]
    assert [moment[5:16] for moment in times(tmp_path / "lake")] == [
        "03-10T06:59", "03-10T07:00", "11-03T04:59", "11-03T07:00", "11-03T00:00"
    ]  # fmt: skip
    assert [(row["reason"], row["detail"]) for row in rejects(tmp_path / "lake")] == [
        ("time_nonexistent", "2013-03-10T02:30:00"),
        ("time_ambiguous", "2013-11-03T01:30:00"),
    ]


def test_a_time_shown_twice_can_be_told_which_it_was(tmp_path: Path) -> None:
    for ambiguous in (Ambiguous.EARLIER, Ambiguous.LATER):
        import_text(
            tmp_path, HEADER + "a,2013-11-03T01:30:00\n", source=ambiguous,
            time_zone="America/New_York", ambiguous=ambiguous,
        )  # fmt: skip

    assert [moment[11:16] for moment in times(tmp_path / "lake")] == ["05:30", "06:30"]


FIELDS = st.fixed_dictionaries(
    {
        "item": st.sampled_from(["a", "é", "e\u0301", "", "x\ty", '"', "a,b", "😀", "z" * 257, " "]),
        "time": st.sampled_from(["2024-01-01", "2024-02-29T10:00:00Z", "2012-05-05 05:05:05.5", "", "x", "1812-01-01"]),
        "region": st.sampled_from(["", "de", "*", "US", "a b"]),
        "ms": st.sampled_from(["", "0", "30000", "-1", "29.9", "x"]),
        "n": st.sampled_from(["", "1", "0", "1000000000", "2.5"]),
    }
)


def model(row: dict[str, str]) -> str | tuple[Any, ...]:  # noqa: PLR0911  a reason each
    """The rules of `docs/importing.md`, one row at a time."""
    item, region = normal_id(row["item"]), normal_region(row["region"])
    if not row["item"] or item is None:
        return "item_invalid" if row["item"] else "item_missing"
    if region is None:
        return "region_invalid"
    if not row["time"]:
        return "time_missing"
    try:
        moment = datetime.fromisoformat(row["time"]).replace(tzinfo=UTC)
    except ValueError:
        return "time_invalid"
    if moment.year < 1900:
        return "time_out_of_range"
    if row["ms"] in ("-1", "x"):
        return "duration_invalid"
    if row["n"] in ("0", "2.5"):
        return "count_invalid"
    duration = int(row["ms"].split(".")[0]) if row["ms"] else None
    return (item, region, moment, duration, int(row["n"] or 1))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(FIELDS, max_size=20), commit_rows=st.integers(4, 20))
def test_any_file_lands_as_the_model_says(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]], commit_rows: int
) -> None:
    folder = tmp_path_factory.mktemp("import")
    names = ("item", "time", "region", "ms", "n")
    lines = [",".join('"' + row[name].replace('"', '""') + '"' for name in names) for row in rows]
    text = "\n".join([",".join(names), *lines])

    summary = import_text(folder, text, region="region", duration="ms", count="n", commit_rows=commit_rows)

    stored = ("item_id", "region", "event_time", "duration_ms", "count")
    found: dict[int, Any] = {p["source_row"]: tuple(p[name] for name in stored) for p in plays(folder / "lake")}
    found |= {row["source_row"]: row["reason"] for row in rejects(folder / "lake")}
    assert found == dict(enumerate(map(model, rows)))
    assert (summary.read, summary.accepted + summary.rejected) == (len(rows), len(rows))


def test_the_future_begins_where_the_policy_says(tmp_path: Path) -> None:
    path = file_of(tmp_path, HEADER + f"a,{(NOW + timedelta(hours=1)).isoformat()}\n")
    policy = Policy(future_tolerance=timedelta(hours=1))

    summary = import_files(request_of(path), lake_root=tmp_path / "lake", clock=lambda: NOW, policy=policy)

    assert summary.files[0].accepted == 1
    assert manifest_path(tmp_path / "lake", "plays").exists()
