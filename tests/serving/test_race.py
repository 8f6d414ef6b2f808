"""`GET /v1/race/live` of a running API."""

import json

import pytest

from domain.race import PLAYS, Race
from tests.serving.conftest import Running

pytestmark = pytest.mark.redis


def test_a_race_is_shown_to_its_end(running: Running) -> None:
    events: list[tuple[str, str]] = []
    with running.api.client() as client, client.stream("GET", "/v1/race/live?width=64&seed=7", timeout=60) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        name = ""
        for line in answer.iter_lines():
            kind, _, value = line.partition(": ")
            name = value if kind == "event" else name
            if kind == "data":
                events.append((name, value))

    frames = [json.loads(data) for kind, data in events if kind == "frame"]
    assert [kind for kind, _ in events] == ["frame"] * 60 + ["end"]
    assert [frame["played"] for frame in frames] == [PLAYS // 60 * n for n in range(1, 61)]
    assert frames[-1] == {"plays": PLAYS, "songs": 5_000, "width": 64, "seed": 7, **Race(64, 7).result().body()}


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("width=100", "parameter_invalid", "width"),
        ("width=-64", "parameter_invalid", "width"),
        ("seed=4294967296", "parameter_invalid", "seed"),
        ("seed=99999999999", "parameter_invalid", "seed"),
        ("height=64", "unknown_parameter", None),
    ],
)
def test_what_may_not_be_asked_is_refused(running: Running, query: str, code: str, field: str | None) -> None:
    with running.api.client() as client:
        refused = client.get(f"/v1/race/live?{query}")

    assert (refused.status_code, refused.json()["code"], refused.json().get("field")) == (400, code, field)
