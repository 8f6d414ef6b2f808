"""What lands in bronze, value by value."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.errors import BadRequestError
from domain.events import normal_id, normal_region
from domain.policy import Policy
from domain.tables import PLAYS
from ingest.hashing import content_hash, id_hash, payload_hash
from ingest.importers.columns import BadTemplateError, UnknownColumnError
from ingest.importers.held import require_equal
from ingest.importers.request import (
    BadSourceNameError,
    ColumnNotGivenError,
    Format,
    Progress,
    RowsDoNotAddUpError,
    UnknownFormatError,
)
from ingest.importers.run import IdsTwiceError, MixedOptionsError, NoFilesError, import_files
from ingest.lake_writer import bronze_position
from ingest.local_time import Ambiguous, UnknownZoneError
from ingest.manifest import manifest_path
from ingest.times import UnknownTimeFormatError
from ingest.validate import DurationUnit
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plays.csv", "item,time,ms\na,1442059191.5,29.9\n"),
        ("plays.tsv", "item\ttime\tms\na\t1442059191.5\t29.9\n"),
        ("plays.jsonl", '{"item": "a", "time": 1442059191.5, "ms": 29.9}\n'),
        ("plays.ndjson.gz", '{"item": "a", "time": "1442059191.5", "ms": "29.9"}'),
        ("plays.csv.zst", "item,time,ms\na,1442059191.5,29.9\n"),
        ("plays.parquet", ""),
    ],
)
def test_every_format_says_the_same(tmp_path: Path, name: str, text: str) -> None:
    path = file_of(tmp_path, text, name)
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"item": ["a"], "time": [1442059191.5], "ms": [29.9]}), path)
    if name.endswith(".zst"):
        path.write_bytes(pa.compress(text.encode(), codec="zstd", asbytes=True))

    options = {"time_format": "epoch_s", "duration": "ms", "duration_unit": DurationUnit.SECONDS}
    import_into(tmp_path / "lake", path, **options)

    (play,) = plays(tmp_path / "lake")
    assert (play["event_time"], play["duration_ms"]) == (datetime(2015, 9, 12, 11, 59, 51, 500_000, UTC), 29_900)
    assert play["source"] == "plays"


SPOTIFY = {
    "StreamingHistory_music_0.json": """[
  {"endTime": "2021-04-22 05:41", "artistName": "Shindy", "trackName": "Dreams", "msPlayed": 6408}
]""",
    "StreamingHistory_podcast_0.json": """[
  {"endTime": "2021-04-22 05:41", "podcastName": "Shindy", "episodeName": "Dreams", "msPlayed": 6408}]""",
    "Streaming_History_Audio_2021_1.json": """[{"ts": "2021-04-22T05:41:00Z", "username": "x",
  "conn_country": "ZZ", "ms_played": 6408, "master_metadata_track_name": "Dreams",
  "master_metadata_album_artist_name": "Shindy", "episode_name": null, "episode_show_name": null}]""",
    "Streaming_History_Audio_2021_2.json": """[{"ts": "2021-04-22T05:41:00Z", "conn_country": "ZZ",
  "ms_played": 6408, "master_metadata_track_name": null, "master_metadata_album_artist_name": null,
  "episode_name": "Dreams", "episode_show_name": "Shindy"}]""",
    "export.csv": "file,endTime_utc,artistName,trackName,msPlayed\n0,2021-04-22 05:41,Shindy,Dreams,6408\n",
    "export2.csv": "endTime,artistName,trackName,msPlayed\r\n2021-04-22 05:41,Shindy,Dreams,6408\r\n",
}


@pytest.mark.parametrize("name", SPOTIFY)
def test_every_spotify_export_names_its_own_columns(tmp_path: Path, name: str) -> None:
    kind = None if name.startswith("S") else Format.SPOTIFY
    path = file_of(tmp_path, SPOTIFY[name], name)

    import_into(tmp_path / "lake", path, item=None, time=None, format=kind)

    (play,) = plays(tmp_path / "lake")
    assert (play["item_id"], play["region"], play["user_id"], play["duration_ms"], play["event_time"]) == (
        "Dreams (Shindy)", "ZZ", None, 6408, datetime(2021, 4, 22, 5, 41, tzinfo=UTC)
    )  # fmt: skip


def test_a_spotify_export_may_be_given_other_columns(tmp_path: Path) -> None:
    name = "Streaming_History_Audio_2021_1.json"
    path = file_of(tmp_path, SPOTIFY[name], name)

    import_into(tmp_path / "lake", path, time=None, item="master_metadata_track_name", user="username")

    assert [(play["item_id"], play["user_id"]) for play in plays(tmp_path / "lake")] == [("Dreams", "x")]


def test_what_is_no_spotify_export_is_refused(tmp_path: Path) -> None:
    for text in ("item,time\n", '[{"item": 1}]'):
        with pytest.raises(BadRequestError, match="no Spotify export"):
            import_text(tmp_path, text, item=None, time=None, format=Format.SPOTIFY)


def test_an_empty_spotify_export_is_fine(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        text = "[]" if name == "a.json" else "[\n]\n"
        assert import_text(tmp_path, text, name, item=None, time=None, format=Format.SPOTIFY).read == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"item": "titel"}, UnknownColumnError),
        ({"region": "titel"}, UnknownColumnError),
        ({"item": None}, ColumnNotGivenError),
        ({"item": "{item"}, BadTemplateError),
        ({"item": "item}"}, BadTemplateError),
        ({"item": "{}"}, BadTemplateError),
        ({"time_zone": "Mars/Olympus"}, UnknownZoneError),
        ({"time_format": "%Q"}, UnknownTimeFormatError),
        ({"source": ""}, BadSourceNameError),
        ({"source": "x" * 129}, BadSourceNameError),
        ({"source": "a\nb"}, BadSourceNameError),
        ({"event_id": "item", "dedup_by_content": True}, IdsTwiceError),
    ],
)
def test_a_wrong_request_is_refused_before_the_lake_is_touched(
    tmp_path: Path, options: dict[str, Any], error: type[BadRequestError]
) -> None:
    with pytest.raises(error):
        import_text(tmp_path, HEADER, **options)
    assert not (tmp_path / "lake").exists()


def test_a_file_of_unknown_kind_needs_a_format(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match="--format csv|jsonl|parquet|spotify"):
        import_text(tmp_path, HEADER, "plays.txt")
    assert import_text(tmp_path, HEADER + "a,2024-01-01\n", "plays.txt", format=Format.CSV).accepted == 1


def test_files_of_one_source_are_of_one_kind(tmp_path: Path) -> None:
    one, other = file_of(tmp_path, HEADER), file_of(tmp_path, '{"item": 1, "time": 1}', "plays.jsonl")

    with pytest.raises(MixedOptionsError, match="different kinds"):
        import_into(tmp_path / "lake", one, other)


def test_an_import_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoFilesError, match="at least one file"):
        import_into(tmp_path / "lake")


def test_without_a_source_each_file_is_its_own(tmp_path: Path) -> None:
    files = [file_of(tmp_path, HEADER + "a,2024-01-01\n", name) for name in ("x.csv", "y.csv.gz", "f/x.csv")]

    summary = import_into(tmp_path / "lake", *files)

    assert [(file.source, file.number, file.new_rows) for file in summary.files] == [
        ("x", 0, 1), ("y", 0, 1), ("x", 0, 0)
    ]  # fmt: skip


def test_commits_end_at_multiples_of_their_size(tmp_path: Path) -> None:
    rows = [f"a,{'soon' if n in (3, 4) else '2024-01-01'}\n" for n in range(7)]

    import_text(tmp_path, HEADER + "".join(rows), commit_rows=2)

    lake = tmp_path / "lake"
    assert [(play["log_index"], play["writer_seq"]) for play in plays(lake)] == [
        (0, 2), (1, 2), (2, 4), (5, 6), (6, 7)
    ]  # fmt: skip
    assert [(row["source_row"], row["writer_seq"]) for row in rejects(lake)] == [(3, 4), (4, 6)]
    assert dict(bronze_position(lake).writers) == {"lake_writer/import/plays/0": 7}


def test_a_file_of_refused_rows_only_is_read_once(tmp_path: Path) -> None:
    for new in (2, 0):
        summary = import_text(tmp_path, HEADER + "a,soon\nb,soon\n")
        assert (summary.read, summary.accepted, summary.rejected, summary.new_rows) == (2, 0, 2, new)
    assert len(rejects(tmp_path / "lake")) == 2


def test_progress_goes_by_the_bytes_on_disk(tmp_path: Path) -> None:
    path = file_of(tmp_path, HEADER + "a,2024-01-01\n" * 300_000, "plays.csv.gz")
    seen: list[Progress] = []

    import_files(request_of(path), lake_root=tmp_path / "lake", clock=lambda: NOW, on_progress=seen.append)

    done = [progress.bytes_done for progress in seen]
    assert done == sorted(done)
    assert len(set(done)) > 1
    assert (seen[-1].bytes_done, seen[-1].rows) == (path.stat().st_size, 300_000)
    assert {progress.bytes_total for progress in seen} == {path.stat().st_size}


def test_rows_that_vanish_are_not_kept_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ingest.importers import file_import  # noqa: PLC0415  broken below

    def losing(*arguments: Any, **options: Any) -> pa.Table:
        return accepted_rows(*arguments, **options).slice(1)

    accepted_rows = file_import.accepted_rows
    monkeypatch.setattr(file_import, "accepted_rows", losing)

    with pytest.raises(RowsDoNotAddUpError, match="rows accepted and rejected should be 3 and is 2"):
        import_text(tmp_path, HEADER + "a,2024-01-01\n" * 3)


def test_a_commit_that_was_lost_is_noticed(tmp_path: Path) -> None:
    import_text(tmp_path, HEADER + "a,2024-01-01\n" * 3)
    folder = tmp_path / "lake" / PLAYS.name
    newest = max(folder.glob("_delta_log/*.json"))
    newest.unlink()

    summary = import_text(tmp_path, HEADER + "a,2024-01-01\n" * 3)

    assert summary.new_rows == 3  # the transaction is gone with the rows, so they are imported again
    with pytest.raises(RowsDoNotAddUpError):
        require_equal("s", "rows", expected=1, found=2)


FIELDS = st.fixed_dictionaries(
    {
        "item": st.sampled_from(["a", "é", "e\u0301", "", "x\ty", '"', "a,b", "😀", "z" * 257, " "]),
        "time": st.sampled_from(["2024-01-01", "2024-02-29T10:00:00Z", "2012-05-05 05:05:05.5", "", "x", "1812-01-01"]),
        "region": st.sampled_from(["", "de", "*", "US", "a b"]),
        "ms": st.sampled_from(["", "0", "30000", "-1", "29.9", "x"]),
        "n": st.sampled_from(["", "1", "0", "1000000000", "2.5"]),
    }
)


def model(row: dict[str, str]) -> str | tuple[Any, ...]:
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


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(FIELDS, max_size=20), commit_rows=st.integers(1, 8))
def test_any_file_lands_as_the_model_says(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]], commit_rows: int
) -> None:
    folder = tmp_path_factory.mktemp("import")
    lines = [",".join('"' + value.replace('"', '""') + '"' for value in row.values()) for row in rows]
    text = "\n".join(["item,time,region,ms,n", *lines])

    summary = import_text(folder, text, region="region", duration="ms", count="n", commit_rows=commit_rows)

    names = ("item_id", "region", "event_time", "duration_ms", "count")
    found = {p["source_row"]: tuple(p[name] for name in names) for p in plays(folder / "lake")}
    found |= {row["source_row"]: row["reason"] for row in rejects(folder / "lake")}
    assert found == dict(enumerate(map(model, rows)))
    assert (summary.read, summary.accepted + summary.rejected) == (len(rows), len(rows))


def test_the_future_begins_where_the_policy_says(tmp_path: Path) -> None:
    path = file_of(tmp_path, HEADER + f"a,{(NOW + timedelta(hours=1)).isoformat()}\n")
    policy = Policy(future_tolerance=timedelta(hours=1))

    summary = import_files(request_of(path), lake_root=tmp_path / "lake", clock=lambda: NOW, policy=policy)

    assert summary.files[0].accepted == 1
    assert manifest_path(tmp_path / "lake", "plays").exists()
