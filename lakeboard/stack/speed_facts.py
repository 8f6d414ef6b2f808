"""What the live counting says of itself, for `lakeboard status`."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

_LATE = timedelta(seconds=30)  # it writes its state every second; a large checkpoint may take some


class SpeedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The live counting as of its last word.

    Attributes:
        age_seconds: How old that is.
        partitions: How many it counts.
        largest_lag_seconds: Of its partitions, how far the log's clock was ahead of what is counted; None before any
            was read.
        view: Batch view in use.
        held: Partitions that cannot go on -> why.
    """

    age_seconds: int
    partitions: int
    largest_lag_seconds: float | None
    view: str | None
    held: Mapping[str, str]

    @property
    def problems(self) -> list[str]:
        """Return what is not well, one sentence each."""
        silent = self.age_seconds > _LATE.total_seconds()
        silence = [f"the live counting said nothing for {self.age_seconds} s; see docs/runbook.md"] if silent else []
        return silence + [f"{partition} is not counted live: {why}" for partition, why in self.held.items()]


class _Partition(msgspec.Struct):
    lag_seconds: float | None


class _State(msgspec.Struct):
    written_at: datetime
    view: str | None
    partitions: dict[str, _Partition]
    held: dict[str, str]


def speed_facts(state_file: Path, now: datetime) -> SpeedFacts | None:
    """Read its state; None when it has not said anything yet.

    Args:
        state_file: Where it writes.
        now: By the machine's clock, UTC.
    """
    try:
        state = msgspec.json.decode(state_file.read_bytes(), type=_State)
    except (FileNotFoundError, msgspec.MsgspecError):  # a part that does not write is said by its probe
        return None
    lags = [partition.lag_seconds for partition in state.partitions.values() if partition.lag_seconds is not None]
    return SpeedFacts(
        age_seconds=max(int((now - state.written_at).total_seconds()), 0),
        partitions=len(state.partitions),
        largest_lag_seconds=max(lags, default=None),
        view=state.view,
        held=state.held,
    )
