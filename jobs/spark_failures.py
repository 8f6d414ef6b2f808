"""What a user is told when Spark, its JVM or the machine fails: one sentence, and a log with the rest."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from domain.errors import LakeboardError

# What pyspark, its socket to the JVM, the machine and deltalake raise. Anything else is a fault of our own code and
# keeps its stack trace.
FAILURES = (PySparkException, Py4JError, DeltaError, OSError, EOFError, MemoryError)
_LONGEST = 300  # characters of Spark's own words; the log has them all
_MEMORY_STEP = "give Spark more memory with the setting driver_memory (docs/settings.md)"
_DISK_STEP = "free disk space, or move LAKEBOARD_HOME to a larger disk"
_KILLED_STEP = "close other programs or lower driver_memory, as the JVM was killed, mostly because memory ran out"
_JAVA_STEP = "`lakeboard doctor` says what is wrong with Java"
# Words of a stack trace and what a user does about them; the first that is found decides.
_STEPS = (
    ("No space left on device", _DISK_STEP),
    ("OutOfMemoryError", _MEMORY_STEP),
    ("MemoryError", _MEMORY_STEP),
    ("Could not reserve enough space", "set driver_memory to less than this machine has (docs/settings.md)"),
    ("JAVA_GATEWAY_EXITED", _JAVA_STEP),
    ("Answer from Java side is empty", _KILLED_STEP),
    ("while trying to connect to the Java server", _KILLED_STEP),
)


class SparkFailedError(LakeboardError):
    """Spark stopped in the middle of a job; the last release stays current.

    Attributes:
        problem: First line of what failed.
        step: What to do about it, None where the kind of failure is not known.
        log: File with the stack trace, None when that could not be written.
    """

    def __init__(self, problem: str, step: str | None, log: Path | None) -> None:
        super().__init__(problem, step, log)
        self.problem = problem
        self.step = step
        self.log = log

    def __str__(self) -> str:
        step = f"{self.step}; then run" if self.step else "run"
        trace = f"the stack trace is in {self.log}" if self.log else "the stack trace could not be written"
        return (
            f"Spark failed ({self.problem}); the last release stays current: {step} the same command again, "
            f"which repairs what this one left ({trace})"
        )


@contextmanager
def failures_explained(log: Path) -> Iterator[None]:
    """Turn failures of Spark and of the machine within the block into one sentence, with the rest in a log.

    Errors of ours pass as they are.

    Raises:
        SparkFailedError: for any of `FAILURES`.
    """
    try:
        yield
    except LakeboardError:
        raise
    except FAILURES as error:
        root = _first_failure(error)
        trace = "".join(traceback.format_exception(error))
        raise SparkFailedError(_first_line(root), _step(trace), _written(log, trace)) from error


def _first_failure(error: BaseException) -> BaseException:
    """Return what failed first: a dead JVM makes the clean-up after it fail too, and that says nothing."""
    before = error.__context__
    while before is not None:
        if isinstance(before, PySparkException | Py4JError):
            error = before
        before = before.__context__
    return error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    # "An error occurred while calling o12.save." says nothing; the Java exception follows on the next line
    if said.startswith("An error occurred while calling") and len(lines) > 1:
        said = lines[1].removeprefix(": ")
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]} ..."


def _step(trace: str) -> str | None:
    return next((step for words, step in _STEPS if words in trace), None)


def _written(log: Path, trace: str) -> Path | None:
    """Write the log; on a full disk there is none, and the failure matters more."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(trace, encoding="utf-8")
    except OSError:
        return None
    return log
