"""The bytes of a block: pinned, answering the same bounds when read back, refused when they are not ours."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from domain.sketches.block import Block
from domain.sketches.codec import UnreadableBlockError, decode_block, encode_block, renumbered
from domain.sketches.keys import keys_of
from domain.sketches.packed import PackedBlock
from domain.sketches.shape import Shapes, SketchShape
from tests.laws.test_block_bounds import (
    HASHES,
    ITEMS,
    SMALL,
    Batch,
    bounds_of,
    columns,
    filled,
    require_true_cells,
    streams,
)

pytestmark = pytest.mark.fast

GOLDEN = Path(__file__).parents[1] / "golden" / "block_v1.json"
HASHING = "xxh3-64, seed 1"
NAMES = ["*", "ZZ", "IN", "US-CA"]
IDS = ["ärger", "夜に駆ける", "🎵", *(f"track-{n}" for n in range(3, ITEMS))]


def encoded(block: Block) -> bytes:
    return encode_block(PackedBlock(block), regions=NAMES, item_ids=IDS, hashing=HASHING)


def golden_block() -> Block:
    """An exact region, one without events between, and a sketched one with a count beyond 32 bits."""
    tiny = Shapes(SketchShape(width=64, head=2, exact=2), SketchShape(width=64, head=2, exact=2))
    block = Block(tiny)
    block.add(keys_of([0, 0, 0, 2], [0, 1, 2, 1]), np.array([2**32, 5, 1, 7]), HASHES)
    return block


@settings(max_examples=settings().max_examples // 2)
@given(streams)
def test_bytes_read_back_answer_the_same_under_any_numbers(stream: list[Batch]) -> None:
    block, truth = filled(stream)

    stored = decode_block(encoded(block), shapes=SMALL, hashing=HASHING)

    numbers = np.array([IDS.index(item) for item in stored.item_ids], dtype=np.intp)
    again = renumbered(stored, regions=np.arange(len(stored.regions), dtype=np.intp), items=numbers)
    assert list(stored.regions) == NAMES[: len(block)]
    assert bounds_of(again) == bounds_of(block)
    assert again.residuals.tolist() == block.residuals.tolist()
    require_true_cells(again, truth)
    assert encoded(again) == encoded(block)
    shifted = np.array([0, 2, 5, 9])[: len(block)]
    other = renumbered(stored, regions=shifted, items=len(HASHES) - 1 - numbers)
    for key, (lower, upper) in bounds_of(block).items():
        if key[0] < len(block) and not block.cells.has(np.array([key[0]]))[0]:
            found = other.bounds(keys_of([shifted[key[0]]], [len(HASHES) - 1 - key[1]]), HASHES)
            assert (int(found[0][0]), int(found[1][0])) == (lower, upper)


@settings(max_examples=settings().max_examples // 2)
@given(streams, streams)
def test_a_packed_block_unpacks_to_one_that_goes_on_alike(stream: list[Batch], more: list[Batch]) -> None:
    block, _ = filled(stream)
    again = PackedBlock(block).block()
    for batch in more:
        block.add(*columns(batch), HASHES)
        again.add(*columns(batch), HASHES)

    assert bounds_of(again) == bounds_of(block)
    assert again.keys.tolist() == block.keys.tolist()
    assert again.residuals.tolist() == block.residuals.tolist()


def test_an_exact_entry_takes_eight_bytes() -> None:
    block = Block(Shapes(SketchShape(1024, 256), SketchShape(1024, 256)))
    block.add(keys_of(np.ones(2000), np.arange(2000)), np.ones(2000, dtype=np.int64), HASHES)
    few = PackedBlock(block).size_bytes
    block.add(keys_of(np.ones(400), np.arange(2000, 2400)), np.ones(400, dtype=np.int64), HASHES)

    assert PackedBlock(block).size_bytes - few == 400 * 8
    assert not len(block.cells.sketched)


def test_the_bytes_are_the_ones_that_are_stored() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))

    assert encoded(golden_block()).hex() == golden["bytes"]
    stored = decode_block(bytes.fromhex(golden["bytes"]), shapes=golden_block().shapes, hashing=HASHING)
    assert stored.regions == ["*", "ZZ", "IN"]
    assert stored.item_ids == ["ärger", "夜に駆ける", "🎵"][: len(stored.item_ids)]
    assert stored.block.totals.tolist() == [2**32 + 6, 0, 7]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda body: b"XXXX" + body[4:], "do not begin"),
        (lambda body: body[:4] + b"\x02\x00" + body[6:], "format 2"),
        (lambda body: body[:6] + b"0" * 16 + body[22:], "policy 0000000000000000"),
        (lambda body: body[:-3], "end too early"),
        (lambda body: body[:20], "damaged"),
        (lambda body: body + b"\x09" + b"\x00" * 8, "damaged"),
    ],
)
def test_what_is_not_ours_is_refused(damage: "object", said: str) -> None:
    assert callable(damage)
    body = damage(encoded(golden_block()))
    with pytest.raises(UnreadableBlockError, match=said):
        decode_block(body, shapes=golden_block().shapes, hashing=HASHING)


def test_another_hash_or_shape_is_another_policy() -> None:
    body = encoded(golden_block())
    with pytest.raises(UnreadableBlockError, match="is in force"):
        decode_block(body, shapes=golden_block().shapes, hashing="another")
    with pytest.raises(UnreadableBlockError, match="is in force"):
        decode_block(body, shapes=SMALL, hashing=HASHING)
