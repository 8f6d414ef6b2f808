import http.client
import json
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from serving.keys import Role
from tests.servers import log_server
from tests.serving.api_server import Api, api, appended, has_ended, kill, until

pytestmark = pytest.mark.redis


def post(found: Api, key: str, event_id: str, rows: int = 1, **headers: str) -> httpx.Response:
    body: Any = [{"item_id": f"i{n}", "event_id": f"{event_id}-{n}"} for n in range(rows)]
    with found.client(key) as client:
        return client.post("/v1/events", json=body if rows > 1 else body[0], headers=headers)


def metric(found: Api, name: str, **labels: str) -> float:
    """One value of /metrics."""
    with found.client() as client:
        text = client.get("/metrics").text
    return sum(
        sample.value for family in text_string_to_metric_families(text) for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )  # fmt: skip


# --- the log goes away ---


def test_without_the_log_the_answer_is_503_and_all_is_well_again_when_it_is_back(tmp_path: Path) -> None:
    with log_server(tmp_path / "log") as log, api(tmp_path / "home", log.address) as found:
        key = new_key(found)
        assert post(found, key, "before").status_code == 202

        log.kill()
        refused = post(found, key, "during")
        until(lambda: ready(found)[0] == 503, "readiness fails", 5)
        status, parts = ready(found)
        log.start()

        assert (refused.status_code, refused.json()["code"]) == (503, "log_unavailable")
        assert refused.headers["retry-after"] == "1"
        assert (status, parts["log"]["ok"], parts["keys"]["ok"]) == (503, False, True)
        until(lambda: post(found, key, "after").status_code == 202, "events are taken again", 10)
        until(lambda: ready(found)[0] == 200, "readiness is back", 5)
        assert {"before-0", "after-0"} <= {event[0] for event in appended(log.address)}


def test_a_full_log_refuses_and_says_so(tmp_path: Path) -> None:
    with log_server(tmp_path / "log", max_bytes=6 << 20) as log, api(tmp_path / "home", log.address) as found:
        key = new_key(found)
        for number in range(1000):
            answer = post(found, key, f"{'x' * 200}{number}", rows=500)
            if answer.status_code != 202:
                break

        assert (answer.status_code, answer.json()["code"]) == (503, "log_full")
        assert answer.headers["retry-after"] == "10"
        assert "MiB" not in answer.text  # what the server has is none of a client's business
        until(lambda: not ready(found)[1]["room"]["ok"], "readiness names the room", 5)
        assert metric(found, "lakeboard_log_memory_bytes") > 0.8 * (6 << 20)


def test_a_log_that_loses_its_memory_is_made_anew(tmp_path: Path) -> None:
    with log_server(tmp_path / "log") as log, api(tmp_path / "home", log.address) as found:
        key = new_key(found)
        post(found, key, "lost")
        with log.client() as client:
            client.flushall()

        assert post(found, key, "kept").status_code == 202
        assert [event[0] for event in appended(log.address)] == ["kept-0"]


# --- workers ---


def test_the_metrics_of_all_workers_are_told_by_each(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    key = Api(home, "").key(Role.PRODUCER)  # before the start: a worker learns of a later one when it looks again
    with log_server(tmp_path / "log") as log, api(home, log.address, workers=2) as found:
        for number in range(40):  # each on a connection of its own: the kernel spreads them
            assert post(found, key, f"m{number}", rows=3).status_code == 202
        post(found, key, "bad", rows=1, **{"Content-Type": "text/plain"})

        # Each worker has numbers of its own from its first flush on, whichever of the requests it had.
        files = [home / "run" / "api-metrics" / f"counter_{pid}.db" for pid in found.worker_pids()]
        assert len(files) == 2
        until(lambda: all(file.exists() for file in files), "each worker wrote its numbers", 5)
        until(lambda: metric(found, "lakeboard_events_accepted_total") == 120, "all workers told their numbers", 5)
        assert {metric(found, "lakeboard_events_accepted_total") for _ in range(10)} == {120.0}
        assert metric(found, "lakeboard_http_requests_total", route="/v1/events", status="202") == 40
        assert metric(found, "lakeboard_accept_seconds_count") == 40
        entries = metric(found, "lakeboard_log_entries_total", stream="plays")
        with log.client() as client:
            assert entries == sum(client.xlen(f"lb:log:plays:{n}") for n in range(8)) > 0


def test_a_worker_that_dies_is_replaced_and_none_outlives_its_parent(tmp_path: Path) -> None:
    with log_server(tmp_path / "log") as log, api(tmp_path / "home", log.address, workers=2) as found:
        first = found.worker_pids()
        kill(first[0])
        until(lambda: len(set(found.worker_pids()) - set(first)) == 1, "another worker is started")
        workers = found.worker_pids()

        assert found.process is not None
        found.process.kill()
        found.process.wait()

        for pid in workers:
            until(lambda pid=pid: has_ended(pid), "a worker ends with its parent", 10)


def test_sigterm_ends_it_after_requests_in_flight_are_answered(tmp_path: Path) -> None:
    with log_server(tmp_path / "log") as log, api(tmp_path / "home", log.address) as found:
        key = new_key(found)
        connection, finish = slow_request(found, key)
        assert found.process is not None
        found.process.terminate()
        until(lambda: refuses_connections(found), "it takes no new connections")

        connection.sendall(finish)
        answer = http.client.HTTPResponse(connection)
        answer.begin()

        assert (answer.status, json.loads(answer.read())["accepted"]) == (202, 1)
        connection.close()
        assert found.process.wait(timeout=20) == 0
        assert "slow" in {event[0] for event in appended(log.address)}
        assert [line["event"] for line in found.lines()][-1] == "worker_stopped"


def slow_request(found: Api, key: str) -> tuple[socket.socket, bytes]:
    """A request that is begun, and what is missing of it."""
    body = b'{"item_id":"a","event_id":"slow"}'
    head = f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", found.port), timeout=15)
    connection.sendall(head.encode() + body[:10])
    return connection, body[10:]


def refuses_connections(found: Api) -> bool:
    try:
        socket.create_connection(("127.0.0.1", found.port), timeout=1).close()
    except OSError:
        return True
    return False


def test_a_port_that_is_taken_and_a_log_that_is_not_there_are_said_in_one_sentence(tmp_path: Path) -> None:
    with log_server(tmp_path / "log") as log, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        in_use = Api(tmp_path / "home", log.address, port=port)
        no_log = Api(tmp_path / "home", "unix:///nowhere/log.sock")

        assert ended(in_use) == (1, f"lakeboard: cannot listen on 127.0.0.1:{port} (Address already in use): stop what "
                                    "is there, or take another --port\n")  # fmt: skip
        code, said = ended(no_log)
        assert (code, said.count("\n")) == (1, 1)
        assert said.startswith("lakeboard: the event log at unix:///nowhere/log.sock does not answer")


def test_an_address_of_others_must_be_said_in_the_command(tmp_path: Path) -> None:
    found = Api(tmp_path / "home", "unix:///nowhere/log.sock")

    code, said = ended(found, LAKEBOARD_HOST="0.0.0.0")  # noqa: S104  that it is not listened on is the point

    assert code == 2
    assert "say --host 0.0.0.0 as well" in said


def ended(found: Api, **environment: str) -> tuple[int, str]:
    result = subprocess.run(found._command(), env=found._environment() | environment, capture_output=True, text=True,
                            timeout=60, check=False)  # fmt: skip
    return result.returncode, result.stderr


# --- slow clients, browsers, closed reads: settings that a test may set ---


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Any:
    special = {"body_seconds": 1.0, "header_seconds": 1.0, "open_reads": False, "access_log": True, "connections": 8,
               "cors_origins": ["https://shop.example"]}  # fmt: skip
    home = tmp_path_factory.mktemp("strict")
    with log_server(tmp_path_factory.mktemp("log")) as log, api(home, log.address, special=special) as found:
        yield found


def test_a_body_that_comes_too_slowly_is_cut_off_and_others_are_served_meanwhile(strict: Api) -> None:
    key = new_key(strict)
    connection, _ = slow_request(strict, key)
    began = time.monotonic()
    assert post(strict, key, "meanwhile").status_code == 202

    answer = http.client.HTTPResponse(connection)
    answer.begin()
    problem = json.loads(answer.read())

    assert (answer.status, problem["code"]) == (408, "too_slow")
    assert 0.8 < time.monotonic() - began < 10
    assert connection.recv(1) == b""  # and the connection is closed


@pytest.mark.parametrize("sent", [b"", b"POST /v1/ev", b"POST /v1/events HTTP/1.1\r\nHost: x\r\nX-Slow:"])
def test_a_head_that_does_not_come_closes_the_connection(strict: Api, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=15) as connection:
        connection.sendall(sent)
        left = connection.recv(4096)

    assert left == b"" or b" 408 " in left.split(b"\r\n")[0]


def test_clients_that_say_nothing_do_not_keep_others_out_for_long(strict: Api) -> None:
    silent = [socket.create_connection(("127.0.0.1", strict.port), timeout=15) for _ in range(20)]
    try:
        assert post(strict, new_key(strict), "in-spite").status_code == 202
    finally:
        for connection in silent:
            connection.close()


def test_browsers_of_a_named_origin_are_let_in_and_no_others(strict: Api) -> None:
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    with strict.client() as client:
        before = client.options("/v1/events", headers=asked)
        refused = client.post("/v1/events", headers={"Origin": "https://shop.example"})
        stranger = client.get("/healthz", headers={"Origin": "https://else.example"})

    assert (before.status_code, before.headers["access-control-allow-origin"]) == (204, "https://shop.example")
    assert "authorization" in before.headers["access-control-allow-headers"]
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "https://shop.example")
    assert "access-control-allow-origin" not in stranger.headers


def test_a_cache_is_told_that_answers_differ_by_origin_also_where_none_was_said(strict: Api) -> None:
    """Else it would hand an answer that it got for a program to a browser, which misses its header."""
    with strict.client() as client:
        answers = [client.get("/healthz"), client.post("/v1/events"), client.get("/v1/top")]
        named = client.get("/healthz", headers={"Origin": "https://shop.example"})

    assert [answer.headers.get("vary") for answer in (*answers, named)] == ["origin"] * 4


def test_reads_stay_open_on_this_machine_when_they_are_closed_to_others(strict: Api) -> None:
    with strict.client() as client:
        assert client.get("/metrics").status_code == 200
        assert client.get("/docs").status_code == 200


def test_each_request_has_a_line_when_that_is_wanted(strict: Api) -> None:
    with strict.client() as client:
        client.get("/healthz", headers={"X-Request-Id": "a-line"})

    assert [(line["event"], line["status"]) for line in strict.lines() if line.get("request_id") == "a-line"] == [
        ("request", 200)
    ]


def test_many_at_once_are_each_answered_once_all_is_on_disk(strict: Api) -> None:
    key = new_key(strict)
    answers: list[int] = []

    def work(number: int) -> None:
        answers.extend(post(strict, key, f"many-{number}-{n}", rows=7).json()["accepted"] for n in range(10))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [7] * 60
    assert len([event for event in appended(strict.log_url) if event[0].startswith("many-")]) == 420


def new_key(found: Api) -> str:
    """A producer's key that the API knows already."""
    key = found.key(Role.PRODUCER)
    until(lambda: post(found, key, "warm-up").status_code != 401, "the key is known", 5)
    return key


def ready(found: Api) -> tuple[int, Any]:
    with found.client() as client:
        answer = client.get("/readyz")
    return answer.status_code, answer.json()["parts"]
