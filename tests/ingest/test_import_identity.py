"""The same, a grown, a renamed, another file: what a source remembers of its files."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.tables import PLAYS
from ingest.importers.ledger import OtherContentError, OtherOptionsError
from ingest.importers.request import Format, Progress
from ingest.importers.run import import_files
from ingest.manifest import (
    DamagedManifestError,
    LostManifestError,
    load_manifest,
    manifest_path,
)
from ingest.table_lock import locked
from tests.ingest.importing import (
    HEADER,
    NOW,
    contents,
    file_of,
    import_into,
    import_text,
    items,
    plays,
    rejects,
    request_of,
)

LATER = NOW + timedelta(days=3)


def lines(*names: str) -> str:
    return HEADER + "".join(f"{name},2024-01-01\n" for name in names)


@pytest.mark.parametrize("commit_rows", [1, 2, 500_000])
def test_the_same_file_again_adds_nothing(tmp_path: Path, commit_rows: int) -> None:
    import_text(tmp_path, lines("a", "", "b", "c"), commit_rows=commit_rows)
    before = contents(tmp_path / "lake")

    again = import_text(tmp_path, lines("a", "", "b", "c"), now=LATER)

    assert contents(tmp_path / "lake") == before
    assert (again.read, again.accepted, again.rejected, again.already, again.new_rows) == (4, 3, 1, 4, 0)


def test_a_grown_file_adds_its_new_rows_which_began_when_they_came(tmp_path: Path) -> None:
    import_text(tmp_path, lines("a", "b"))
    before = plays(tmp_path / "lake")

    grown = import_text(tmp_path, lines("a", "b", "c", ""), now=LATER)

    found = plays(tmp_path / "lake")
    assert found[:2] == before
    assert (found[2]["event_id"], found[2]["ingested_at"], found[2]["writer_seq"]) == ("plays#0:2", LATER, 4)
    assert found[2]["log_ms"] - found[0]["log_ms"] == 3 * 86_400_000
    assert rejects(tmp_path / "lake")[0]["ingested_at"] == LATER
    assert (grown.read, grown.already, grown.new_rows) == (4, 2, 2)
    (file,) = load_manifest(tmp_path / "lake", "plays").files  # type: ignore[union-attr]
    assert [(segment.from_row, segment.began) for segment in file.segments] == [(0, NOW), (2, LATER)]


def test_a_file_may_grow_behind_a_last_line_that_had_no_end(tmp_path: Path) -> None:
    import_text(tmp_path, lines("a", "b").rstrip("\n"))
    import_text(tmp_path, lines("a", "b", "c"))

    assert items(tmp_path / "lake") == ["a", "b", "c"]


def test_an_empty_file_may_grow(tmp_path: Path) -> None:
    import_text(tmp_path, HEADER)
    import_text(tmp_path, lines("a"), now=LATER)

    assert [(play["item_id"], play["ingested_at"]) for play in plays(tmp_path / "lake")] == [("a", LATER)]


@pytest.mark.parametrize(
    "other",
    [
        lines("a", "x", "c"),  # a row was changed
        lines("a", "b"),  # shorter
        lines("b", "c"),  # the first row was cut off
        lines("a", "b", "c").replace("item,time", "item,time,more").replace("01\n", "01,\n"),
        HEADER,
        "",
    ],
)
def test_other_content_under_the_same_source_is_refused(tmp_path: Path, other: str) -> None:
    import_text(tmp_path, lines("a", "b", "c"))
    before = contents(tmp_path / "lake")

    with pytest.raises(OtherContentError, match=r"imported from other content \(plays.csv, 3 rows\).*--source"):
        import_text(tmp_path, other)

    assert contents(tmp_path / "lake") == before
    assert import_text(tmp_path, lines("a", "b", "c", "d")).new_rows == 1  # the refusal broke nothing


@pytest.mark.parametrize(("name", "line_end"), [("b.csv", "\n"), ("b.csv.gz", "\n"), ("b.csv", "\r\n")])
def test_a_file_is_known_by_its_content_whatever_its_name_packing_and_line_ends(
    tmp_path: Path, name: str, line_end: str
) -> None:
    import_text(tmp_path, lines("a", "b"), "a.csv", source="s")

    text = lines("a", "b", "c").replace("\n", line_end)
    renamed = import_text(tmp_path, text, name, source="s")

    assert (renamed.number, renamed.already, renamed.new_rows) == (0, 2, 1)
    assert items(tmp_path / "lake") == ["a", "b", "c"]


def test_files_of_one_import_are_numbered_in_order_and_found_again_in_any(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    one, two, three = (file_of(tmp_path, lines(*names), f"{names[0]}.csv") for names in ("ab", "cd", "ef"))
    first = import_into(lake, one, two, three, source="s")
    before = contents(lake)
    two.write_text(lines("c", "d", "g"), encoding="utf-8")

    again = import_into(lake, three, two, one, source="s")

    assert [file.number for file in first.files] == [0, 1, 2]
    assert [(file.number, file.new_rows) for file in again.files] == [(2, 0), (1, 1), (0, 0)]
    assert [play for play in plays(lake) if play["item_id"] != "g"] == before["plays"]
    assert {play["event_id"] for play in plays(lake)} >= {"s#0:0", "s#1:2", "s#2:1"}


def test_another_file_joins_a_source_only_when_told(tmp_path: Path) -> None:
    import_text(tmp_path, lines("a"), "a.csv", source="s")

    with pytest.raises(OtherContentError, match="--append"):
        import_text(tmp_path, lines("b"), "b.csv", source="s")
    joined = import_text(tmp_path, lines("b"), "b.csv", source="s", append=True)
    again = import_text(tmp_path, lines("b"), "b.csv", source="s", append=True)

    assert (joined.number, joined.new_rows) == (1, 1)
    assert (again.number, again.new_rows) == (1, 0)
    assert items(tmp_path / "lake") == ["a", "b"]


def test_the_same_content_twice_in_one_import_counts_once(tmp_path: Path) -> None:
    plain, packed = (file_of(tmp_path, lines("a", "b"), name) for name in ("a.csv", "a.csv.gz"))

    for new in ([2, 0], [0, 0]):
        summary = import_into(tmp_path / "lake", plain, packed, source="s")
        assert [file.new_rows for file in summary.files] == new
    assert items(tmp_path / "lake") == ["a", "b"]


def test_two_files_of_one_import_may_begin_alike(tmp_path: Path) -> None:
    short, long = (file_of(tmp_path, lines(*names), f"{len(names)}.csv") for names in ("a", "ab"))

    for new in ([1, 2], [0, 0]):
        summary = import_into(tmp_path / "lake", short, long, source="s")
        assert [file.new_rows for file in summary.files] == new
        assert [file.number for file in summary.files] == [0, 1]
    assert items(tmp_path / "lake") == ["a", "a", "b"]


@pytest.mark.parametrize("names", ["axc", "a", ""])
def test_a_file_that_changes_while_it_is_imported_is_noticed_before_it_is_committed(tmp_path: Path, names: str) -> None:
    import_text(tmp_path, lines("a", "b"))
    path = file_of(tmp_path, lines("a", "b", "c"))

    def change_it(progress: Progress) -> None:
        if progress.stage == "comparing":
            file_of(tmp_path, lines(*names))

    with pytest.raises(OtherContentError):
        import_files(request_of(path), lake_root=tmp_path / "lake", clock=lambda: NOW, on_progress=change_it)
    assert items(tmp_path / "lake") == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"region": "item"}, "region was not given, now item"),
        ({"time_zone": "Asia/Kathmandu"}, "time_zone was UTC, now Asia/Kathmandu"),
        ({"item": "{item}!"}, "item was item, now {item}!"),
        ({"dedup_by_content": True}, "dedup_by_content was False, now True"),
    ],
)
def test_other_options_for_the_same_source_are_named(tmp_path: Path, options: dict[str, Any], named: str) -> None:
    import_text(tmp_path, lines("a"))

    with pytest.raises(OtherOptionsError) as refusal:
        import_text(tmp_path, lines("a", "b"), **options)

    assert named in str(refusal.value)
    assert items(tmp_path / "lake") == ["a"]


def test_options_that_mean_the_same_are_the_same(tmp_path: Path) -> None:
    text = lines("a").replace(",", "\t")
    import_text(tmp_path, text, "plays.tsv")

    assert import_text(tmp_path, text, "plays.csv", delimiter="tab", format=Format.CSV).new_rows == 0


def test_options_may_change_while_nothing_has_been_read(tmp_path: Path) -> None:
    import_text(tmp_path, HEADER)

    assert import_text(tmp_path, lines("a"), region="item").accepted == 1


def test_sources_do_not_know_each_other(tmp_path: Path) -> None:
    sources = ("s", "S", "s/0", "日本", "x" * 128, "x" * 127 + "y", "\U0010ffff" * 32)
    for source in sources:
        assert import_text(tmp_path, lines("a"), source=source).new_rows == 1

    assert len({play["event_id"] for play in plays(tmp_path / "lake")}) == len(sources)


def test_a_lost_manifest_is_not_taken_for_a_new_source(tmp_path: Path) -> None:
    import_text(tmp_path, lines("a", "b"))
    manifest_path(tmp_path / "lake", "plays").unlink()

    with pytest.raises(LostManifestError, match="holds 2 rows of source 'plays'"):
        import_text(tmp_path, lines("a", "b", "c"))
    assert items(tmp_path / "lake") == ["a", "b"]


def change(**values: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **values})


@pytest.mark.parametrize("damage", [lambda text: text[: len(text) // 2], lambda _: "{}", change(version=2)])
def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path, damage: Callable[[str], str]) -> None:
    import_text(tmp_path, lines("a"))
    path = manifest_path(tmp_path / "lake", "plays")
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")

    with pytest.raises(DamagedManifestError, match="cannot be read"):
        import_text(tmp_path, lines("a"))


def test_a_second_import_of_a_source_waits_for_the_first(tmp_path: Path) -> None:
    lake, path = tmp_path / "lake", file_of(tmp_path, lines("a"))
    waited = threading.Event()

    def second() -> None:
        import_files(request_of(path), lake_root=lake, clock=lambda: NOW, on_wait=lambda _name, _holder: waited.set())

    with locked(lake, "import/plays"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waited.wait(60)
        assert not manifest_path(lake, "plays").exists()
    thread.join(60)

    assert items(lake) == ["a"]


@pytest.mark.parametrize("step", ["begin", "rejects"])
def test_an_import_says_that_it_waits_for_a_locked_table(tmp_path: Path, step: str) -> None:
    lake, path = tmp_path / "lake", file_of(tmp_path, lines("a"))
    taken, waited, names = threading.Event(), threading.Event(), list[str]()

    def other_process() -> None:
        with locked(lake, PLAYS.name):
            taken.set()
            waited.wait(60)

    def lock_at(reached: str) -> None:
        if reached == step:
            threading.Thread(target=other_process).start()
            assert taken.wait(60)

    def said(name: str, _holder: str) -> None:
        names.append(name)
        waited.set()

    lock_at("begin")
    import_files(request_of(path), lake_root=lake, clock=lambda: NOW, on_step=lock_at, on_wait=said)

    assert names == [PLAYS.name]
    assert items(lake) == ["a"]


HISTORIES = st.lists(st.integers(0, 6), min_size=1, max_size=4).map(sorted)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=HISTORIES, commit_rows=st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_however_a_file_grew_the_rows_are_those_of_one_import(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], commit_rows: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("history")
    names = ["a", "", "b", "c", "", "d"]
    for size, rows in zip(sizes, commit_rows, strict=False):
        import_text(folder, lines(*names[:size]), commit_rows=rows)
    whole = tmp_path_factory.mktemp("whole")
    import_text(whole, lines(*names[: sizes[-1]]))

    for kind in ("plays", "rejects"):
        grown, at_once = (
            [{k: v for k, v in row.items() if k != "writer_seq"} for row in contents(f / "lake")[kind]]
            for f in (folder, whole)
        )
        assert grown == at_once
