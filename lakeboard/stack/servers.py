"""The two Redis or Valkey servers of the stack: how each is started, and where its socket is.

They listen on Unix sockets in a folder of their owner alone: no port to be taken, nothing for others to connect to.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from domain.errors import LakeboardError
from ingest.log_server import VIEWS_LISTPACKS

_LONGEST_SOCKET_PATH = 100  # the kernel takes 107 bytes; a server adds a suffix while it starts
_BINARY_FILE = "server_binary"  # what set-up chose, beside the environment
_NAMES = ("valkey-server", "redis-server")


class NoServerBinaryError(LakeboardError):
    """There is no Redis or Valkey server on this machine."""

    def __str__(self) -> str:
        return "no valkey-server or redis-server was found on PATH or in the environment: run `make setup`"


def server_binary(environment: Path, search_path: str) -> str:
    """Return the server to start: the one on PATH, else the one that set-up chose.

    Args:
        environment: Folder of the virtual environment.
        search_path: PATH.

    Raises:
        NoServerBinaryError: neither is there.
    """
    for name in _NAMES:
        if found := shutil.which(name, path=search_path):
            return found
    chosen = environment / _BINARY_FILE
    if chosen.exists() and os.access(binary := chosen.read_text(encoding="utf-8").strip(), os.X_OK):
        return binary
    raise NoServerBinaryError


def socket_path(run: Path, name: str) -> Path:
    """Return the socket of a server: in the run folder, or for a very long path in the machine's temporary folder.

    Args:
        run: Folder for sockets and process ids of one home.
        name: Which server.
    """
    path = run.absolute() / f"{name}.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(run.absolute())).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"lakeboard-{os.getuid()}-{digest}" / path.name


def address(socket: Path) -> str:
    """Return a socket as the address that clients take."""
    return f"unix://{socket}"


def log_server_command(binary: str, *, folder: Path, socket: Path, max_bytes: int) -> list[str]:
    """Return the command of the log's server: every write on disk before it is answered, nothing ever evicted.

    Args:
        binary: Redis 7.0 or newer, or Valkey.
        folder: Where its append-only files go.
        socket: Where it listens.
        max_bytes: Its memory limit.
    """
    durable = {
        "appendonly": "yes",
        "appendfsync": "always",
        "no-appendfsync-on-rewrite": "no",
        "aof-use-rdb-preamble": "yes",
        "aof-load-truncated": "yes",  # a torn last write was never acknowledged
        "auto-aof-rewrite-percentage": "100",
        "auto-aof-rewrite-min-size": "64mb",
        "save": "",  # the append-only file is the whole truth
        "maxmemory": str(max_bytes),
        "maxmemory-policy": "noeviction",
    }
    return _command(binary, folder=folder, socket=socket, settings=durable)


def views_server_command(binary: str, *, folder: Path, socket: Path, max_bytes: int) -> list[str]:
    """Return the command of the views' server: a cache that is rebuilt from the lake, so nothing of it goes to disk.

    It never evicts: a view that vanished without a word would be a wrong answer. Pages of boards are sorted sets of
    512 members and hashes of 128 fields which must stay listpacks, the compact form in which they are loaded.

    Args:
        binary: Redis 7.0 or newer, or Valkey.
        folder: Its working folder.
        socket: Where it listens.
        max_bytes: Its memory limit.
    """
    rebuildable = {
        "appendonly": "no",
        "save": "",
        "maxmemory": str(max_bytes),
        "maxmemory-policy": "noeviction",
        **{name: str(least) for name, least in VIEWS_LISTPACKS.items()},
    }
    return _command(binary, folder=folder, socket=socket, settings=rebuildable)


def _command(binary: str, *, folder: Path, socket: Path, settings: dict[str, str]) -> list[str]:
    common = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder.absolute()),
        "daemonize": "no",
        "enable-debug-command": "no",
    }
    return [binary, *(part for name, value in (common | settings).items() for part in (f"--{name}", value))]
