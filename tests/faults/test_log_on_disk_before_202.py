"""A kill cannot show a missing sync, since the page cache survives it; the order of system calls can."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.traces import accepted_without_sync, answers_of, append_only_file, traced
from tests.servers import log_server
from tests.stacks import running_stack

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt-get install strace)"),
]

SINGLE = 20
TOGETHER = 60


def test_each_202_comes_after_the_sync_of_the_log(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with running_stack(tmp_path / "home", settings={"LAKEBOARD_COMMIT_SECONDS": "600"}) as stack:
        server = stack.part("log")["pid"]
        file = append_only_file(server)

        def post(number: int) -> int:
            return stack.post({"event_id": f"e{number}", "item_id": f"i{number % 9}"})[0]

        post(-1)  # what is opened once is opened
        with traced([server, *stack.workers()], trace):
            assert [post(number) for number in range(SINGLE)] == [202] * SINGLE
        one_by_one, accepted = answers_of(trace, server=server, file=file), accepted_without_sync(trace, file=file)
        with traced([server], trace), ThreadPoolExecutor(8) as pool:
            assert list(pool.map(post, range(SINGLE, SINGLE + TOGETHER))) == [202] * TOGETHER
        together = answers_of(trace, server=server, file=file)

    assert accepted == (SINGLE, 0)
    assert (one_by_one.synced, one_by_one.early) == (SINGLE, 0)
    assert together.early == 0
    assert 1 <= together.synced <= TOGETHER


@pytest.mark.parametrize(("policy", "is_safe"), [("always", True), ("everysec", False)])
def test_the_same_look_finds_a_server_that_answers_before_it_syncs(tmp_path: Path, policy: str, is_safe: bool) -> None:
    trace = tmp_path / "trace"
    with log_server(tmp_path / "log", extra=("--appendfsync", policy)) as server, server.client() as client:
        assert server.process is not None
        pid = server.process.pid
        client.xadd("s", {"b": "first"})

        with traced([pid], trace):
            for _ in range(SINGLE):
                client.xadd("s", {"b": "x"})

        answers = answers_of(trace, server=pid, file=append_only_file(pid))

    assert answers.synced + answers.early == SINGLE
    assert (answers.early == 0) is is_safe
