"""Ready charts and the merger's status as they stand in the views server: MessagePack, versioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from domain.estimates import RankedEstimate
from domain.live_chart import Lack, LiveChart, LiveMoment, PartialPartition
from domain.live_windows import LiveWindow
from domain.merge import MergedTop
from domain.windows import EPOCH, HOUR, Window
from speed_layer.store.lists import UnknownListFormatError

_VERSION: Final = 1
_COLUMNS: Final = ("item_id", "lower", "upper", "rank_min", "rank_max")
_MS = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartsStatus:
    """How the merger is, and what the charts of each window have in common.

    Attributes:
        written_ms: The views server's clock at the write, milliseconds since 1970 UTC.
        cycle: Grows with each write of one merger.
        view: Version of the batch view that is loaded; None before any.
        moments: By window; one that was never joined has none.
    """

    written_ms: int
    cycle: int
    view: str | None
    moments: Mapping[LiveWindow, LiveMoment]


def encode_chart(chart: LiveChart) -> bytes:
    """Return the bytes of a ready chart. Inverse of `decode_chart`."""
    top, rows = chart.top, chart.top.rows
    columns = [[getattr(row, name) for row in rows] for name in _COLUMNS]
    facts = (top.total, top.missed_max, top.hidden, top.tie_at_cut, top.exact)
    return msgspec.msgpack.encode((_VERSION, *facts, columns, dict(chart.moved)))


def decode_chart(body: bytes) -> LiveChart:
    """Read a ready chart.

    Raises:
        UnknownListFormatError: it is of another version.
    """
    _, total, missed_max, hidden, tie_at_cut, exact, columns, moved = _of_version(body, "a ready chart")
    rows = [RankedEstimate(rank, *row) for rank, row in enumerate(zip(*columns, strict=True), start=1)]
    top = MergedTop(
        rows=rows,
        missed_max=missed_max,
        total=total,
        tie_at_cut=tie_at_cut,
        deeper=(),
        exact=exact,
        hidden=hidden,
    )
    return LiveChart(top=top, moved=moved)


def encode_charts_status(status: ChartsStatus) -> bytes:
    """Return the bytes of the merger's status. Inverse of `decode_charts_status`."""
    moments = [_moment_parts(moment) for moment in status.moments.values()]
    return msgspec.msgpack.encode((_VERSION, status.written_ms, status.cycle, status.view, moments))


def decode_charts_status(body: bytes) -> ChartsStatus:
    """Read the merger's status.

    Raises:
        UnknownListFormatError: it is of another version.
    """
    _, written_ms, cycle, view, moments = _of_version(body, "the merger's status")
    found = [_moment_of(parts) for parts in moments]
    return ChartsStatus(
        written_ms=written_ms, cycle=cycle, view=view, moments={moment.kind: moment for moment in found}
    )


def _of_version(body: bytes, what: str) -> Sequence[Any]:
    said = msgspec.msgpack.decode(body)
    if not isinstance(said, list) or said[0] != _VERSION:
        raise UnknownListFormatError(what, said[0] if isinstance(said, list) else said)
    return said


def _moment_parts(moment: LiveMoment) -> tuple[Any, ...]:
    frontier = None if moment.frontier is None else (moment.frontier - EPOCH) // HOUR
    partial = [
        (one.partition, one.lack.value, _ms(one.as_of), _span(one.window), _ms(one.complete_from))
        for one in moment.partial
    ]
    hidden = (moment.unlisted_max, moment.unlisted_total)
    return (moment.kind.value, _ms(moment.as_of), _span(moment.window), frontier, partial, *hidden)


def _moment_of(parts: Sequence[Any]) -> LiveMoment:
    kind, as_of, (start, end), frontier, partial, unlisted_max, unlisted_total = parts
    return LiveMoment(
        kind=LiveWindow(kind),
        as_of=EPOCH + as_of * _MS,
        window=Window(EPOCH + start * _SECOND, EPOCH + end * _SECOND),
        frontier=None if frontier is None else EPOCH + frontier * HOUR,
        partial=[_partial_of(one) for one in partial],
        unlisted_max=unlisted_max,
        unlisted_total=unlisted_total,
    )


def _partial_of(parts: Sequence[Any]) -> PartialPartition:
    number, lack, as_of, span, complete_from = parts
    return PartialPartition(
        partition=number,
        lack=Lack(lack),
        as_of=None if as_of is None else EPOCH + as_of * _MS,
        window=None if span is None else Window(EPOCH + span[0] * _SECOND, EPOCH + span[1] * _SECOND),
        complete_from=None if complete_from is None else EPOCH + complete_from * _MS,
    )


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // _MS


def _span(window: Window | None) -> tuple[int, int] | None:
    return None if window is None else ((window.start - EPOCH) // _SECOND, (window.end - EPOCH) // _SECOND)
