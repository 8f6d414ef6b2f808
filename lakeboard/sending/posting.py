"""Threads that post batches while another one reads; the first failure of any of them stops all."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from lakeboard.sending.client import Event, StoppedError

_LOOK_SECONDS = 0.2
_WAITING_BATCHES = 2  # for each connection: enough that none idles, little to drop on Ctrl-C


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events of one request.

    Attributes:
        file: Which file they are of, from 0.
        events: The events.
        rows: Row of the file of each event.
        span: Rows of the file that are done with these events, refused ones between them too: `[first, end)`.
    """

    file: int
    events: list[Event]
    rows: list[int]
    span: tuple[int, int]


class Posters:
    """Posts batches from as many threads as there are connections. Use it as a context.

    Leaving it without an error waits for every answer; with one (Ctrl-C too) it only waits for the requests that are
    out. Raises what a thread failed with.

    Args:
        post: Posts one batch; called by every thread.
        connections: How many threads.
        stop: Set when all are to stop.
        on_look: Called a few times a second while something is waited for.
    """

    def __init__(
        self, post: Callable[[Batch], None], *, connections: int, stop: threading.Event, on_look: Callable[[], None]
    ) -> None:
        self._post = post
        self._stop = stop
        self._on_look = on_look
        self._failure: BaseException | None = None
        self._waiting: queue.Queue[Batch | None] = queue.Queue(_WAITING_BATCHES * connections)
        self._threads = [
            threading.Thread(target=self._post_all, name=f"post-{number}", daemon=True) for number in range(connections)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if error is None:
                self._await_answers()
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def put(self, batch: Batch, *, at: float) -> bool:
        """Hand over a batch at a moment, waiting until a thread is near; False when all have stopped.

        Args:
            batch: The batch.
            at: Moment of `time.monotonic`.
        """
        while (left := at - time.monotonic()) > 0 and not self._stop.is_set():
            self._on_look()
            self._stop.wait(min(left, _LOOK_SECONDS))
        return self._put(batch)

    def _await_answers(self) -> None:
        for _ in self._threads:
            self._put(None)
        for thread in self._threads:
            while thread.is_alive():
                self._on_look()
                thread.join(_LOOK_SECONDS)

    def _put(self, batch: Batch | None) -> bool:
        while not self._stop.is_set():
            self._on_look()
            try:
                self._waiting.put(batch, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def _post_all(self) -> None:
        """Post until there are no more, or somebody stops."""
        while not self._stop.is_set():
            try:
                batch = self._waiting.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if batch is None:
                return
            try:
                self._post(batch)
            except StoppedError:
                return
            except BaseException as error:  # raised again by the thread that reads
                self._failure = self._failure or error
                self._stop.set()
                return
