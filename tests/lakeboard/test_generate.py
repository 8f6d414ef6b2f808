"""`lakeboard generate`: the same bytes for the same seed, and the shape that was asked for."""

import hashlib
import io
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from ingest.importers.request import ImportRequest
from ingest.importers.run import import_files
from lakeboard.commands.generate import generate_command
from lakeboard.generating import plays
from lakeboard.generating.plays import HOT_ITEM, HOURS, made_up
from lakeboard.generating.shape import Shape
from lakeboard.generating.writing import GeneratedFormat, write_plays

pytestmark = pytest.mark.lake

FEW = Shape(items=9, users=9)
ODD = Shape(items=50, users=20, hot_share=0.2, duplicate_share=0.1, late_share=0.1)
# Whoever changes these changes what a seed means: files made before and after differ.
GOLDEN = {
    GeneratedFormat.CSV: "93a39c98a74897c8afcc358f61e9962e71efc9b4a2c4854e23ac5083b4efd144",
    GeneratedFormat.JSONL: "e37a34024cb54a0ae247568a45567cc14aab6bddac36451b7fac9deab754c644",
}


def generated(*arguments: str) -> Result:
    return CliRunner().invoke(generate_command, arguments)


def written(form: GeneratedFormat, events: int, seed: int = 7, shape: Shape = ODD) -> bytes:
    sink = io.BytesIO()
    write_plays(made_up(events, seed=seed, shape=shape), sink, form, on_rows=lambda _: None)
    return sink.getvalue()


def rows(events: int, shape: Shape, seed: int = 1) -> pa.Table:
    return pa.concat_tables(made_up(events, seed=seed, shape=shape)).combine_chunks()


@pytest.mark.parametrize("form", GOLDEN)
def test_a_seed_means_these_bytes(form: GeneratedFormat) -> None:
    assert hashlib.sha256(written(form, 2_000)).hexdigest() == GOLDEN[form]


@pytest.mark.parametrize("form", GeneratedFormat)
def test_the_same_seed_gives_the_same_bytes_and_another_one_others(form: GeneratedFormat) -> None:
    assert written(form, 500) == written(form, 500)
    assert written(form, 500) != written(form, 500, seed=8)


def test_the_formats_hold_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(written(GeneratedFormat.PARQUET, 300))
    from_parquet = pq.read_table(tmp_path / "p.parquet").to_pylist()
    lines = [json.loads(line) for line in written(GeneratedFormat.JSONL, 300).splitlines()]

    assert lines == [row | {"event_time": iso(row["event_time"])} for row in from_parquet]
    header, *texts = written(GeneratedFormat.CSV, 300).decode().splitlines()
    names = header.replace('"', "").split(",")
    assert [dict(zip(names, text.split(","), strict=True)) for text in texts] == [
        {name: str(value) for name, value in line.items()} for line in lines
    ]


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_batches_are_of_one_size_and_go_on_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plays, "BATCH_ROWS", 1_000)
    batches = list(made_up(2_500, seed=1, shape=FEW))

    assert [len(batch) for batch in batches] == [1_000, 1_000, 500]
    times = pa.concat_tables(batches)["event_time"].to_numpy()
    assert (np.diff(times) >= np.timedelta64(0)).all()
    assert len(set(pa.concat_tables(batches)["event_id"].to_pylist())) == 2_500


def test_items_follow_zipfs_law() -> None:
    counts = Counter(rows(30_000, Shape(items=1_000, users=9, skew=1.0))["item_id"].to_pylist())
    harmonic = sum(1 / n for n in range(1, 1_001))

    for place, name in ((1, "\u00c9t\u00e9 000000"), (2, "Song 000001"), (5, "Song 000004")):
        expected = 30_000 / harmonic / place
        assert abs(counts[name] - expected) < 6 * expected**0.5
    assert HOT_ITEM not in counts


def test_shares_of_hot_item_repeats_and_conflicts_are_as_asked() -> None:
    table = rows(20_000, Shape(items=500, users=9, hot_share=0.3, duplicate_share=0.2))
    said = table.to_pylist()
    first: dict[str, dict[str, Any]] = {}
    equal = conflicts = 0
    for row in said:
        before = first.setdefault(row["event_id"], row)
        if before is not row:
            equal += before == row
            conflicts += before["item_id"] != row["item_id"]
            assert before | {"item_id": row["item_id"]} == row

    assert abs(equal + conflicts - 4_000) < 200
    assert abs(conflicts - 800) < 150
    assert abs(sum(row["item_id"] == HOT_ITEM for row in first.values()) / len(first) - 0.3) < 0.02


def test_late_plays_happened_up_to_26_hours_before_they_come() -> None:
    times = (
        rows(20_000, Shape(items=9, users=9, late_share=0.1))["event_time"]
        .to_numpy()
        .astype("datetime64[ms]")
        .astype(np.int64)
    )
    behind = np.maximum.accumulate(times) - times
    late = behind[behind >= 60_000]

    assert 0.08 < len(late) / len(times) < 0.11  # those that would lie before the start come in time
    assert late.max() <= 26 * 3_600_000 + 60_000
    assert times.min() >= Shape().start.timestamp() * 1000


def test_nights_are_quiet_and_all_times_lie_in_the_span() -> None:
    start = datetime(2026, 3, 2, 5, 30, tzinfo=UTC)
    shape = Shape(items=9, users=9, start=start, end=start + timedelta(days=1))
    times = rows(20_000, shape)["event_time"].to_pylist()
    by_hour = Counter(time.hour for time in times)

    assert start <= min(times)
    assert max(times) < shape.end
    assert by_hour[19] > 6 * by_hour[4]
    assert abs(by_hour[19] - 20_000 * HOURS[19] / sum(HOURS)) < 200


def test_what_is_made_up_can_be_imported_with_the_columns_that_are_named(tmp_path: Path) -> None:
    file = tmp_path / "made.csv"
    result = generated("--events", "2000", "--duplicates", "0.1", "-o", str(file), "--regions", "SE,ZZ", "--users", "9")
    assert result.exit_code == 0
    options = result.stderr.split("read them with ")[1].split()
    named: dict[str, Any] = dict(zip((name.removeprefix("--") for name in options[::2]), options[1::2], strict=True))
    named["event_id"] = named.pop("id")

    request = ImportRequest(files=(file,), **named)
    summary = import_files(request, lake_root=tmp_path / "lake", clock=lambda: datetime(2027, 1, 1, tzinfo=UTC))

    assert summary.files[0].accepted == 2_000
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--items", "0"], "--items must be from 1"),
        (["--skew", "-1"], "--skew must be from 0"),
        (["--regions", "in"], "--regions must name regions"),
        (["--regions", "IN,IN"], "--regions must name regions"),
        (["--start", "today"], "--start must be a moment"),
        (["--end", "2026-03-03", "--days", "2"], "give only one of them"),
        (["--end", "2026-03-01"], "after --start"),
        (["--days", "0"], "after --start"),
        (["-o", "plays.txt"], "does not tell it"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_in_one_sentence(
    tmp_path: Path, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = generated("--events", "5", "-o", "plays.csv", *arguments)

    assert sentence in str(result.exception)
    assert list(tmp_path.iterdir()) == []
