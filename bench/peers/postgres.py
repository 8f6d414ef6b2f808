"""Debian's PostgreSQL in a temporary folder: its defaults, which sync every commit to disk; no port, only a socket."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # it ships no types (0.32)

USER = "bench"
DATABASE = "postgres"
INSTALL = "apt-get install postgresql"
_INSTALLED = Path("/usr/lib/postgresql")
_ACCOUNTS = ("postgres", "nobody")  # it refuses to run as root
_START_SECONDS = 30.0
_TABLE = """
CREATE TABLE plays (
  event_id text PRIMARY KEY, item_id text NOT NULL, region text NOT NULL, user_id text, event_time timestamptz,
  duration_ms bigint, count bigint NOT NULL, received_at timestamptz NOT NULL DEFAULT now())"""


def programs() -> Path | None:
    """Return the folder of the newest server's programs, None when there is none."""
    found = [path.parent for path in _INSTALLED.glob("*/bin/postgres")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


@contextmanager
def postgres(bin_folder: Path) -> Iterator[Path]:
    """Run a server with an empty table of plays; yield the folder of its socket."""
    account = _account()
    with tempfile.TemporaryDirectory(prefix="lakeboard-bench-") as name:
        folder = Path(name)
        if account is not None:
            shutil.chown(folder, account.pw_uid, account.pw_gid)
        data = folder / "data"
        # The files of initdb need no sync; what is committed later is synced as ever.
        init = [
            str(bin_folder / "initdb"),
            "-D",
            str(data),
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]
        _run(init, account).wait()
        run = [str(bin_folder / "postgres"), "-D", str(data), "-k", str(folder), "-c", "listen_addresses=",
               "-c", "fsync=on", "-c", "synchronous_commit=on"]  # fmt: skip
        server = _run(run, account)
        try:
            asyncio.run(_create_table(folder))
            yield folder
        finally:
            server.send_signal(signal.SIGINT)  # its "fast" way to stop
            server.wait()


def rows_held(folder: Path, prefix: str) -> int:
    """Return how many plays the table has whose ids begin so."""

    async def count() -> int:
        connection = await asyncpg.connect(host=str(folder), user=USER, database=DATABASE)
        try:
            return int(await connection.fetchval("SELECT count(*) FROM plays WHERE starts_with(event_id, $1)", prefix))
        finally:
            await connection.close()

    return asyncio.run(count())


async def _create_table(folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            connection = await asyncpg.connect(host=str(folder), user=USER, database=DATABASE)
            break
        except (OSError, asyncpg.CannotConnectNowError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)
    await connection.execute(_TABLE)
    await connection.close()


def _account() -> pwd.struct_passwd | None:
    """Return whom the server runs as when we are root, else None: then as ourselves."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in _ACCOUNTS if name in known)


def _run(command: list[str], account: pwd.struct_passwd | None) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    if account is None:
        return subprocess.Popen(command, stdout=quiet, stderr=quiet)
    return subprocess.Popen(
        command, stdout=quiet, stderr=quiet, cwd="/", user=account.pw_uid, group=account.pw_gid, extra_groups=[]
    )
