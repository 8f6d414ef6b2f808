"""Real files with known answers, through importer, recount and reader."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from domain.events import ALL_REGIONS
from domain.rules import Rules
from domain.tables import DAILY_COUNTS, HOURLY_COUNTS, LEFT_OUT, PLAYS, REJECTS
from domain.windows import Granularity, Window
from ingest.importers.request import Format, ImportRequest
from ingest.importers.run import import_files
from ingest.lake_reader import LakeReader
from jobs import verify
from tests.counted_lakes import recount, released

pytestmark = pytest.mark.spark

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
WIKITICKER = "wikiticker-2015-09-12.csv.gz"
EDITS = 39_244
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
THIRTY_SECONDS = Rules.parse("[[minimum_duration]]\nduration_ms = 30000")


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not on this machine")
    return path


def imported(lake: Path, *files: Path, **options: Any) -> int:
    request = ImportRequest(files=files, **options)
    summary = import_files(request, lake_root=lake, clock=lambda: NOW, on_progress=lambda progress: None)
    return sum(file.accepted for file in summary.files)


def day_chart(lake: Path, day: datetime, n: int, region: str = ALL_REGIONS) -> Sequence[tuple[str, int]]:
    with LakeReader(lake) as reader:
        answer = reader.chart(Granularity.DAY, Window.starting(day, Granularity.DAY), region=region, n=n)
        return [(row.item_id, row.counted) for row in answer.rows]


def totals(lake: Path, column: str = "counted") -> dict[str, int]:
    """Sums per item over all days and regions."""
    sums: dict[str, int] = {}
    at = DAILY_COUNTS.column_names.index(column)
    for row in released(lake, DAILY_COUNTS):
        sums[row[2]] = sums.get(row[2], 0) + row[at]
    return sums


def best(sums: dict[str, int], n: int) -> list[tuple[str, int]]:
    return sorted(sums.items(), key=lambda item: (-item[1], item[0].encode()))[:n]


def assert_verified(lake: Path) -> None:
    verdicts = verify.run(lake)
    assert len(verdicts) > 8
    assert [verdict.name for verdict in verdicts if not verdict.holds] == []


def test_a_day_of_wikipedia_edits_has_the_published_top_pages(wikiticker: Path) -> None:
    day = datetime(2015, 9, 12, tzinfo=UTC)
    top = day_chart(wikiticker, day, 10)
    assert top[:5] == [
        ("Wikipedia:Vandalismusmeldung", 33),
        ("User:Cyde/List of candidates for speedy deletion/Subpage", 28),
        ("Jeremy Corbyn", 27),
        ("Wikipedia:Administrators' noticeboard/Incidents", 21),
        ("Flavia Pennetta", 20),
    ]
    assert [count for _, count in top[5:]] == [18, 18, 18, 17, 17]
    assert top[5:8] == sorted(top[5:8], key=lambda row: row[0].encode())
    with LakeReader(wikiticker) as reader:
        window = Window.starting(day, Granularity.DAY)
        everywhere = reader.chart(Granularity.DAY, window, region=ALL_REGIONS, n=1).total
        regions = {row[1] for row in released(wikiticker, DAILY_COUNTS)}
        by_region = {r: reader.chart(Granularity.DAY, window, region=r, n=1).total for r in regions}
    assert everywhere == sum(by_region.values()) == EDITS
    assert by_region["ZZ"] > 35_000
    assert len(totals(wikiticker)) == 35_143
    assert_verified(wikiticker)


def test_a_listeners_year_with_and_without_the_thirty_second_rule(spark: SparkSession, tmp_path: Path) -> None:
    file = shared("spotify_listener_a.csv.gz")
    assert imported(tmp_path, file, format=Format.SPOTIFY) == 54_429

    recount(spark, tmp_path, NOW, rules=THIRTY_SECONDS)

    assert best(totals(tmp_path, "received"), 3) == [
        ("Breadwinner (M Huncho)", 267),
        ("The Maze (Nines)", 228),
        ("Hold Up (Danny Sanchez)", 225),
    ]
    assert best(totals(tmp_path), 3) == [
        ("Breadwinner (M Huncho)", 203),
        ("The Maze (Nines)", 178),
        ("Fire In the Booth (Nines)", 141),
    ]
    assert sum(totals(tmp_path).values()) == 32_538
    assert sum(totals(tmp_path, "received").values()) == len(released(tmp_path, PLAYS)) == 54_429
    reasons = [row[LEFT_OUT.column_names.index("reason")] for row in released(tmp_path, LEFT_OUT)]
    assert reasons == ["too_short"] * (54_429 - 32_538)
    assert_verified(tmp_path)


def test_equal_rows_are_separate_plays_unless_the_user_says_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    file = shared("elasticoffee.jsonl")
    columns = {"format": Format.JSONL, "item": "beverage", "time": "@timestamp", "region": "quadId"}
    apart, merged = tmp_path / "apart", tmp_path / "merged"
    assert imported(apart, file, **columns) == 1_368
    assert imported(merged, file, **columns, dedup_by_content=True) == 1_368

    recount(spark, apart, NOW)
    recount(spark, merged, NOW)

    assert sum(totals(apart).values()) == 1_368
    assert sum(totals(merged).values()) == 1_368 - 237
    assert sum(totals(merged, "duplicates").values()) == len(released(merged, LEFT_OUT)) == 237
    assert sum(totals(apart, "duplicates").values()) == 0
    assert [item for item, _ in best(totals(apart), 3)] != [item for item, _ in best(totals(merged), 3)]


ODD = """item,time,count
leap,2024-02-29T23:59:59.999999Z,1
leap,2023-02-29T00:00:00Z,1
before the epoch,1969-12-31T23:59:59.5Z,1
far future,9999-12-31T00:00:00Z,1
a billion,2024-02-29T01:00:00Z,1000000000
a billion,2024-02-29T00:59:59.999999Z,1000000000
\U0001f3b5,2024-02-29T02:00:00Z,1
Case,2024-02-29T03:00:00Z,1
case,2024-02-29T03:00:00Z,1
e\u0301,2024-02-29T04:00:00Z,1
\u00e9,2024-02-29T04:00:00Z,1
"""


def test_odd_values_are_right_or_refused_with_a_reason(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "odd.csv"
    longest = "\u00e9" * 128
    file.write_text(ODD + f"{longest},2024-02-29T05:00:00Z,1\n{longest}x,2024-02-29T05:00:00Z,1\n", encoding="utf-8")
    lake = tmp_path / "lake"
    assert imported(lake, file, format=Format.CSV, item="item", time="time", count="count") == 10

    recount(spark, lake, NOW)

    hours = {(str(row[0]), row[1], row[3]): row[8] for row in released(lake, HOURLY_COUNTS)}
    assert hours == {
        ("2024-02-29", 23, "leap"): 1,
        ("1969-12-31", 23, "before the epoch"): 1,
        ("2024-02-29", 1, "a billion"): 10**9,
        ("2024-02-29", 0, "a billion"): 10**9,
        ("2024-02-29", 2, "\U0001f3b5"): 1,
        ("2024-02-29", 3, "Case"): 1,
        ("2024-02-29", 3, "case"): 1,
        ("2024-02-29", 4, "\u00e9"): 2,
        ("2024-02-29", 5, longest): 1,
    }
    refused = sorted(row[0] for row in released(lake, REJECTS))
    assert refused == ["in_the_future", "item_invalid", "time_invalid"]
    assert_verified(lake)


def test_an_empty_file_counts_as_nothing(spark: SparkSession, tmp_path: Path) -> None:
    file, lake = tmp_path / "empty.csv", tmp_path / "lake"
    file.write_text("item,time\n", encoding="utf-8")
    assert imported(lake, file, format=Format.CSV, item="item", time="time") == 0

    report = recount(spark, lake, NOW)

    assert (report.release.release, report.release.hours_touched) == (1, 0)
    assert released(lake, HOURLY_COUNTS) == []
