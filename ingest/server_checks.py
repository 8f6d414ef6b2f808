"""Looks at the settings of the two servers without making anything in them."""

from collections.abc import Callable, Mapping

import redis

from ingest.log_creation import texts
from ingest.log_errors import translated
from ingest.log_server import unfit_for_views, unsafe_settings

_TIMEOUTS = {"socket_timeout": 5.0, "socket_connect_timeout": 5.0}


def log_server_problems(address: str) -> list[str]:
    """Return what would lose accepted events in the log's server, one phrase each; empty when it is safe.

    Raises:
        LogUnavailableError: no server there.
    """
    return _examined(address, unsafe_settings)


def views_server_problems(address: str) -> list[str]:
    """Return what makes the views' server unfit, one phrase each; empty when it is fit.

    Raises:
        LogUnavailableError: no server there.
    """
    return _examined(address, unfit_for_views)


def _examined(address: str, judge: Callable[[Mapping[str, object], Mapping[str, str]], list[str]]) -> list[str]:
    with translated(address), redis.Redis.from_url(address, **_TIMEOUTS) as client:
        return judge(client.info(), texts(client.config_get("*")))
