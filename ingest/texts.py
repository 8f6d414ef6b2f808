"""Columns of text: the plain ones at array speed, the others through one scalar definition."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.verdicts import Mask

_PRINTABLE = (0x20, 0x7E)  # ASCII without control characters: such text is its own NFC


def mask_of(values: pa.Array) -> Mask:
    """Return a boolean Arrow array as numpy, NULL as False."""
    mask: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return mask


def missing(values: pa.Array) -> Mask:
    """Return where a text is NULL or empty."""
    return mask_of(pc.or_kleene(pc.is_null(values), pc.equal(pc.binary_length(values), 0)))


def printable_ascii(values: pa.Array) -> Mask:
    """Return where a text has printable ASCII only; an empty text and NULL count as such."""
    texts = values.cast(pa.large_string())
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if len(texts) == 0 or texts.buffers()[2] is None:
        return np.ones(len(texts), dtype=np.bool_)
    data = np.frombuffer(texts.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]]
    odd = (data < _PRINTABLE[0]) | (data > _PRINTABLE[1])
    odd_before = np.concatenate(([0], np.cumsum(odd)))
    ends = offsets - offsets[0]
    plain: Mask = odd_before[ends[1:]] == odd_before[ends[:-1]]
    return plain


def distinct(values: pa.Array, rows: Mask) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the distinct texts of the set rows, and the place of each such row's text among them."""
    encoded = values.filter(pa.array(rows)).dictionary_encode()
    places: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return encoded.dictionary.to_pylist(), places


def by_scalar(values: pa.Array, *, rows: Mask, scalar: Callable[[str], Any], plain: pa.Array) -> pa.Array:
    """Return `plain` with the set rows replaced by `scalar` of their text.

    Args:
        values: Texts; a NULL stays what `plain` has there.
        rows: Rows that need the scalar definition. It is called once for each distinct text.
        scalar: The definition; None becomes NULL.
        plain: Results of the other rows; its type is the result's.
    """
    rows = rows & ~mask_of(pc.is_null(values))
    if not rows.any():
        return plain
    texts, places = distinct(values, rows)
    results = pa.array([scalar(text) for text in texts], plain.type)
    return pc.replace_with_mask(plain, pa.array(rows), results.take(pa.array(places)))
