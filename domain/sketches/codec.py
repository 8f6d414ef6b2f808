"""Bytes of a block: all buckets of one partition and span of event time. Format: docs/sketches.md.

    4 bytes   b"LBBK"
    2 bytes   version, little-endian like all numbers that follow
    16 bytes  fingerprint of the shapes, row seeds and hash of items, ASCII
    then      columns, each: 1 byte type (1 = u32, 2 = u64, 3 = i64, 4 = text), 8 bytes length in bytes, the bytes

The columns, in order: names of the regions; ids of the items, each once; bounds, items (numbers in the list of ids),
counts, before, totals, residuals, bases, cells as in `PackedBlock`. Texts are UTF-8, U+0000 after each, which no id or
region can hold.

The bytes are stored between versions of this program, so `tests/golden` holds some. What is not known is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct, error
from typing import Final

import numpy as np
import numpy.typing as npt

from domain.errors import LakeboardError
from domain.sketches.block import Block
from domain.sketches.count_min import ROW_SEEDS, ROWS
from domain.sketches.keys import keys_of, sizes_of
from domain.sketches.packed import PackedBlock
from domain.sketches.shape import Shapes

FORMAT_VERSION: Final = 1

_MAGIC = b"LBBK"
_HEAD = Struct("<4sH16s")
_COLUMN = Struct("<BQ")
_TEXT = 4
_TYPES: dict[int, type[np.integer]] = {1: np.uint32, 2: np.uint64, 3: np.int64}
_CODES = {np.dtype(kind): code for code, kind in _TYPES.items()}
_COLUMNS = ("bounds", "items", "counts", "before", "totals", "residuals", "bases", "cells")
_BETWEEN = "\0"


class UnreadableBlockError(LakeboardError):
    """Stored buckets are of another version or policy, or damaged."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"stored live buckets cannot be read: {self.problem}. Nothing of them is used; the live charts start over "
            "from the lake and the log"
        )


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block with the names of its numbers: region `n` is `regions[n]`, item `n` is `item_ids[n]`."""

    block: PackedBlock
    regions: Sequence[str]
    item_ids: Sequence[str]


def fingerprint(shapes: Shapes, hashing: str) -> str:
    """Return 16 hex digits that change with anything that stored cells and heads depend on.

    Args:
        shapes: Of the buckets.
        hashing: Names the hash of items and its seed.
    """
    seeds = ",".join(str(seed) for seed in ROW_SEEDS.tolist())
    return sha256(f"{shapes!r};{ROWS};{seeds};{hashing}".encode()).hexdigest()[:16]


def encode_block(block: PackedBlock, *, regions: Sequence[str], item_ids: Sequence[str], hashing: str) -> bytes:
    """Return the bytes of a block.

    Args:
        block: Its buckets.
        regions: Name of each region number.
        item_ids: Id of each item number; only those used are written.
        hashing: Names the hash of items and its seed.
    """
    used = np.unique(block.items)
    columns = {name: getattr(block, name) for name in _COLUMNS}
    columns["items"] = np.searchsorted(used, block.items).astype(np.uint32)
    parts = [_HEAD.pack(_MAGIC, FORMAT_VERSION, fingerprint(block.shapes, hashing).encode())]
    parts += _text(regions[: len(block)]) + _text([item_ids[number] for number in used.tolist()])
    for column in columns.values():
        parts += [_COLUMN.pack(_CODES[column.dtype], column.nbytes), column.tobytes()]
    return b"".join(parts)


def decode_block(body: bytes, *, shapes: Shapes, hashing: str) -> StoredBlock:
    """Read the bytes of a block; its items are numbered from 0 in the order of the ids' first numbers.

    Raises:
        UnreadableBlockError: another version, other shapes or hash, or bytes that are no block.
    """
    try:
        magic, version, made_with = _HEAD.unpack_from(body)
        _require_ours(magic, version, made_with.decode("ascii", "replace"), fingerprint(shapes, hashing))
        columns, at = [], _HEAD.size
        while at < len(body):
            code, size = _COLUMN.unpack_from(body, at)
            at += _COLUMN.size
            columns.append(_read(code, body[at : at + size], size))
            at += size
    except (error, UnicodeDecodeError, KeyError, ValueError) as cause:
        problem = f"they are damaged ({cause})"
        raise UnreadableBlockError(problem) from cause
    return _stored(columns, shapes)


def renumbered(stored: StoredBlock, *, regions: npt.NDArray[np.intp], items: npt.NDArray[np.intp]) -> Block:
    """Return the block under other numbers.

    Args:
        stored: As decoded.
        regions: New number of each of its regions, 0 for `*` only.
        items: New number of each of its items.
    """
    old = stored.block.block()
    block = Block(old.shapes)
    block.grow(int(regions.max()) + 1 if len(regions) else 0)
    block.totals[regions] = old.totals
    block.residuals[regions] = old.residuals
    block.cells.bases[regions] = old.cells.bases
    block.cells.flat = old.cells.flat
    named = stored.block
    by_region = np.repeat(regions, sizes_of(named.bounds))
    keys = keys_of(by_region, items[named.items.astype(np.intp)])
    order = np.argsort(keys)
    block.keys, block.counts, block.before = keys[order], old.counts[order], old.before[order]
    return block


def _require_ours(magic: bytes, version: int, made_with: str, expected: str) -> None:
    problem = ""
    if magic != _MAGIC:
        problem = "they do not begin as buckets do"
    elif version != FORMAT_VERSION:
        problem = f"they have format {version}, and this lakeboard knows {FORMAT_VERSION}"
    elif made_with != expected:
        problem = f"they were made under policy {made_with}, and {expected} is in force"
    if problem:
        raise UnreadableBlockError(problem)


def _text(texts: Sequence[str]) -> list[bytes]:
    body = "".join(text + _BETWEEN for text in texts).encode()
    return [_COLUMN.pack(_TEXT, len(body)), body]


def _read(code: int, body: bytes, size: int) -> list[str] | npt.NDArray[np.integer]:
    if len(body) != size:
        problem = "they end too early"
        raise UnreadableBlockError(problem)
    return body.decode().split(_BETWEEN)[:-1] if code == _TEXT else np.frombuffer(body, dtype=_TYPES[code])


def _stored(columns: list[list[str] | npt.NDArray[np.integer]], shapes: Shapes) -> StoredBlock:
    if len(columns) != len(_COLUMNS) + 2:
        problem = f"they have {len(columns)} columns"
        raise UnreadableBlockError(problem)
    regions, item_ids, *numbers = columns
    block = PackedBlock(Block(shapes))
    for name, column in zip(_COLUMNS, numbers, strict=True):
        setattr(block, name, column)
    lengths = {len(regions), len(block.totals), len(block.residuals), len(block.bases), len(block.bounds) - 1}
    if len(lengths) != 1 or len(block.items) != len(block.counts) or int(block.bounds[-1]) != len(block.items):
        problem = "their columns have different lengths"
        raise UnreadableBlockError(problem)
    return StoredBlock(block, [str(name) for name in regions], [str(item) for item in item_ids])
