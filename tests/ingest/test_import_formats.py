"""Every format and every kind of export says the same."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from domain.errors import BadRequestError
from ingest.importers.chunks import CHUNK_BYTES
from ingest.importers.columns import UnknownColumnError
from ingest.importers.request import Format
from ingest.validate import DurationUnit
from tests.ingest.importing import (
    file_of,
    import_into,
    import_text,
    plays,
)


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

    import_into(tmp_path / "lake", path, time_format="epoch_s", duration="ms", duration_unit=DurationUnit.SECONDS)

    (play,) = plays(tmp_path / "lake")
    assert (play["event_time"], play["duration_ms"]) == (datetime(2015, 9, 12, 11, 59, 51, 500_000, UTC), 29_900)
    assert play["source"] == "plays"


def test_a_key_of_json_lines_may_come_up_behind_millions_of_bytes(tmp_path: Path) -> None:
    row = '{"item": "a", "time": "2024-01-01", "said": "' + "x" * 2000 + '"}\n'
    text = row * (2 * CHUNK_BYTES // len(row)) + '{"item": "b", "time": "2024-01-01", "region": "IN"}\n'

    import_text(tmp_path, text, "plays.jsonl", region="region")

    assert {(play["item_id"], play["region"]) for play in plays(tmp_path / "lake")} == {("a", "ZZ"), ("b", "IN")}
    with pytest.raises(UnknownColumnError, match="no column 'country': name one of item, said, time"):
        import_text(tmp_path, text, "plays.jsonl", region="country")


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
