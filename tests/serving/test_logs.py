"""Log lines as they are written: what an error was and where, never its words."""

import json
from collections.abc import Iterator

import pytest
import structlog

from serving.logs import configure_logs, log

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_an_exception_is_named_with_its_places_and_nothing_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    try:
        int("a client's words")
    except ValueError:
        log.exception("it_failed", route="/x")
    line = json.loads(capsys.readouterr().err)

    assert (line["event"], line["level"], line["route"], line["error"]) == ("it_failed", "error", "/x", "ValueError")
    assert line["places"][-1].startswith("test_logs.py:")
    assert "words" not in json.dumps(line)
