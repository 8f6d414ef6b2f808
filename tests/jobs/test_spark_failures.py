"""What a user hears when Spark fails: no session is needed for it, only Spark's exceptions."""

import errno
import pickle
from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkRuntimeError

from domain.errors import LakeboardError
from jobs.spark_failures import SparkFailedError, failures_explained


def explained(error: Exception, log: Path) -> SparkFailedError:
    with pytest.raises(SparkFailedError) as caught, failures_explained(log):
        raise error
    assert "\n" not in str(caught.value)
    return caught.value


CALL = "An error occurred while calling o12.save.\n: "


@pytest.mark.parametrize(
    ("error", "problem", "step"),
    [
        (Py4JError(f"{CALL}java.lang.OutOfMemoryError: Java heap space\n\tat x.Y"), "java.lang.OutOfMemoryError: Java "
         "heap space", "driver_memory"),
        (Py4JError(f"{CALL}java.io.IOException: No space left on device\n\tat x.Y"), "java.io.IOException: No space "
         "left on device", "free disk space"),
        (OSError(errno.ENOSPC, "No space left on device"), "[Errno 28] No space left on device", "free disk space"),
        (MemoryError(), "MemoryError", "driver_memory"),
        (Py4JNetworkError("Answer from Java side is empty"), "Answer from Java side is empty", "JVM was killed"),
        (PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"), "[JAVA_GATEWAY_EXITED] Java gateway "
         "process exited", "lakeboard doctor"),
        (AnalysisException("[UNRESOLVED_COLUMN] x\nplan"), "[UNRESOLVED_COLUMN] x", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)  # fmt: skip
def test_a_failure_of_spark_is_one_sentence_with_what_to_do(
    tmp_path: Path, error: Exception, problem: str, step: str | None
) -> None:
    said = explained(error, tmp_path / "logs" / "recount-1.log")

    assert said.problem == problem
    assert (said.step is None) if step is None else (step in str(said.step))
    assert str(said.log) in str(said)
    assert "the last release stays current" in str(said)
    assert "same command again" in str(said)


def test_the_stack_trace_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "recount-1.log"

    explained(Py4JError(f"{CALL}java.lang.Error: x\n\tat org.Some.where(Some.java:1)"), log)

    written = log.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in written
    assert "org.Some.where" in written


def test_what_failed_first_is_said_and_not_what_its_clean_up_raised(tmp_path: Path) -> None:
    def dying() -> None:
        try:
            message = "Answer from Java side is empty"
            raise Py4JNetworkError(message)
        finally:
            message = "[Errno 111] Connection refused"
            raise ConnectionRefusedError(message)

    with pytest.raises(SparkFailedError, match="Answer from Java side is empty"), failures_explained(tmp_path / "log"):
        dying()


def test_a_log_that_cannot_be_written_hides_no_failure(tmp_path: Path) -> None:
    said = explained(Py4JError("x"), Path("/proc/nowhere/recount-1.log"))

    assert said.log is None
    assert "could not be written" in str(said)


def test_very_long_words_are_cut_and_whole_in_the_log(tmp_path: Path) -> None:
    said = explained(Py4JError("plan " * 1000), tmp_path / "log")

    assert len(said.problem) < 320
    assert "plan " * 1000 in (tmp_path / "log").read_text(encoding="utf-8")


class OursError(LakeboardError):
    """One of ours."""


@pytest.mark.parametrize("error", [OursError("said"), KeyError("a bug"), KeyboardInterrupt()])
def test_errors_of_ours_bugs_and_stops_pass_as_they_are(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, failures_explained(tmp_path / "log"):
        raise error

    assert caught.value is error
    assert not (tmp_path / "log").exists()


def test_without_a_failure_there_is_no_log(tmp_path: Path) -> None:
    with failures_explained(tmp_path / "log"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_it_can_be_pickled() -> None:
    error = SparkFailedError("x", None, Path("/log"))

    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301  our own bytes
