"""What a part of the stack says of itself in a file, for `lakeboard status` and the supervisor's probe."""

import os
import time
from pathlib import Path

import msgspec

from domain.clock import Clock

_EVERY_SECONDS = 5.0  # facts change with each cycle; the file need not


class PartStateFile:
    """Keeps the state of this process in a file; each write replaces it whole.

    Args:
        path: Of the file; its folder is made.
        clock: Tells now, UTC.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        now = clock()
        self._state: dict[str, object] = {"pid": os.getpid(), "since": now, "state": "starting", "changed_at": now}
        self._state["problem"] = ""
        self._facts: dict[str, object] = {}
        self._written = 0.0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write()

    def change(self, state: str, problem: str = "") -> bool:
        """Say what it does now; return whether that is something else than before."""
        if (state, problem) == (self._state["state"], self._state["problem"]):
            return False
        self._state |= {"state": state, "problem": problem, "changed_at": self._clock()}
        self._write()
        return True

    def note(self, **facts: object) -> None:
        """Note what it did; it is written now and then, and whenever the state changes."""
        self._facts |= facts
        if time.monotonic() - self._written >= _EVERY_SECONDS:
            self._write()

    def _write(self) -> None:
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(self._state | self._facts)))
        beside.replace(self.path)
        self._written = time.monotonic()
