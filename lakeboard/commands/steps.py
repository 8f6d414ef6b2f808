"""Showing the steps of a long job: a spinner on a terminal, plain lines elsewhere, always on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status


class Steps:
    """Tells which step runs now and how long each one took."""

    def __init__(self, console: Console, status: Status | None) -> None:
        self._console = console
        self._status = status
        self._step: str | None = None
        self._began = time.monotonic()

    def begin(self, step: str) -> None:
        """End the step before and begin this one."""
        self.end()
        self._step, self._began = step, time.monotonic()
        if self._status is not None:
            self._status.update(step)

    def detail(self, text: str) -> None:
        """Say how far the running step is, where people watch."""
        if self._status is not None:
            self._status.update(f"{self._step}: {text}")

    def wait(self, name: str, holder: str) -> None:
        """Say that another process holds a lock that we need."""
        self._console.print(f"  waiting for {name}, held by {holder}", highlight=False, markup=False)

    def end(self) -> None:
        """End the running step, if there is one."""
        if self._step is not None:
            seconds = time.monotonic() - self._began
            self._console.print(f"  {seconds:6.1f} s  {self._step}", highlight=False, markup=False)
            self._step = None


@contextmanager
def shown_steps() -> Iterator[Steps]:
    """Give a `Steps` that ends its last step when the block is left without an error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        steps = Steps(console, None)
        yield steps
        steps.end()
        return
    with console.status("starting") as status:
        steps = Steps(console, status)
        yield steps
        steps.end()
