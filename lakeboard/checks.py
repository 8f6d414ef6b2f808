"""What a check of `lakeboard doctor` says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How bad it is: only a problem keeps something from working."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What was looked at.
        state: How bad it is.
        found: What is there.
        step: What to do next, empty where nothing needs to be done.
    """

    name: str
    state: State
    found: str
    step: str = ""


Checks = Callable[[], Iterator[Check]]
