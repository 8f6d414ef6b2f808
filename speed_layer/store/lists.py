"""What a partition says, as it stands in the views server: its lists and its status, MessagePack, versioned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from domain.errors import LakeboardError
from domain.estimates import Estimate
from domain.live_windows import LiveWindow
from domain.windows import EPOCH, HOUR, Window
from speed_layer.changes import ChangedList

_VERSION = 1
_STATUS, _LIST = "a partition's status", "a partition's list"
_MS = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


class UnknownListFormatError(LakeboardError):
    """The views server holds something that another version of this program wrote."""

    def __init__(self, what: str, found: object) -> None:
        super().__init__(what, found)
        self.what = what
        self.found = found

    def __str__(self) -> str:
        return (
            f"the views server holds {self.what} of format {self.found!r}, unknown to this lakeboard: stop the "
            "older or newer one that writes there, then run `lakeboard restore`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """How far a partition has been read when its lists were written.

    Attributes:
        log_id: Of which log.
        position: `EntryId.version` read through, included; -1 before any entry.
        as_of_ms: Log time read through, milliseconds since 1970 UTC; the moment of its windows.
        complete_from_ms: Plays before this log time may be missing, as the state began without them; 0 = none is.
        view: Version of the batch view that its day lists go with; None = of none.
        frontier_hour: Hours since 1970 below this one are not in its day lists; None before any view.
        folding: Plays of some regions are counted in `ZZ`: a region without a list may have plays there.
        policy: Fingerprint of the bounds and rules that it counts by.
        cycle: Grows with every write; what changed in a cycle has this number in `changed`.
        written_ms: The views server's clock at the write, milliseconds since 1970 UTC.
        plays: What became of plays since the state began, by the values of `Meter`.
    """

    log_id: str
    position: int
    as_of_ms: int
    complete_from_ms: int
    view: str | None
    frontier_hour: int | None
    folding: bool
    policy: str
    cycle: int
    written_ms: int
    plays: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def as_of(self) -> datetime:
        """Log time read through, UTC."""
        return EPOCH + self.as_of_ms * _MS


def encode_status(status: PartitionStatus) -> bytes:
    """Return the bytes of a status. Inverse of `decode_status`."""
    return msgspec.msgpack.encode({"v": _VERSION, **{name: getattr(status, name) for name in _STATUS_FIELDS}})


def decode_status(body: bytes) -> PartitionStatus:
    """Read a status.

    Raises:
        UnknownListFormatError: it is of another version.
    """
    said: dict[str, Any] = msgspec.msgpack.decode(body)
    if said.get("v") != _VERSION:
        raise UnknownListFormatError(_STATUS, said.get("v"))
    return PartitionStatus(**{name: said[name] for name in _STATUS_FIELDS if name in said})


def encode_list(changed: ChangedList) -> bytes:
    """Return the bytes of a list: everything but its window's kind and region, which are its field's name."""
    frontier = None if changed.frontier is None else (changed.frontier - EPOCH) // HOUR
    cut = None if changed.cut is None else (changed.cut.item_id, changed.cut.upper)
    span = (_seconds(changed.window.start), _seconds(changed.window.end))
    rows = (changed.item_ids, changed.lower, changed.upper)
    return msgspec.msgpack.encode((_VERSION, *span, frontier, *rows, cut, changed.residual, changed.total))


def decode_list(body: bytes, *, kind: LiveWindow, region: str) -> ChangedList:
    """Read a list.

    Args:
        body: What `encode_list` made.
        kind: Of which live window.
        region: Of which region.

    Raises:
        UnknownListFormatError: it is of another version.
    """
    said = msgspec.msgpack.decode(body)
    if not isinstance(said, list) or said[0] != _VERSION:
        raise UnknownListFormatError(_LIST, said[0] if isinstance(said, list) else said)
    start, end, frontier, item_ids, lower, upper, cut, residual, total = said[1:]
    return ChangedList(
        kind=kind,
        window=Window(_moment(start), _moment(end)),
        region=region,
        frontier=None if frontier is None else EPOCH + frontier * HOUR,
        item_ids=item_ids,
        lower=lower,
        upper=upper,
        cut=None if cut is None else Estimate(cut[0], 0, cut[1]),
        residual=residual,
        total=total,
    )


_STATUS_FIELDS = tuple(PartitionStatus.__dataclass_fields__)


def _seconds(moment: datetime) -> int:
    return (moment - EPOCH) // _SECOND


def _moment(seconds: int) -> datetime:
    return EPOCH + seconds * _SECOND
