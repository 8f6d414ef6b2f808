"""Runs the parts of the stack in the foreground: ordered start, watch, start again, ordered stop."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType

import msgspec

from domain.clock import Clock
from lakeboard.stack.part import Part, PartState
from lakeboard.stack.state import PartReport, StackReport, write_report

_POLL_SECONDS = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """Runs parts until it is told to stop.

    Args:
        parts: In the order of their start; they are stopped in reverse.
        run: Folder for the report.
        report: The stack without its parts.
        clock: The machine's clock, for the report.
        on_all_up: Called once, when all parts were up for the first time.
        each_turn: Called about 20 times a second with the names of the parts that are up.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        run: Path,
        report: StackReport,
        clock: Clock,
        on_all_up: Callable[[], None],
        each_turn: Callable[[set[str]], None],
    ) -> None:
        self._parts = parts
        self._run = run
        self._report = report
        self._clock = clock
        self._on_all_up = on_all_up
        self._each_turn = each_turn
        self._since: dict[str, tuple[tuple[object, ...], datetime]] = {}
        self._written: list[PartReport] = []
        self._signals = 0

    def run(self) -> None:
        """Start all parts, watch them until a signal asks to stop, then stop them in reverse order."""
        with self._signals_counted():
            try:
                self._watch()
            finally:
                self._stop()

    def _watch(self) -> None:
        said = False
        while not self._signals:
            for part in self._parts:
                part.step(self._well())
                self._write()
                if self._signals:
                    return
            well = self._well()
            self._each_turn(well)
            if not said and len(well) == len(self._parts):
                said = True
                self._on_all_up()
            time.sleep(_POLL_SECONDS)

    def _well(self) -> set[str]:
        return {part.plan.name for part in self._parts if part.state is PartState.UP}

    def _stop(self) -> None:
        """Ask each part to end, the last one first; kill what does not, or all of them at a second signal."""
        asked = self._signals
        for part in reversed(self._parts):
            part.ask_to_stop()
            deadline = time.monotonic() + part.plan.stop_seconds
            while not part.has_stopped() and time.monotonic() < deadline and self._signals <= max(asked, 1):
                time.sleep(_POLL_SECONDS)
            if not part.has_stopped():
                part.say(f"{part.plan.name} does not end; killing it")
                part.kill()
            self._write()

    def _write(self) -> None:
        """Write the report when any part changed."""
        reports = [self._report_of(part) for part in self._parts]
        if reports != self._written:
            write_report(self._run, msgspec.structs.replace(self._report, parts=reports))
            self._written = reports

    def _report_of(self, part: Part) -> PartReport:
        name, facts = part.plan.name, (part.pid, part.state)
        if name not in self._since or self._since[name][0] != facts:
            self._since[name] = (facts, self._clock())
        return PartReport(
            name=name,
            pid=part.pid,
            state=part.state.value,
            since=self._since[name][1],
            restarts=part.restarts,
            last_end=part.last_end,
            problem=part.problem,
        )

    @contextmanager
    def _signals_counted(self) -> Iterator[None]:
        def count(_number: int, _frame: FrameType | None) -> None:
            self._signals += 1

        before = [(number, signal.signal(number, count)) for number in _SIGNALS]
        try:
            yield
        finally:
            for number, handler in before:
                signal.signal(number, handler)
