import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.windows import EPOCH
from ingest.hashing import content_hash, id_hash, id_hashes, payload_hash, payload_hashes

pytestmark = pytest.mark.fast

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "hashes.json").read_text(encoding="utf-8"))
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
SAID = st.fixed_dictionaries(
    {
        "item_id": TEXTS,
        "region": TEXTS,
        "user_id": st.none() | TEXTS,
        "event_time": st.none() | st.datetimes(timezones=st.just(UTC)),
        "duration_ms": st.none() | st.integers(0, 2**53),
        "count": st.integers(1, 2**40),
    }
)


@pytest.mark.parametrize("case", GOLDEN["id"], ids=lambda case: case["event_id"])
def test_ids_hash_to_the_stored_bytes(case: dict[str, Any]) -> None:
    assert id_hash(case["event_id"]) == case["hash"]


@pytest.mark.parametrize("case", GOLDEN["payload"], ids=lambda case: str(case["hash"]))
def test_payloads_hash_to_the_stored_bytes(case: dict[str, Any]) -> None:
    moment = case["event_time"]
    said = {**case, "event_time": None if moment is None else datetime.fromisoformat(moment)}
    del said["hash"]

    assert payload_hash(**said) == case["hash"]


@pytest.mark.parametrize("case", GOLDEN["content"], ids=lambda case: case["hash"])
def test_contents_hash_to_the_stored_bytes(case: dict[str, Any]) -> None:
    assert content_hash(case["record"].encode()) == case["hash"]


@given(st.lists(TEXTS))
def test_hashes_of_a_column_are_the_hashes_of_its_ids(ids: list[str]) -> None:
    assert id_hashes(pa.array(ids, pa.string())).to_pylist() == [id_hash(event_id) for event_id in ids]


@given(st.lists(SAID))
def test_hashes_of_columns_are_the_hashes_of_their_payloads(said: list[dict[str, Any]]) -> None:
    micros = [None if s["event_time"] is None else micros_of(s["event_time"]) for s in said]
    types = {"duration_ms": pa.int64(), "count": pa.int64()}
    names = ("item_id", "region", "user_id", "duration_ms", "count")
    columns = {name: pa.array([s[name] for s in said], types.get(name, pa.string())) for name in names}

    hashes = payload_hashes(event_time_us=pa.array(micros, pa.int64()), **columns)

    assert hashes.to_pylist() == [payload_hash(**one) for one in said]


def test_an_absent_duration_is_not_a_duration_of_zero() -> None:
    said = {"item_id": "a", "region": "ZZ", "user_id": None, "event_time": EPOCH, "count": 1}

    assert payload_hash(**said, duration_ms=None) != payload_hash(**said, duration_ms=0)  # type: ignore[arg-type]


def micros_of(moment: datetime) -> int:
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
