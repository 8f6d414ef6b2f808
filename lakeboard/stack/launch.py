"""Everything `lakeboard up` does: looks whether it may start, makes folders and keys, then supervises."""

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from domain.errors import LakeboardError
from domain.log import UnsafeLogServerError
from ingest.server_checks import log_server_problems
from lakeboard.replay import replay_text
from lakeboard.settings import Settings
from lakeboard.stack.health import is_listening
from lakeboard.stack.part import Backoff, Part
from lakeboard.stack.parts import LOG, VIEWS, own_servers, plans, relief_of
from lakeboard.stack.servers import socket_path
from lakeboard.stack.state import ServerLeftError, StackReport, only_supervisor, report_path, server_lock
from lakeboard.stack.supervisor import Supervisor
from serving.keys import ensure_dev_key

_RELIEF_EVERY_SECONDS = 5.0
_OWNER_ONLY = 0o700
_LAST_PORT = 65535
_LEFT_SECONDS = 10.0
_POLL_SECONDS = 0.05
BACKOFF = Backoff()


class PortTakenError(LakeboardError):
    """The API cannot listen where it should."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(host, port, reason)
        self.host = host
        self.port = port
        self.reason = reason

    def __str__(self) -> str:
        other = self.port + 1 if self.port < _LAST_PORT else self.port - 1
        return (
            f"port {self.port} on {self.host} cannot be used ({self.reason}): stop the program that has it, or choose "
            f"another port with `lakeboard up --port {other}`; nothing was started"
        )


class UnsafeFolderError(LakeboardError):
    """A folder for sockets belongs to somebody else, who could put other servers there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return f"the folder {self.folder} is another user's: remove it, or set LAKEBOARD_HOME to a shorter path"


def launch(
    settings: Settings, *, say: Callable[[str], None], on_all_up: Callable[[], None], backoff: Backoff = BACKOFF
) -> None:
    """Run the stack of a home until a signal ends it; then nothing of it runs any more.

    Args:
        settings: With an absolute home.
        say: Told in one line what happens.
        on_all_up: Called once, when everything is up.
        backoff: How long a part that ended waits.

    Raises:
        StackRunningError: it runs already.
        PortTakenError: the API's port cannot be used.
        ServerLeftError: a server of this home runs without a supervisor.
        LogUnavailableError, UnsafeLogServerError: a log server that is not ours is away, or would lose events.
    """
    make_folders(settings)
    with ExitStack() as held:
        held.enter_context(only_supervisor(settings.home, settings.run_folder))
        was_killed = report_path(settings.run_folder).exists()  # its workers may need a moment to notice
        require_port(settings.host, settings.port, wait_seconds=_LEFT_SECONDS if was_killed else 0)
        if settings.log_url and (problems := log_server_problems(settings.log_url)):
            raise UnsafeLogServerError(settings.log_url, problems)
        locks = {name: held.enter_context(_own_server(settings, name)) for name in own_servers(settings)}
        ensure_dev_key(settings.home)
        held.callback(report_path(settings.run_folder).unlink, missing_ok=True)
        keeper = LogKeeper(relief_of(settings), say)
        parts = _parts(settings, locks, say=say, keeper=keeper, backoff=backoff)
        Supervisor(
            parts,
            run=settings.run_folder,
            report=_report(settings),
            clock=settings.machine_clock,
            on_all_up=on_all_up,
            each_turn=keeper.look_sometimes,
        ).run()


class LogKeeper:
    """Makes room in the log while it refuses events, and tells when that begins and ends.

    Args:
        relief: Makes room; returns why the log refuses events, None when it does not.
        say: Told in one line what happens.
    """

    def __init__(self, relief: Callable[[], str | None], say: Callable[[str], None]) -> None:
        self._relief = relief
        self._say = say
        self._refusal = ""
        self._next = 0.0

    def look(self) -> None:
        """Look now."""
        try:
            refusal = self._relief() or ""
        except LakeboardError as error:  # the part's own probe and back-off deal with a server that is gone
            refusal = str(error)
        if bool(refusal) != bool(self._refusal):
            self._say(f"the log refuses events: {refusal}" if refusal else "the log accepts events again")
        self._refusal = refusal
        self._next = time.monotonic() + _RELIEF_EVERY_SECONDS

    def look_sometimes(self, well: set[str]) -> None:
        """Look every few seconds while the log's server is up."""
        if LOG in well and time.monotonic() >= self._next:
            self.look()


def make_folders(settings: Settings) -> None:
    """Make the folders of a stack; those with sockets and events are their owner's alone.

    Raises:
        UnsafeFolderError: one of them is another user's.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    own = [socket_path(settings.run_folder, name).parent for name in (LOG, VIEWS)]
    for folder in (settings.run_folder, settings.logs_folder, settings.home / LOG, settings.home / VIEWS, *own):
        folder.mkdir(mode=_OWNER_ONLY, exist_ok=True)
        if folder.stat().st_uid != os.getuid() or folder.is_symlink():
            raise UnsafeFolderError(folder)
        folder.chmod(_OWNER_ONLY)


def require_port(host: str, port: int, *, wait_seconds: float = 0) -> None:
    """Look whether the API can listen.

    Args:
        host: Where.
        port: The port.
        wait_seconds: How long it may be taken still.

    Raises:
        PortTakenError: it cannot.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            _listen(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise PortTakenError(host, port, str(error.strerror)) from error
            if time.monotonic() >= deadline:
                raise PortTakenError(host, port, "another program listens there") from error
            time.sleep(_POLL_SECONDS)
        else:
            return


def _listen(host: str, port: int) -> None:
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(1)


@contextmanager
def _own_server(settings: Settings, name: str) -> Iterator[int]:
    """Hold the lock of a server that the stack is about to run, with nobody on its socket."""
    with server_lock(settings.run_folder, name) as descriptor:
        path = socket_path(settings.run_folder, name)
        if is_listening(path):
            raise ServerLeftError(name, path)
        yield descriptor


def _parts(
    settings: Settings, locks: Mapping[str, int], *, say: Callable[[str], None], keeper: LogKeeper, backoff: Backoff
) -> Sequence[Part]:
    environment = settings.environment_of_parts()
    return [
        Part(
            plan=plan,
            log=settings.logs_folder / f"{plan.name}.log",
            environment=environment,
            say=say,
            backoff=backoff,
        )
        for plan in plans(settings, locks=locks, on_log_ready=keeper.look)
    ]


def _report(settings: Settings) -> StackReport:
    return StackReport(
        pid=os.getpid(),
        started=settings.machine_clock(),
        host=settings.host,
        port=settings.port,
        replay="" if settings.replay is None else replay_text(settings.replay),
        parts=[],
    )
