"""The whole state of a partition as parts that are stored under names, and back, exactly.

A part is written once: while a minute, an hour, a chunk of hashes or of ids is the same object as when it was stored,
it need not be stored again. What is restored counts every further batch as the original would. What was reported and
batch's view are no state: after a restart all lists are reported anew and the view is handed over again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from domain.rules import Rules
from domain.sketches.codec import StoredBlock, UnreadableBlockError, decode_block, encode_block
from domain.sketches.keys import UInt64s
from domain.sketches.packed import PackedBlock
from domain.sketches.shape import Shapes
from domain.speed_policy import SpeedPolicy
from speed_layer.names import HASHING
from speed_layer.partition import LivePartition, Meter
from speed_layer.retry_window import RetryWindow
from speed_layer.snapshot_rest import (
    Rest,
    UnusableStateError,
    column,
    decode_rest,
    encode_rest,
    state_fingerprint,
)

REST: Final = "rest"
_ITEMS_A_PART: Final = 16_384
_BETWEEN = "\0"  # no id can hold it
_MINUTE, _HOUR, _FINE, _RETRY, _ITEMS, _PINS, _TAIL = "minute", "hour", "fine", "retry", "items", "pins", "tail"
_SAMPLE = "sample"


class Part(NamedTuple):
    """One part of a state.

    Attributes:
        source: The object that it is made of.
        size: Of that object, where it only grows.
        encode: Makes its bytes; to be called before the partition counts on.
    """

    source: object
    size: int
    encode: Callable[[], bytes]

    def is_same(self, other: "Part | None") -> bool:
        """Say whether the bytes of another one, of the same name, are those of this one."""
        return other is not None and self.source is other.source and self.size == other.size


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A partition at rest.

    Attributes:
        position: `EntryId.version` of the last entry that is in it, -1 for none.
        parts: By name; `rest` is always there.
    """

    position: int
    parts: Mapping[str, Part]

    def encoded(self) -> dict[str, bytes]:
        """Return the bytes of all parts by name."""
        return {name: part.encode() for name, part in self.parts.items()}


def snapshot(partition: LivePartition) -> Snapshot:
    """Return a partition's state; it changes nothing, and what it returns is to be encoded before the next batch."""
    buckets = partition.buckets
    pins = _distinct_pins(partition)
    parts: dict[str, Part] = {}
    for kind, blocks in ((_MINUTE, buckets.minutes), (_HOUR, buckets.hours)):
        parts.update({f"{kind}/{at}": _of_block(partition, block) for at, block in blocks.items()})
    parts.update({f"{_FINE}/{at}": _of_block(partition, buckets.as_it_is(at)) for at in buckets.fine})
    parts.update({f"{_RETRY}/{at}": _of_columns(ids, ids) for at, ids in partition.retry.chunks().items()})
    parts.update({f"{_PINS}/{number}": _of_columns(keys, keys) for number, keys in enumerate(pins)})
    for hour, (keys, counts) in partition.sample.hours.items():
        parts[f"{_SAMPLE}/{hour}"] = _of_columns(keys, keys, counts.astype(np.uint64))
    parts.update(_of_items(partition))
    buckets.tail.settle()
    if len(buckets.tail):
        tail = buckets.tail
        parts[_TAIL] = _of_columns(tail.keys, tail.minutes.astype(np.uint64), tail.keys, tail.counts.astype(np.uint64))
    rest = encode_rest(_rest(partition, pins))
    parts[REST] = Part(rest, len(rest), lambda: rest)
    return Snapshot(partition.position, parts)


def restored(blobs: Mapping[str, bytes], policy: SpeedPolicy, rules: Rules) -> LivePartition:
    """Return the partition whose state this was.

    Args:
        blobs: Bytes of all parts by name.
        policy: In force.
        rules: In force.

    Raises:
        UnusableStateError: of another version, policy or rules, not whole, or damaged.
    """
    if REST not in blobs:
        problem = "its first part is missing"
        raise UnusableStateError(problem)
    rest = decode_rest(blobs[REST], made_with=state_fingerprint(policy, rules))
    partition = LivePartition(policy, rules)
    try:
        _restore_names(partition, rest, blobs)
        _restore_buckets(partition, rest, blobs)
    except UnreadableBlockError as error:
        raise UnusableStateError(error.problem) from error
    except KeyError as error:
        problem = f"its part {error} is missing"
        raise UnusableStateError(problem) from error
    _restore_rest(partition, rest, blobs)
    return partition


def _of_block(partition: LivePartition, block: PackedBlock) -> Part:
    encode = partial(
        encode_block, block, regions=partition.regions.names, item_ids=partition.items.ids, hashing=HASHING
    )
    return Part(block, 0, encode)


def _of_columns(source: UInt64s, *columns: UInt64s) -> Part:
    return Part(source, 0, lambda: b"".join(column.tobytes() for column in columns))


def _of_items(partition: LivePartition) -> Iterator[tuple[str, Part]]:
    """Yield the ids of the items in parts of so many that the full ones stay what they are."""
    ids = partition.items.ids
    for start in range(0, len(ids), _ITEMS_A_PART):
        of_part = ids[start : start + _ITEMS_A_PART]
        yield f"{_ITEMS}/{start}", Part(ids, len(of_part), partial(_joined, of_part))


def _joined(ids: Sequence[str]) -> bytes:
    return "".join(item + _BETWEEN for item in ids).encode()


def _distinct_pins(partition: LivePartition) -> list[UInt64s]:
    """Return the pins of buckets that begin now and of each 10-second bucket, each array once."""
    every = [partition.buckets.pins, *(block.pinned for block in partition.buckets.fine.values())]
    return list({id(keys): keys for keys in every}.values())


def _rest(partition: LivePartition, pins: Sequence[UInt64s]) -> Rest:
    buckets, pending = partition.buckets, partition.pending
    number_of = {id(keys): number for number, keys in enumerate(pins)}
    compact_at, folded_hour, pinned_minute = partition.marks
    return Rest(
        made_with=state_fingerprint(partition.policy, partition.rules),
        position=partition.position,
        log_ms=partition.log_ms,
        offset=partition.offset,
        frontier=buckets.frontier,
        at_rest_from=(buckets.fine_from, buckets.minutes_from, buckets.hours_from),
        compact_at=compact_at,
        folded_hour=folded_hour,
        pinned_minute=pinned_minute,
        regions=partition.regions.names,
        folding=partition.regions.folding,
        items=len(partition.items),
        meters={meter.value: number for meter, number in partition.meters.items()},
        tardy=[(*key, chunk, *held) for key, chunks in pending.tardy.items() for chunk, held in chunks.items()],
        ahead=[(*key, plays) for key, plays in pending.ahead.items()],
        far=pending.far,
        retry_minute=partition.retry.minute,
        pins=number_of[id(buckets.pins)],
        fine=[(at, number_of[id(block.pinned)]) for at, block in buckets.fine.items()],
    )


def _restore_names(partition: LivePartition, rest: Rest, blobs: Mapping[str, bytes]) -> None:
    partition.regions.restore(rest.regions, folding=rest.folding)
    for start in range(0, rest.items, _ITEMS_A_PART):
        partition.items.numbers_of(blobs[f"{_ITEMS}/{start}"].decode().split(_BETWEEN)[:-1])
    if len(partition.items) != rest.items:
        problem = f"it has ids of {len(partition.items)} items and should have {rest.items}"
        raise UnusableStateError(problem)


def _restore_buckets(partition: LivePartition, rest: Rest, blobs: Mapping[str, bytes]) -> None:
    buckets, policy = partition.buckets, partition.policy
    for name, body in blobs.items():
        kind, _, at = name.partition("/")
        if kind == _MINUTE:
            buckets.minutes[int(at)] = _block(partition, body, policy.minutes)
        elif kind == _HOUR:
            buckets.hours[int(at)] = _block(partition, body, policy.hours)
    pins = {number: _keys(blobs[f"{_PINS}/{number}"]) for number in {rest.pins, *(number for _, number in rest.fine)}}
    for moment, number in rest.fine:
        block = _block(partition, blobs[f"{_FINE}/{moment}"], policy.minutes).block()
        block.pinned = pins[number]
        buckets.fine[moment] = block
    buckets.pins = pins[rest.pins]
    buckets.frontier = rest.frontier
    buckets.fine_from, buckets.minutes_from, buckets.hours_from = rest.at_rest_from
    if _TAIL in blobs:
        minutes, keys, counts = _keys(blobs[_TAIL]).reshape(3, -1)
        buckets.tail.add(minutes.astype(np.int64), keys, counts.astype(np.int64))


def _restore_rest(partition: LivePartition, rest: Rest, blobs: Mapping[str, bytes]) -> None:
    pending = partition.pending
    for name in (name for name in blobs if name.startswith(f"{_SAMPLE}/")):
        keys, counts = _keys(blobs[name]).reshape(2, -1)
        partition.sample.hours[int(name.partition("/")[2])] = (keys, counts.astype(np.int64))
    for hour, region, chunk, position, plays in rest.tardy:
        pending.tardy.setdefault((hour, region), {})[chunk] = (position, plays)
    pending.ahead.update({(hour, region): plays for hour, region, plays in rest.ahead})
    pending.far = rest.far
    partition.meters.update({Meter(name): number for name, number in rest.meters.items()})
    chunks = {int(name.partition("/")[2]): _keys(body) for name, body in blobs.items() if name.startswith(f"{_RETRY}/")}
    retry_minutes = partition.retry.minutes
    partition.retry = RetryWindow.of_chunks(chunks, minute=rest.retry_minute, minutes=retry_minutes)
    partition.position, partition.log_ms, partition.offset = rest.position, rest.log_ms, rest.offset
    partition.marks = (rest.compact_at, rest.folded_hour, rest.pinned_minute)


def _block(partition: LivePartition, body: bytes, shapes: Shapes) -> PackedBlock:
    """Return a block under the partition's own numbers, which are those it was stored under."""
    stored = decode_block(body, shapes=shapes, hashing=HASHING)
    _require_regions(partition.regions.names, stored)
    known = len(partition.items)
    numbers = partition.items.numbers_of(stored.item_ids)
    if len(partition.items) != known:
        problem = "buckets of it hold items that it does not know"
        raise UnusableStateError(problem)
    stored.block.items = numbers[stored.block.items].astype(np.uint32)
    return stored.block


def _require_regions(names: Sequence[str], stored: StoredBlock) -> None:
    """Refuse buckets whose regions have other names now; a number that is free in a block may have a new name."""
    for number in np.flatnonzero(stored.block.totals).tolist():
        if number >= len(names) or stored.regions[number] != names[number]:
            problem = f"buckets of region {stored.regions[number]} have the number of another one"
            raise UnusableStateError(problem)


def _keys(body: bytes) -> UInt64s:
    return column(body)
