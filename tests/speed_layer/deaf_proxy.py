"""A way to a server that once loses the answer to a script which did its work."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

_BYTES = 1 << 20


class DeafProxy:
    """Passes everything on, but for one answer: what `deaf_to` names is done, and its connection ends instead.

    Attributes:
        address: Where clients find it; the server is at a `unix://` path.
        lost: Answers that were lost.
    """

    def __init__(self, server_address: str) -> None:
        self._socket = server_address.removeprefix("unix://")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"redis://127.0.0.1:{self._listening.getsockname()[1]}"
        self._deaf_to = b""
        self.lost = 0
        Thread(target=self._listen, daemon=True).start()

    def deaf_to(self, script_sha: str) -> None:
        """Lose the next answer to this script that says 1."""
        self._deaf_to = script_sha.encode()

    def close(self) -> None:
        self._listening.close()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # it was closed
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._socket)
            asked = Event()
            Thread(target=self._pass_on, args=(client, server, asked), daemon=True).start()
            Thread(target=self._answer, args=(server, client, asked), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket, asked: Event) -> None:
        with server:
            while body := _received(client):
                if self._deaf_to and self._deaf_to in body:
                    asked.set()
                server.sendall(body)
            server.shutdown(socket.SHUT_RDWR)

    def _answer(self, server: socket.socket, client: socket.socket, asked: Event) -> None:
        with client:
            while body := _received(server):
                if asked.is_set() and body == b":1\r\n":
                    self._deaf_to = b""
                    self.lost += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                asked.clear()
                client.sendall(body)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_BYTES)
    except OSError:
        return b""  # the other side is gone


@contextmanager
def deaf_proxy(server_address: str) -> Iterator[DeafProxy]:
    proxy = DeafProxy(server_address)
    try:
        yield proxy
    finally:
        proxy.close()
