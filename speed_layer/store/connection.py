"""The connection to the views server, and its errors as ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from domain.windows import EPOCH, milliseconds
from speed_layer.store.leases import ViewsUnavailableError

__all__ = ["Views", "ViewsUnavailableError", "connect", "octets"]

_TIMEOUT_SECONDS = 10.0


class Views:
    """A connection to the views server. Close it when done, or use it as a context.

    Args:
        address: `redis://host:port`, `rediss://` or `unix:///path`.
        timeout_seconds: How long a call may take.

    Attributes:
        client: Its client; calls go inside `translated`.
        address: Of the server.
    """

    def __init__(self, address: str, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self.address = address
        self.client = redis.Redis.from_url(
            address,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            protocol=3,
            # At once and only once: a connection that died while nobody used it. Waiting is the caller's business.
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.exceptions.ConnectionError,)),
        )

    def __enter__(self) -> "Views":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the client's errors into ours.

        Raises:
            ViewsUnavailableError: the server, or the way to it, said anything else than an answer.
        """
        try:
            yield
        except redis.exceptions.RedisError as error:
            raise ViewsUnavailableError(self.address, str(error) or type(error).__name__) from error

    def free_bytes(self) -> int | None:
        """Return how much more the server may hold; None when nothing limits it."""
        with self.translated():
            found = self.client.info("memory")
        most, used = int(found["maxmemory"]), int(found["used_memory"])
        return max(0, most - used) if most else None

    def now_ms(self) -> int:
        """Return the server's clock, milliseconds since 1970 UTC."""
        with self.translated():
            seconds, microseconds = self.client.time()
        moment: datetime = EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
        return milliseconds(moment)


def octets(answer: object) -> bytes:
    """Return an answer as what it is: the client decodes nothing, though its types allow for it."""
    return cast(bytes, answer)


def connect(address: str, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> Views:
    """Return a connection to the views server, once it has answered.

    Args:
        address: `redis://host:port`, `rediss://` or `unix:///path`.
        timeout_seconds: How long a call may take.

    Raises:
        ViewsUnavailableError: it does not answer.
    """
    views = Views(address, timeout_seconds=timeout_seconds)
    try:
        views.now_ms()
    except ViewsUnavailableError:
        views.close()
        raise
    return views
