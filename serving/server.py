"""Runs the API: worker processes that serve one port, in the foreground, until told to stop."""

import os
import signal
import socket
from functools import partial
from typing import Any

from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import Server

from domain.errors import LakeboardError
from ingest.redis_log import RedisLog
from serving.limits import new_limits_file
from serving.logs import configure_logs, server_logs
from serving.parent import die_with_parent
from serving.read_limits import new_reads_file
from serving.settings import ApiSettings, use_metrics_folder

_HEAD_BYTES = 64 << 10  # the most a head, or a piece of a body, takes in memory
_MILLISECONDS = 1000


class PortTakenError(LakeboardError):
    """Another program listens on our port."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(host, port, reason)
        self.host = host
        self.port = port
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot listen on {self.host}:{self.port} ({self.reason}): stop what is there, or take another --port"


def serve(settings: ApiSettings) -> None:
    """Serve until SIGINT or SIGTERM; requests in flight are answered first.

    Raises:
        LogUnavailableError: no log server is there.
        UnsafeLogServerError: its settings would lose accepted events.
        PortTakenError: another program has the port.
    """
    RedisLog.open(settings.log_url, clock=settings.entry_clock).close()
    require_free(settings.host, settings.port)
    use_metrics_folder(settings.metrics_folder)
    _begin_anew(settings)
    server = Server(
        "serving.app",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        websockets=False,
        backlog=settings.backlog,
        backpressure=settings.connections,
        http1_settings=HTTP1Settings(
            header_read_timeout=int(settings.header_seconds * _MILLISECONDS), max_buffer_size=_HEAD_BYTES
        ),
        log_level=LogLevels.warning,
        log_dictconfig=server_logs(),
        respawn_failed_workers=True,
        workers_kill_timeout=settings.stop_seconds,
    )
    server.serve(target_loader=partial(_worker, settings, os.getpid()), wrap_loader=False)


def require_free(host: str, port: int) -> None:
    """Refuse a port that is taken: the workers share theirs, and would share it with a stranger without a word.

    Raises:
        PortTakenError: it is.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise PortTakenError(host, port, error.strerror or str(error)) from error


def _begin_anew(settings: ApiSettings) -> None:
    from serving.metrics import new_metrics_folder  # noqa: PLC0415  prometheus_client looks for its folder when loaded

    settings.run.mkdir(parents=True, exist_ok=True)
    new_metrics_folder(settings.metrics_folder)
    new_limits_file(settings.limits_file)
    new_reads_file(settings.reads_file)


def _worker(settings: ApiSettings, parent: int) -> Any:
    """Return the application, in a worker that has just begun.

    It is killed with its parent, not asked: one that is just starting may not hear it, and would keep the port. What
    was accepted is on disk. The handlers that the parent had are given up, as they would take the signal that stops a
    starting worker.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(parent)
    from serving.app import Application  # noqa: PLC0415  loads Litestar, which the parent does not need

    configure_logs()
    return Application(settings)
