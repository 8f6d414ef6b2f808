"""One committing process per table: an advisory lock file that dies with its holder."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from domain.errors import LakeboardError

POLL_SECONDS = 0.05


class TableLockedError(LakeboardError):
    """Another process has held a lock for longer than we were told to wait."""

    def __init__(self, name: str, holder: str, waited_seconds: float) -> None:
        super().__init__(name, holder, waited_seconds)
        self.name = name
        self.holder = holder
        self.waited_seconds = waited_seconds

    def __str__(self) -> str:
        return (
            f"{self.name} is being written by {self.holder or 'another process'} "
            f"(waited {self.waited_seconds:.0f} s): let it finish, or stop it, and run again"
        )


@contextmanager
def locked(
    lake_root: Path, *names: str, wait_seconds: float = 3600.0, on_wait: Callable[[str, str], None] | None = None
) -> Iterator[None]:
    """Hold the locks of these tables, taken in sorted order so that two holders never wait for each other.

    The lock is `flock` on a file below `_locks`, so the kernel frees it when the holder is killed; the file's text
    (who holds it) is only for people. Local file systems only: on an object store the store's put-if-absent decides.

    Args:
        lake_root: Folder of the lake.
        names: Tables, or other things of the lake that only one process may do at a time.
        wait_seconds: How long to wait for each.
        on_wait: Told once (name, holder) when a lock is not free at once.

    Raises:
        TableLockedError: a lock stayed taken.
    """
    with ExitStack() as held:
        for name in sorted(names):
            held.enter_context(_one(lake_root, name, wait_seconds, on_wait))
        yield


@contextmanager
def locked_for_reading(
    lake_root: Path, name: str, *, wait_seconds: float = 3600.0, on_wait: Callable[[str, str], None] | None = None
) -> Iterator[None]:
    """Keep writers of a thing away while it is read, without writing anything; other readers may come in.

    What was never locked has no lock file, and is not locked now either: nobody has written it yet.

    Raises:
        TableLockedError: a writer held it for longer than we were told to wait.
    """
    try:
        descriptor = os.open(_path(lake_root, name), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        _take(descriptor, name, wait_seconds, on_wait, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _one(lake_root: Path, name: str, wait_seconds: float, on_wait: Callable[[str, str], None] | None) -> Iterator[None]:
    path = _path(lake_root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take(descriptor, name, wait_seconds, on_wait, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)  # frees the lock


def _path(lake_root: Path, name: str) -> Path:
    return lake_root / "_locks" / f"{name.replace('/', '.')}.lock"


def _take(
    descriptor: int, name: str, wait_seconds: float, on_wait: Callable[[str, str], None] | None, kind: int
) -> None:
    deadline = time.monotonic() + wait_seconds
    told = False
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace")
            if on_wait is not None and not told:
                on_wait(name, holder)
                told = True
            if time.monotonic() >= deadline:
                raise TableLockedError(name, holder, wait_seconds) from None
            time.sleep(POLL_SECONDS)
        else:
            return
