"""The log's disk or memory runs out: clean 503s before anything breaks, nothing lost, recovery without hands."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest

from tests.faults.sending import Client, Event
from tests.stacks import FAST_COMMITS, Stack, running_stack, until

pytestmark = pytest.mark.e2e

DISK = 64 << 20
LEAST_FREE = 16 << 20
SETTINGS = {**FAST_COMMITS, "LAKEBOARD_LOG_MIN_FREE_DISK": "16m"}
COMMAND = (sys.executable, "-m", "tests.faults.run_stack")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk takes root")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of 64 MiB; it is gone afterwards, whatever happened."""
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


class Filler:
    """Another program that takes the disk."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "filler"

    def leave(self, free: int) -> None:
        """Take all but so many bytes."""
        disk = os.statvfs(self._path.parent)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        try:
            os.posix_fallocate(descriptor, 0, disk.f_bavail * disk.f_frsize - free)
        finally:
            os.close(descriptor)

    def leave_nothing(self) -> None:
        """Take all, also what others gave back meanwhile."""
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            self._write_on()

    def _write_on(self) -> None:
        with self._path.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))

    def go(self) -> None:
        self._path.unlink()


def large_plays(start: int, count: int) -> list[Event]:
    """Plays of about 800 bytes."""
    return [
        {"event_id": f"{number}-{'e' * 240}", "item_id": f"{number % 50}-{'i' * 240}", "user_id": "u" * 250}
        for number in range(start, start + count)
    ]


def refused(stack: Stack, code: str) -> bool:
    """Whether a play is refused now, in the documented way."""
    status, body, headers = stack.post({"event_id": "probe", "item_id": "probe"})
    if status == 202:
        return False
    assert (status, body["code"]) == (503, code), body
    assert int(headers["retry-after"]) >= 1
    return True


def accepted(stack: Stack) -> bool:
    """Whether a play is accepted now; nothing else than a 503 may come instead."""
    try:
        status, body, _ = stack.post({"event_id": "probe", "item_id": "probe"})
    except OSError:  # the API's server is being started
        return False
    assert status in (202, 503), body
    return status == 202


def assert_nothing_lost(stack: Stack, client: Client) -> None:
    until(lambda: set(client.acknowledged) <= set(stack.ids_in_bronze()), "what was acknowledged is in bronze")


@needs_root
def test_a_disk_that_fills_refuses_first_and_accepts_again_when_there_is_room(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with small_disk(home / "log") as disk, running_stack(home, command=COMMAND, settings=SETTINGS) as stack:
        client, filler, server = Client(stack), Filler(disk), stack.part("log")["pid"]
        client.send([large_plays(0, 100)])

        filler.leave(LEAST_FREE // 2)
        until(lambda: refused(stack, "log_full"), "it refuses")
        status = stack.run("status")
        assert status.returncode == 1
        assert "the disk has 7 MiB free and needs 16" in status.stdout or "the disk has 8 MiB" in status.stdout
        filler.go()
        until(lambda: accepted(stack), "it accepts again")

        assert stack.part("log")["pid"] == server  # nothing broke
        assert_nothing_lost(stack, client)

        assert stack.stop() == 0
        filler.leave(LEAST_FREE // 8)
        stack.start()
        assert refused(stack, "log_full")
        filler.go()
        until(lambda: accepted(stack), "it accepts after a start on a nearly full disk")


@needs_root
def test_the_logs_own_files_are_written_anew_when_they_take_the_disk(tmp_path: Path) -> None:
    """The disk must keep twice the log free: 22 of 64 MiB of log are too much, though the lake has all of it."""
    home = tmp_path / "home"
    with small_disk(home / "log") as disk, running_stack(home, command=COMMAND, settings=SETTINGS) as stack:
        client, server = Client(stack), stack.part("log")["pid"]

        client.send([large_plays(1000 * number, 1000) for number in range(45)], threads=2)

        until(lambda: "the log refuses events" in stack.said, "it was full for a while")
        until(lambda: accepted(stack), "it accepts again")
        files = sum(path.stat().st_size for path in (disk / "appendonlydir").iterdir())
        assert files < 45_000 * 800 / 2
        assert stack.part("log")["pid"] == server
        assert_nothing_lost(stack, client)


@needs_root
def test_a_server_that_could_not_write_is_started_again_and_has_what_was_acknowledged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with small_disk(home / "log") as disk, running_stack(home, command=COMMAND, settings=SETTINGS) as stack:
        client, filler, stop = Client(stack), Filler(disk), Flag()
        sender = Thread(target=send_until, args=(client, stop))
        sender.start()
        try:
            until(lambda: client.acknowledged.total() > 500, "events are accepted")
            filler.leave_nothing()  # at once, while events are on their way: no look at the disk comes early enough
            until(lambda: "log ended" in stack.said or "log was ended" in stack.said, "the log's server ends")
            filler.go()
            before = client.acknowledged.total()
            until(lambda: client.acknowledged.total() > before + 500, "it accepts again", 60)
        finally:
            stop.set()
            sender.join()

        assert set(client.failures) <= {"503 log_full", "503 log_unavailable"}, client.failures
        assert_nothing_lost(stack, client)


def send_until(client: Client, stop: Flag) -> None:
    start = 0
    while not stop.is_set():
        client.send([large_plays(start, 50)], threads=1)
        start += 50


def test_a_full_memory_refuses_and_the_lake_writer_makes_room(tmp_path: Path) -> None:
    settings = {**SETTINGS, "LAKEBOARD_LOG_MAX_MEMORY": "16m"}
    with running_stack(tmp_path / "home", command=COMMAND, settings=settings) as stack:
        server, writer = stack.part("log")["pid"], stack.part("lake-writer")["pid"]
        acknowledged: list[str] = []
        os.kill(writer, signal.SIGSTOP)
        try:
            for start in range(0, 100_000, 500):
                plays = large_plays(start, 500)
                if stack.post(plays)[0] != 202:
                    break
                acknowledged += [play["event_id"] for play in plays]
            until(lambda: refused(stack, "log_full"), "it refuses")
        finally:
            os.kill(writer, signal.SIGCONT)

        until(lambda: accepted(stack), "it accepts again")

        assert stack.part("log")["pid"] == server
        assert 4_000 < len(acknowledged) < 40_000
        until(lambda: set(acknowledged) <= set(stack.ids_in_bronze()), "what was acknowledged is in bronze")
