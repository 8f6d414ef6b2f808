"""What batch hands over, as bytes: MessagePack and columns, compressed, versioned (docs/redis-keys.md).

The ids of a view stand once, in parts of a table, and regions speak of them by number: the best items of one region are
those of many others.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec
import numpy as np

from domain.batch_view import HOURS_IN_VIEW, BatchView, RegionView
from domain.windows import EPOCH, HOUR
from speed_layer.store.lists import UnknownListFormatError

_VERSION: Final = 1
_VIEW, _REGION, _ITEMS = "a batch view", "a region of a batch view", "ids of a batch view"
_IDS_A_PART: Final = 50_000
_LEVEL: Final = 1  # most counts are small numbers: more effort saves little

_ENCODE = msgspec.msgpack.encode


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMeta:
    """What is said of a view without its counts.

    Attributes:
        version: Its name.
        release: Number of the release.
        frontier_hour: Hours since 1970; exclusive end.
        log_id: The log that batch read past the frontier; None for none.
        offsets: As in `BatchView`.
        others: As in `BatchView`.
        regions: How many there are.
        items: How many different items they list.
        parts: How many parts the table of their ids has.
        copies: As in `BatchView`; a view that an older version wrote has none.
    """

    version: str
    release: int
    frontier_hour: int
    log_id: str | None
    offsets: Mapping[str, int]
    others: int
    regions: int
    items: int
    parts: int
    copies: Mapping[str, int] = field(default_factory=dict)

    @property
    def frontier(self) -> datetime:
        """Exclusive end, a whole hour UTC."""
        return EPOCH + self.frontier_hour * HOUR

    @property
    def says(self) -> tuple[int, datetime, str | None]:
        """What makes two views the same: release, frontier, log."""
        return self.release, self.frontier, self.log_id


@dataclass(frozen=True, slots=True)
class EncodedView:
    """A view as bytes.

    Attributes:
        meta: What is said of it.
        head: The bytes of `meta`.
        items: Number of the part -> its bytes.
        regions: Region name -> its bytes.
    """

    meta: ViewMeta
    head: bytes
    items: Mapping[str, bytes]
    regions: Mapping[str, bytes]


def encode_view(view: BatchView) -> EncodedView:
    """Return the bytes of a view. Inverse of `decode_meta`, `decode_items` and `decode_region`."""
    ids = list(dict.fromkeys(item for region in view.regions.values() for item in region.item_ids))
    numbers = {item: number for number, item in enumerate(ids)}
    parts = [ids[start : start + _IDS_A_PART] for start in range(0, len(ids), _IDS_A_PART)]
    meta = _meta_of(view, items=len(ids), parts=len(parts))
    fields = {name: getattr(meta, name) for name in _META_FIELDS if name != "copies" or meta.copies}
    return EncodedView(
        meta=meta,
        head=_ENCODE({"v": _VERSION, **fields, "offsets": dict(meta.offsets)}),
        items={str(number): _packed((_VERSION, part)) for number, part in enumerate(parts)},
        regions={name: _encode_region(region, numbers) for name, region in view.regions.items()},
    )


def _meta_of(view: BatchView, *, items: int, parts: int) -> ViewMeta:
    return ViewMeta(
        version=view.version,
        release=view.release,
        frontier_hour=(view.frontier - EPOCH) // HOUR,
        log_id=view.log_id,
        offsets=view.offsets,
        others=view.others,
        regions=len(view.regions),
        items=items,
        parts=parts,
        copies=view.copies,
    )


def decode_meta(body: bytes) -> ViewMeta:
    """Read what is said of a view.

    Raises:
        UnknownListFormatError: it is of another version.
    """
    said: dict[str, Any] = msgspec.msgpack.decode(body)
    if said.get("v") != _VERSION:
        raise UnknownListFormatError(_VIEW, said.get("v"))
    return ViewMeta(**{name: said[name] for name in _META_FIELDS if name in said})


def decode_items(parts: Mapping[str, bytes]) -> list[str]:
    """Read the table of ids from all its parts.

    Raises:
        UnknownListFormatError: it is of another version.
    """
    ids: list[str] = []
    for number in range(len(parts)):
        (found,) = _unpacked(parts[str(number)], _ITEMS)
        ids += found
    return ids


def decode_region(body: bytes, ids: Sequence[str]) -> RegionView:
    """Read the counts of a region.

    Args:
        body: Its bytes.
        ids: The table of ids of its view.

    Raises:
        UnknownListFormatError: it is of another version.
    """
    numbers, width, hourly, residual, totals = _unpacked(body, _REGION)
    items = np.frombuffer(numbers, dtype="<u4").tolist()
    return RegionView(
        item_ids=[ids[number] for number in items],
        hourly=np.frombuffer(hourly, dtype=f"<u{width}").reshape(len(items), HOURS_IN_VIEW),
        residual=residual,
        totals=np.array(totals, dtype=np.int64),
    )


def view_from(meta: ViewMeta, regions: Mapping[str, RegionView]) -> BatchView:
    """Return the view of what was read."""
    return BatchView(
        version=meta.version,
        release=meta.release,
        frontier=meta.frontier,
        log_id=meta.log_id,
        offsets=meta.offsets,
        regions=regions,
        others=meta.others,
        copies=meta.copies,
    )


_META_FIELDS = tuple(ViewMeta.__dataclass_fields__)


def _encode_region(region: RegionView, numbers: Mapping[str, int]) -> bytes:
    of_items = np.array([numbers[item] for item in region.item_ids], dtype="<u4")
    width = np.min_scalar_type(int(region.hourly.max(initial=0))).itemsize
    hourly = np.ascontiguousarray(region.hourly, dtype=f"<u{width}")
    columns = (of_items.tobytes(), width, hourly.tobytes(), region.residual, region.totals.tolist())
    return _packed((_VERSION, *columns))


def _packed(said: tuple[object, ...]) -> bytes:
    return zlib.compress(_ENCODE(said), _LEVEL)


def _unpacked(body: bytes, what: str) -> list[Any]:
    try:
        said = msgspec.msgpack.decode(zlib.decompress(body))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise UnknownListFormatError(what, str(error)) from error
    if not isinstance(said, list) or said[0] != _VERSION:
        raise UnknownListFormatError(what, said[0] if isinstance(said, list) else said)
    return said[1:]
