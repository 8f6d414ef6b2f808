"""What must outlive a power cut: files that are replaced whole, and commits of a Delta table.

deltalake leaves its commits to the operating system. What was trimmed from the log is in the lake only, so it must
outlive a power cut before the log forgets it.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

_ABOVE_TABLE = 2  # the room's folder and the lake's: a new table is an entry of theirs


def make_durable(table_path: Path, versions: Iterable[int], *, sync: Callable[[int], None] = os.fsync) -> None:
    """Return when the files that these commits added are on disk, then the commits themselves, then their folders.

    Args:
        table_path: Folder of the table.
        versions: Commits whose JSON is still in the log.
        sync: Forces an open file or folder to the disk.
    """
    log = table_path / "_delta_log"
    wanted = list(versions)
    data = {path for version in wanted for path in _added(table_path, log / _commit_name(version))}
    marks = {path for version in wanted for path in _commit_files(log, version)}
    folders = {path.parent for path in data} | {log, table_path, *table_path.parents[:_ABOVE_TABLE]}
    for path in (*sorted(data), *sorted(marks), *sorted(folders)):
        _sync(path, sync)


def replace_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Put content into a file's place in one step; it is on disk when this returns, and never half written.

    Args:
        path: The file; its folder is there.
        content: All of it.
        mode: Who may read it, at every moment, less the umask.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync(path.parent, os.fsync)  # else a power cut could bring the old file back


def commits_since(table_path: Path, version: int, writer: str) -> range:
    """Return the versions from the last commit with a transaction of a writer up to a version.

    Empty where none of the commits in the log has one.

    Args:
        table_path: Folder of the table.
        version: The newest to look at.
        writer: How the transaction's name begins.
    """
    for at in range(version, -1, -1):
        path = table_path / "_delta_log" / _commit_name(at)
        if not path.exists():
            break
        if any(action["txn"]["appId"].startswith(writer) for action in _actions(path) if "txn" in action):
            return range(at, version + 1)
    return range(0)


def _added(table_path: Path, commit: Path) -> Iterator[Path]:
    for action in _actions(commit):
        for kind in ("add", "cdc"):
            if kind in action:
                path = table_path / unquote(action[kind]["path"])
                if path.exists():  # else a later compaction and vacuum took it
                    yield path


def _commit_files(log: Path, version: int) -> Iterator[Path]:
    yield log / _commit_name(version)
    checkpoint = log / f"{version:020d}.checkpoint.parquet"
    if checkpoint.exists():
        yield from (checkpoint, log / "_last_checkpoint")


def _actions(commit: Path) -> list[dict[str, dict[str, str]]]:
    return [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]


def _commit_name(version: int) -> str:
    return f"{version:020d}.json"


def _sync(path: Path, sync: Callable[[int], None]) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
