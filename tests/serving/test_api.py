import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from serving.boards.addresses import BoardRoute
from serving.keys import KeyFile, Role
from serving.settings import MAX_BODY_BYTES
from tests.serving.api_server import appended, until
from tests.serving.conftest import Running

pytestmark = pytest.mark.redis

GOOD = {"item_id": "a", "event_id": "1"}


@pytest.fixture
def send(running: Running) -> Callable[..., httpx.Response]:
    """Send a body with a good key; anything else may be said differently."""

    def post(body: Any, key: str | None = running.key, query: str = "", **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        with running.api.client(key) as client:
            return client.post(f"/v1/events{query}", content=content,
                               headers={"Content-Type": "application/json", **said})  # fmt: skip

    return post


Send = Callable[..., httpx.Response]


def test_what_got_202_is_in_the_log_as_it_was_sent(running: Running, send: Send) -> None:
    play = {"item_id": "song", "event_id": "whole", "region": "in", "user_id": 7, "duration_ms": 1, "count": 3}
    answer = send(play)

    assert (answer.status_code, answer.json()) == (202, {"accepted": 1, "duplicates": 0, "errors": []})
    assert ("whole", "song", "IN", "7", 3, "api/tester") in appended(running.log.address)


def test_an_array_takes_the_good_rows_and_names_the_bad_ones(running: Running, send: Send) -> None:
    rows = [{"item_id": f"i{n}", "event_id": f"array-{n}"} for n in range(1000)]
    rows[3] = {"item_id": "", "event_id": "array-3"}
    rows[999] = rows[0]
    answer = send(rows)

    assert answer.status_code == 202
    body = answer.json()
    assert (body["accepted"], body["duplicates"]) == (998, 1)
    assert [(error["index"], error["code"], error["field"]) for error in body["errors"]] == [
        (3, "item_missing", "item_id")
    ]
    ids = {found[0] for found in appended(running.log.address) if found[0].startswith("array-")}
    assert ids == {f"array-{n}" for n in range(999)} - {"array-3"}


def test_lines_and_gzip_are_taken(send: Send) -> None:
    lines = b"\n".join(json.dumps({"item_id": "a", "event_id": f"line-{n}"}).encode() for n in range(3))

    plain = send(lines, Content_Type="application/x-ndjson; charset=utf-8")
    packed = send(gzip.compress(lines), Content_Type="application/x-ndjson", Content_Encoding="gzip")

    assert [answer.json()["accepted"] for answer in (plain, packed)] == [3, 3]


def test_what_curl_says_of_a_text_is_read_as_json(send: Send) -> None:
    assert send(GOOD, Content_Type="application/x-www-form-urlencoded").status_code == 202


FAR = {**GOOD, "event_time": "2999-01-01T00:00:00Z"}
LARGE = b'[{"item_id":"' + b"x" * (5 << 20) + b'","event_id":"1"}]'
REFUSED = {
    "no JSON": (b"{nonsense", 400, "invalid_json"),
    "NaN": (b'{"item_id":"a","event_id":"1","count":NaN}', 400, "invalid_json"),
    "no UTF-8": (b'{"item_id":"\xff","event_id":"1"}', 400, "invalid_json"),
    "a control character as it is": (b'{"item_id":"a\x01","event_id":"1"}', 400, "invalid_json"),
    "nothing": (b"", 400, "empty"),
    "an empty array": ([], 400, "empty"),
    "an unknown field": ({**GOOD, "colour": "red"}, 400, "unknown_field"),
    "1,001 rows": ([{"item_id": "a", "event_id": str(n)} for n in range(1001)], 413, "too_many_rows"),
    "5 MiB": (LARGE, 413, "body_too_large"),
    "a number instead of a row": (b"5", 422, "unreadable_row"),
    "rows that are all bad": ([{"item_id": "a"}, 5], 422, "no_good_row"),
    "a wrong type": ({**GOOD, "item_id": True}, 422, "item_invalid"),
    "a lone surrogate": (b'{"item_id":"\\ud800","event_id":"1"}', 422, "item_invalid"),
    "a control character": ({**GOOD, "item_id": "a\x01"}, 422, "item_invalid"),
    "257 bytes of id": ({**GOOD, "event_id": "x" * 257}, 422, "id_invalid"),
    "the far future": (FAR, 422, "in_the_future"),
    "the far past": ({**GOOD, "event_time": "1899-12-31T23:59:59Z"}, 422, "time_out_of_range"),
    "a year beyond 9999": ({**GOOD, "event_time": "10000-01-01T00:00:00Z"}, 422, "time_invalid"),
    "no zone": ({**GOOD, "event_time": "2026-11-14T09:30:00"}, 422, "time_zone_missing"),
    "count 0": ({**GOOD, "count": 0}, 422, "count_invalid"),
    "a negative count": ({**GOOD, "count": -1}, 422, "count_invalid"),
    "a huge count": ({**GOOD, "count": 10**30}, 422, "count_invalid"),
    "half a play": ({**GOOD, "count": 1.5}, 422, "count_invalid"),
    "a number of 5,000 digits": (b'{"item_id":1' + b"0" * 5000 + b',"event_id":"1"}', 422, "item_invalid"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_body_that_is_not_taken_gets_its_documented_refusal(send: Send, name: str) -> None:
    body, status, code = REFUSED[name]
    answer = send(body)

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (problem["status"], problem["type"]) == (status, f"/docs#{code}")
    assert problem["title"]
    assert problem["detail"]


def test_a_single_bad_row_names_its_field(send: Send) -> None:
    problem = send(FAR).json()

    assert (problem["field"], problem["index"]) == ("event_time", 0)
    assert [error["code"] for error in problem["errors"]] == ["in_the_future"]


def test_nothing_of_a_refused_request_reaches_the_log(running: Running, send: Send) -> None:
    send([{"item_id": "a", "event_id": "refused-1"}, {"item_id": "a", "event_id": "refused-2", "what": 1}])
    send([{"item_id": "a", "event_id": "refused-3"}, {}], key=None)

    assert not [found for found in appended(running.log.address) if found[0].startswith("refused")]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content_Type": "text/plain"}, 415, "unsupported_media_type"),
        ({"Content_Encoding": "br"}, 415, "unsupported_encoding"),
        ({"Content_Encoding": "gzip"}, 400, "invalid_gzip"),
        ({"query": "?dry=1"}, 400, "unknown_parameter"),
        ({"key": None}, 401, "key_missing"),
        ({"key": "lb_000000000000_x"}, 401, "key_invalid"),
        ({"Authorization": "Basic eDp5", "key": None}, 401, "key_invalid"),
    ],
)
def test_a_head_that_is_not_taken_gets_its_documented_refusal(
    send: Send, headers: dict[str, Any], status: int, code: str
) -> None:
    answer = send(GOOD, **headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_a_gzip_bomb_is_too_large(send: Send) -> None:
    answer = send(gzip.compress(bytes(64 << 20)), Content_Encoding="gzip")

    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_body_without_a_length_is_cut_off_at_the_limit(running: Running) -> None:
    def pieces() -> Any:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b" " * 65536

    with running.api.client(running.key) as client:
        try:
            answer = client.post("/v1/events", content=pieces())
        except httpx.WriteError:  # the server closed before all was sent; what it said can no longer be read
            return
    assert answer.json()["code"] == "body_too_large"


def test_a_length_over_the_limit_is_refused_before_the_body_is_sent(running: Running) -> None:
    head = f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.key}\r\n"
    with socket.create_connection(("127.0.0.1", running.api.port), timeout=10) as connection:
        connection.sendall(f"{head}Content-Length: 5000000\r\n\r\n".encode())
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_key_without_the_role_may_not_write_and_new_and_revoked_keys_are_known_within_a_second(
    running: Running, send: Send
) -> None:
    keys = KeyFile(running.api.home)
    reader = keys.add("dashboard", [Role.READER, Role.ADMIN, Role.GAME_SERVER, Role.PLAYER])[1]
    producer, text = keys.add("short-lived", [Role.PRODUCER])
    until(lambda: send(GOOD, key=text).status_code == 202, "a new key is known", 1.5)

    assert (send(GOOD, key=reader).status_code, send(GOOD, key=reader).json()["code"]) == (403, "role_missing")
    keys.revoke(producer.id)
    until(lambda: send(GOOD, key=text).status_code == 401, "a revoked key is refused", 1.5)
    assert send(GOOD, key=text).json()["code"] == "key_invalid"


def test_a_key_that_sends_too_much_is_told_when_to_come_back(running: Running, send: Send) -> None:
    key = subprocess.run(
        [sys.executable, "-m", "lakeboard", "keys", "add", "slow", "--role", "producer", "--rate", "10"],
        env=running.api._environment(), capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    rows = [{"item_id": "a", "event_id": f"slow-{n}"} for n in range(1000)]
    until(lambda: send(rows, key=key).status_code == 202, "a new key is known", 1.5)

    answer = send(rows, key=key)

    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
    assert 90 <= int(answer.headers["retry-after"]) <= 100
    assert answer.headers["ratelimit-policy"] == '"events";q=1000;w=100'


# --- what every answer has ---


def test_request_ids_are_echoed_when_they_are_harmless_and_made_otherwise(running: Running, send: Send) -> None:
    assert send(GOOD, X_Request_Id="abc-1.2_3:4").headers["x-request-id"] == "abc-1.2_3:4"
    made = {send(GOOD, X_Request_Id=said).headers["x-request-id"] for said in ("x" * 129, 'a"b', "a b")}
    with running.api.client() as client:
        health = client.get("/healthz", headers={"X-Request-Id": "mine"})

    assert len(made) == 3
    assert all(len(each) == 16 for each in made)
    assert health.headers["x-request-id"] == "mine"


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "allow"),
    [
        ("GET", "/nowhere", 404, "not_found", None),
        ("GET", "/v1/events/", 405, "method_not_allowed", "POST"),
        ("GET", "/v1/events", 405, "method_not_allowed", "POST"),
        ("DELETE", "/docs", 405, "method_not_allowed", "GET"),
        ("GET", "/metrics?x=1", 400, "unknown_parameter", None),
        ("GET", "/schema", 404, "not_found", None),
    ],
)
def test_other_addresses_and_methods_are_problems_too(
    running: Running, method: str, path: str, status: int, code: str, allow: str | None
) -> None:
    with running.api.client() as client:
        answer = client.request(method, path)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers.get("allow") == allow


def test_no_origin_is_let_in_by_default(running: Running) -> None:
    with running.api.client() as client:
        answer = client.get("/healthz", headers={"Origin": "https://example.org"})

    assert "access-control-allow-origin" not in answer.headers


def test_the_parts_are_ready_and_the_pages_work(running: Running) -> None:
    with running.api.client(follow_redirects=True) as client:
        ready, page, document = (client.get(path) for path in ("/readyz", "/", "/openapi.json"))

    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert set(ready.json()["parts"]) == {"log", "room", "keys", "charts"}
    assert (page.url.path, page.headers["content-type"]) == ("/docs", "text/html; charset=utf-8")
    assert "script" not in page.text.lower()
    paths = document.json()["paths"]
    charts = {"/v1/top", "/v1/charts/top", "/v1/charts/live", "/v1/items/{item_id}/count", "/v1/race/live"}
    pages = {"/docs", "/charts", "/race"}
    others = {"/v1/events", "/healthz", "/readyz", "/metrics", "/openapi.json"}
    assert set(paths) == others | pages | charts | set(BoardRoute)
    assert set(paths["/v1/events"]["post"]["responses"]) == {
        "202", "400", "401", "403", "405", "408", "413", "415", "422", "429", "500", "503",
    }  # fmt: skip


def test_the_logs_name_refusals_by_request_and_hold_no_payload_and_no_key(running: Running, send: Send) -> None:
    send({**GOOD, "item_id": "secret-payload", "count": 0}, X_Request_Id="to-be-found")
    send(GOOD, key="lb_0123456789ab_secret-key")

    text = running.api.lines_file.read_text(encoding="utf-8")
    found = [line for line in running.api.lines() if line.get("request_id") == "to-be-found"]
    assert [(line["event"], line["code"], line["status"], line["route"]) for line in found] == [
        ("request_refused", "count_invalid", 422, "/v1/events")
    ]
    assert "secret" not in text
    assert running.key not in text
    assert not [line for line in running.api.lines() if line["event"] == "request_failed"]
