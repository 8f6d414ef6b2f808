"""The log client's errors as ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from domain.log import LogFullError, LogUnavailableError


@contextmanager
def translated(address: str) -> Iterator[None]:
    """Turn the client's errors into ours.

    Raises:
        LogFullError: the server is at its memory limit.
        LogUnavailableError: anything else that it, or the way to it, said.
    """
    try:
        yield
    except redis.exceptions.OutOfMemoryError as error:
        reason = "its server is at its memory limit"
        raise LogFullError(reason) from error
    except redis.exceptions.RedisError as error:
        raise LogUnavailableError(address, str(error) or type(error).__name__) from error
