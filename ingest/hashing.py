"""Hashes of events: one to find copies by, one to tell a duplicate from a conflict, one for rows without ids.

All are xxh3 over the bytes named below with a fixed seed, read as a signed 64-bit number (the 128-bit one as
32 hex digits). They are stored in bronze for ever: another byte or seed here would make old copies invisible,
so `tests/golden` holds their values.
"""

from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from domain.windows import EPOCH

ID_SEED = 0x6C616B65626F6172
PAYLOAD_SEED = 0x7061796C6F616473
CONTENT_SEED = 0x636F6E74656E7473
PARTITION_SEED = 0x7061727469746E73  # another one than of ids: copies of an id must not choose their sketch cells too
_BETWEEN = "\x1f"  # no id can hold it
_MICROSECOND = timedelta(microseconds=1)


def id_hash(event_id: str) -> int:
    """Return xxh3-64 of an event id's UTF-8 bytes with `ID_SEED`, signed.

    Equal ids have equal hashes; equal hashes do not prove equal ids.
    """
    return _signed(xxhash.xxh3_64_intdigest(event_id.encode(), seed=ID_SEED))


def id_hashes(event_ids: pa.Array) -> pa.Array:
    """Return `id_hash` of each id, as int64."""
    return _hashes(event_ids, ID_SEED)


def partition_number(key: str, partitions: int) -> int:
    """Return the log partition of an item or player: xxh3-64 of its UTF-8 bytes with `PARTITION_SEED`, modulo.

    Args:
        key: Item id of a play, player id of a score, NFC.
        partitions: How many the log has; fixed for a log id.
    """
    return xxhash.xxh3_64_intdigest(key.encode(), seed=PARTITION_SEED) % partitions


def payload_hash(
    *,
    item_id: str,
    region: str,
    user_id: str | None,
    event_time: datetime | None,
    duration_ms: int | None,
    count: int,
) -> int:
    """Return xxh3-64 of what the sender said, with `PAYLOAD_SEED`, signed.

    The bytes: item, region, user, microseconds of `event_time` since 1970 UTC, duration in milliseconds and
    count, the numbers in decimal, joined by U+001F. What is None leaves its place empty.

    Args:
        item_id: As stored, NFC.
        region: As stored, upper case.
        user_id: None = not said.
        event_time: Timezone-aware; None when the server stamped it, since then it is not the sender's word.
        duration_ms: None = not said.
        count: At least 1.
    """
    micros = None if event_time is None else (event_time - EPOCH) // _MICROSECOND
    said = (item_id, region, user_id, micros, duration_ms, count)
    text = _BETWEEN.join("" if part is None else str(part) for part in said)
    return _signed(xxhash.xxh3_64_intdigest(text.encode(), seed=PAYLOAD_SEED))


def payload_hashes(
    *,
    item_id: pa.Array,
    region: pa.Array,
    user_id: pa.Array,
    event_time_us: pa.Array,
    duration_ms: pa.Array,
    count: pa.Array,
) -> pa.Array:
    """Return `payload_hash` of each row, as int64.

    `event_time_us` holds microseconds since 1970 UTC as int64, NULL where the server stamped the time.
    """
    said = (item_id, region, user_id, event_time_us, duration_ms, count)
    texts = [pc.fill_null(part.cast(pa.string()), "") for part in said]
    return _hashes(pc.binary_join_element_wise(*texts, _BETWEEN), PAYLOAD_SEED)


def content_hash(record: bytes) -> str:
    """Return xxh3-128 of a whole source row with `CONTENT_SEED`, as 32 hex digits: equal rows, equal text."""
    return xxhash.xxh3_128_hexdigest(record, seed=CONTENT_SEED)


def _hashes(texts: pa.Array, seed: int) -> pa.Array:
    digest = xxhash.xxh3_64_intdigest
    unsigned = [digest(text, seed=seed) for text in texts.cast(pa.binary()).to_pylist()]
    signed: npt.NDArray[np.int64] = np.array(unsigned, dtype=np.uint64).view(np.int64)
    return pa.array(signed)


def _signed(unsigned: int) -> int:
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned
