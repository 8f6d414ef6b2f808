"""Viewers of server-sent events."""

import json
import threading
from typing import Any

import httpx

from tests.serving.api_server import Api


class Stream:
    """One viewer: what came, event by event."""

    def __init__(self, api: Api, key: str, path: str, **headers: str) -> None:
        self.events: list[dict[str, str]] = []
        self.comments = 0
        self.ended = False
        self.broken = False
        self.status = 0
        self._closing = False
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self._client = api.client(key)
        self._path = path
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "Stream":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True  # noticed with the next line, which a sign of life brings
        self._thread.join(10)
        assert not self._thread.is_alive()

    def data(self, at: int = -1) -> Any:
        return json.loads(self.events[at]["data"])

    def _read(self) -> None:
        with self._client, self._client.stream("GET", self._path, headers=self._headers, timeout=30) as response:
            self.status = response.status_code
            event: dict[str, str] = {}
            try:
                for line in response.iter_lines():
                    if self._closing:
                        return
                    self._take(line, event)
            except httpx.TransportError:
                self.broken = True
        self.ended = True

    def _take(self, line: str, event: dict[str, str]) -> None:
        if line.startswith(":"):
            self.comments += 1
        elif line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "data" in event:
            self.events.append(dict(event))
            event.clear()
