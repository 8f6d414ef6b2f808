"""The stack's own servers for real: what survives a damaged file, what makes room, which settings are refused."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from domain.log import BEGINNING, LogUnavailableError, Partition, Stream, UnsafeLogServerError
from ingest.log_relief import relieve
from ingest.redis_log import RedisLog
from ingest.server_checks import log_server_problems, views_server_problems
from lakeboard.checks import State
from lakeboard.checks_of_servers import servers
from lakeboard.settings import Settings
from lakeboard.stack.health import server_probe
from lakeboard.stack.launch import launch
from lakeboard.stack.part import Backoff, Part, PartPlan, PartState
from lakeboard.stack.servers import address, log_server_command, server_binary, socket_path, views_server_command
from tests.servers import LogServer, log_server
from tests.stacks import free_port

pytestmark = pytest.mark.redis

PLAYS_0 = Partition(Stream.PLAYS, 0)
NEVER_ENOUGH = 1 << 60  # bytes that no disk has free


@contextmanager
def views_server(folder: Path, *extra: str) -> Iterator[str]:
    """Run a views server; give its address."""
    folder.mkdir(parents=True)
    socket = socket_path(folder, "views")
    command = views_server_command(
        server_binary(Path(sys.prefix), ""), folder=folder, socket=socket, max_bytes=64 << 20
    )
    process = subprocess.Popen([*command, *extra], stdout=subprocess.DEVNULL)
    try:
        wait_for(socket)
        yield address(socket)
    finally:
        process.kill()
        process.wait()


def wait_for(socket: Path) -> None:
    probe, deadline = server_probe(socket), time.monotonic() + 20
    while probe(0) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def files_of(server: LogServer) -> int:
    return sum(path.stat().st_size for path in (server.folder / "appendonlydir").iterdir())


def newest_increment(server: LogServer) -> Path:
    return max((server.folder / "appendonlydir").glob("*.incr.aof"))


# --- making room ---


def test_a_log_with_room_is_left_alone(tmp_path: Path) -> None:
    with log_server(tmp_path) as server, RedisLog.open(server.address) as log:
        log.append([(PLAYS_0, b"x")])

        relief = relieve(server.address, folder=tmp_path, min_free_bytes=0)

        assert (relief.refusal, relief.rewriting) == (None, False)
        assert log.lengths(Stream.PLAYS)[PLAYS_0] == 1


def test_a_log_that_refuses_drops_what_no_reader_needs_and_writes_its_file_anew(tmp_path: Path) -> None:
    with log_server(tmp_path) as server, RedisLog.open(server.address) as log:
        ids = [log.append([(PLAYS_0, bytes(100_000))])[0] for _ in range(100)]
        log.commit_offsets("lake_writer", {PLAYS_0: ids[97]})
        before = files_of(server)

        relief = relieve(server.address, folder=tmp_path, min_free_bytes=NEVER_ENOUGH)

        assert relief.rewriting
        assert relief.refusal is not None
        assert log.lengths(Stream.PLAYS)[PLAYS_0] == 2
        deadline = time.monotonic() + 20
        while files_of(server) > before / 20:
            assert time.monotonic() < deadline, "its file was not written anew"
            time.sleep(0.05)
        again = relieve(server.address, folder=tmp_path, min_free_bytes=NEVER_ENOUGH)
        assert not again.rewriting  # nothing more to gain


def test_what_a_reader_needs_is_not_dropped_however_full_the_log_is(tmp_path: Path) -> None:
    with log_server(tmp_path) as server, RedisLog.open(server.address) as log:
        log.append([(PLAYS_0, b"x")])
        log.commit_offsets("lake_writer", {PLAYS_0: BEGINNING})

        relieve(server.address, folder=tmp_path, min_free_bytes=NEVER_ENOUGH)

        assert log.lengths(Stream.PLAYS)[PLAYS_0] == 1


# --- damaged files ---


def filled(server: LogServer) -> None:
    with RedisLog.open(server.address) as log:
        for number in range(10):
            log.append([(PLAYS_0, f"{number}".encode() * 200)])
    server.kill()


def test_a_torn_last_write_is_dropped_and_all_before_it_is_there(tmp_path: Path) -> None:
    with log_server(tmp_path) as server:
        filled(server)
        file = newest_increment(server)
        file.write_bytes(file.read_bytes()[:-50])

        server.start()

        with RedisLog.open(server.address) as log:
            bodies = [entry.body[:1] for entry in log.read(PLAYS_0, after=BEGINNING, limit=100).entries]
        assert bodies == [f"{number}".encode() for number in range(9)]


def test_a_file_damaged_in_its_middle_is_said_and_not_cut(tmp_path: Path) -> None:
    with log_server(tmp_path) as server:
        filled(server)
        file = newest_increment(server)
        content = bytearray(file.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 400] = b"#" * 400
        file.write_bytes(content)
        said: list[str] = []
        binary = server_binary(Path(sys.prefix), "")
        command = log_server_command(binary, folder=tmp_path, socket=server.socket, max_bytes=64 << 20)
        part = Part(
            plan=PartPlan(name="log", command=command, probe=server_probe(server.socket)),
            log=tmp_path / "log.log",
            environment={},
            say=said.append,
            backoff=Backoff(first=600, longest=600),
        )

        deadline = time.monotonic() + 20
        while not said and time.monotonic() < deadline:
            part.step(set())
            time.sleep(0.01)
        part.kill()

        assert part.state is PartState.WAITING
        assert "log ended with code 1" in said[0]
        assert "Bad file format reading the append only file" in said[0]
        assert file.read_bytes() == content


# --- settings of servers ---


def test_the_servers_as_the_stack_starts_them_are_safe_and_fit(tmp_path: Path) -> None:
    with log_server(tmp_path / "log") as server:
        assert log_server_problems(server.address) == []
        with RedisLog.open(server.address) as log, redis.Redis.from_url(server.address) as client:
            assert client.hget("lb:log", "id") == log.log_id.encode()
    with views_server(tmp_path / "views") as where:
        assert views_server_problems(where) == []
        assert log_server_problems(where)[:2] == [
            "appendonly is no, must be yes (entries must be on disk)",
            "appendfsync is everysec, must be always (an entry is acknowledged once it is on disk)",
        ]


def test_looking_at_a_server_makes_no_log_in_it(tmp_path: Path) -> None:
    with log_server(tmp_path) as server, redis.Redis.from_url(server.address) as client:
        log_server_problems(server.address)
        assert client.dbsize() == 0
    with pytest.raises(LogUnavailableError):
        log_server_problems(server.address)


def test_the_doctor_says_what_is_unsafe_at_a_server_that_runs(tmp_path: Path) -> None:
    with (
        log_server(tmp_path / "log", extra=("--appendfsync", "everysec")) as server,
        views_server(tmp_path / "views", "--zset-max-listpack-entries", "128") as views,
    ):
        found = list(servers(Settings(home=tmp_path, log_url=server.address, views_url=views)))

    assert [(check.name, check.state) for check in found] == [
        ("log server", State.PROBLEM),
        ("views server", State.PROBLEM),
    ]
    assert found[0].found.startswith("appendfsync is everysec, must be always")
    assert found[1].found.startswith("zset-max-listpack-entries is 128, must be at least 1024")


def test_a_stack_is_not_started_on_a_log_server_that_would_lose_events(tmp_path: Path) -> None:
    said: list[str] = []
    home = tmp_path / "home"
    with log_server(tmp_path / "log", extra=("--appendfsync", "everysec")) as server:
        settings = Settings(home=home, port=free_port(), log_url=server.address)
        with pytest.raises(UnsafeLogServerError, match="appendfsync is everysec"):
            launch(settings, say=said.append, on_all_up=lambda: None)
    with pytest.raises(LogUnavailableError):
        launch(settings, say=said.append, on_all_up=lambda: None)

    assert said == []
    assert not list((home / "logs").iterdir())


def test_the_doctor_finds_no_fault_with_servers_that_do_not_run_unless_they_are_set(tmp_path: Path) -> None:
    own = list(servers(Settings(home=tmp_path)))
    away = list(servers(Settings(home=tmp_path, log_url=f"unix://{tmp_path}/none.sock")))

    assert [check.state for check in own] == [State.OK, State.OK]
    assert away[0].state is State.PROBLEM
    assert "unset log_url" in away[0].step
