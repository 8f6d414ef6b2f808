"""Whether a part answers: a PING to a server, a request to the API, a file that the lake writer keeps.

A probe is given the part's process id and returns None when the part is well, else what is wrong in a few words. None
takes longer than two seconds, since the supervisor does nothing else meanwhile.
"""

import http.client
import json
import socket
from collections.abc import Callable
from pathlib import Path

Probe = Callable[[int], str | None]

_TIMEOUT_SECONDS = 2.0
_OK = 200


def server_probe(path: Path) -> Probe:
    """Return the probe of a Redis or Valkey server on a Unix socket."""
    return lambda _: _ping(path)


def _ping(path: Path) -> str | None:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT_SECONDS)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            answer = connection.recv(200).decode(errors="replace").strip()
    except OSError as error:
        return f"does not answer ({error.strerror or type(error).__name__})"
    return None if answer == "+PONG" else answer.lstrip("-")


def is_listening(path: Path) -> bool:
    """Say whether a process accepts connections on a socket file; a file that a killed one left is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # it is there, and too busy to say so
        return True


def http_probe(host: str, port: int, path: str = "/healthz") -> Probe:
    """Return the probe of an HTTP service on this machine."""
    return lambda _: _get(host, port, path)


def _get(host: str, port: int, path: str) -> str | None:
    connection = http.client.HTTPConnection(reachable(host), port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"does not answer ({getattr(error, 'strerror', None) or type(error).__name__})"
    finally:
        connection.close()
    return None if status == _OK else f"{path} answers {status}"


def reachable(host: str) -> str:
    """Return the address under which this machine reaches a service that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared, not bound


def state_probe(path: Path) -> Probe:
    """Return the probe of the lake writer: its state must be of the process that runs now, and that it works."""
    return lambda pid: _working(path, pid)


def _working(path: Path, pid: int) -> str | None:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "has not written its state yet"
    except (OSError, ValueError) as error:
        return f"{path.name} cannot be read ({error})"
    if state.get("pid") != pid:
        return "has not written its state yet"
    return None if state.get("state") == "working" else f"is {state.get('state')}: {state.get('problem')}"
