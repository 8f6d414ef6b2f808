"""Runs a measurement in a process of its own: none warms up, or fills the memory of, the next one."""

import resource
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Answer = TypeVar("Answer")
_KIB = 1024


class ChildFailedError(Exception):
    """A measurement ended with an error in its process; Spark's own errors cannot leave it as they are."""

    def __init__(self, story: str) -> None:
        super().__init__(story)
        self.story = story

    def __str__(self) -> str:
        return f"the measurement failed in its process:\n{self.story}"


def in_child(measure: Callable[..., Answer], *arguments: object) -> Answer:
    """Call a function of a module in a new interpreter and return its answer.

    Raises:
        ChildFailedError: it raised something.
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as child:
        return child.submit(_call, measure, arguments).result()


def peak_memory_bytes() -> int:
    """Return the most memory this process held so far.

    Linux starts a child's peak with what its parent held when it started it, so parents here hold no data.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


def _call(measure: Callable[..., Answer], arguments: tuple[object, ...]) -> Answer:
    try:
        return measure(*arguments)
    except Exception:
        raise ChildFailedError(traceback.format_exc()) from None
