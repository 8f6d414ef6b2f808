"""Real files with known answers; skipped where the folder is absent."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingest.importers.request import Format
from tests.ingest.importing import SHARED, import_into, items, plays

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not on this machine")


def test_the_wikipedia_day(tmp_path: Path) -> None:
    file = SHARED / "wikiticker-2015-09-12.csv.gz"

    summary = import_into(tmp_path, file, item="page", region="countryIsoCode", user="user_hash").files[0]

    assert (summary.read, summary.accepted) == (39_244, 39_244)
    found = plays(tmp_path)
    assert Counter(play["item_id"] for play in found).most_common(5) == [
        ("Wikipedia:Vandalismusmeldung", 33),
        ("User:Cyde/List of candidates for speedy deletion/Subpage", 28),
        ("Jeremy Corbyn", 27),
        ("Wikipedia:Administrators' noticeboard/Incidents", 21),
        ("Flavia Pennetta", 20),
    ]
    assert {str(play["event_date"]) for play in found} == {"2015-09-12"}
    assert len({play["item_id"] for play in found}) == 35_143
    assert len({play["event_id"] for play in found}) == 39_244


def test_one_listeners_year(tmp_path: Path) -> None:
    file = SHARED / "spotify_listener_a.csv.gz"

    summary = import_into(tmp_path, file, item=None, time=None, format=Format.SPOTIFY).files[0]

    assert (summary.read, summary.accepted) == (54_429, 54_429)
    found = plays(tmp_path)
    assert Counter(play["item_id"] for play in found).most_common(3) == [
        ("Breadwinner (M Huncho)", 267),
        ("The Maze (Nines)", 228),
        ("Hold Up (Danny Sanchez)", 225),
    ]
    long = Counter(play["item_id"] for play in found if play["duration_ms"] >= 30_000)
    assert long.total() == 32_538
    assert long.most_common(3) == [
        ("Breadwinner (M Huncho)", 203),
        ("The Maze (Nines)", 178),
        ("Fire In the Booth (Nines)", 141),
    ]


def test_coffee_is_merged_only_when_asked_and_then_it_is_said(tmp_path: Path) -> None:
    file = SHARED / "elasticoffee.jsonl"
    options: dict[str, Any] = {"item": "beverage", "time": "@timestamp", "region": "quadId"}

    as_it_is = import_into(tmp_path / "a", file, **options).files[0]
    merged = import_into(tmp_path / "b", file, dedup_by_content=True, **options).files[0]
    again = import_into(tmp_path / "b", file, dedup_by_content=True, **options).files[0]

    assert (as_it_is.accepted, as_it_is.repeated) == (1368, None)
    assert (merged.accepted, merged.repeated) == (1368, 237)
    assert (again.new_rows, again.repeated) == (0, 237)
    assert len({play["event_id"] for play in plays(tmp_path / "b")}) == 1368 - 237
    assert Counter(items(tmp_path / "a")).most_common(1) == [("Latte", 322)]
