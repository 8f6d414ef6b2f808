from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ingest.importers import chunks, json_array, streams

if TYPE_CHECKING:
    from ingest.redis_log import RedisLog
    from tests.servers import LogServer


@pytest.fixture(params=[1, 7, 2 << 20], ids=lambda size: f"blocks of {size}")
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks so small that every row begins in one and ends in another."""
    for module in (streams, json_array, chunks):
        monkeypatch.setattr(module, "CHUNK_BYTES", request.param)
    return int(request.param)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator["LogServer"]:
    """A log server for the tests of a file."""
    from tests.servers import log_server  # noqa: PLC0415  fast tests need no client of a server

    with log_server(tmp_path_factory.mktemp("log")) as server:
        yield server


@pytest.fixture
def server(running: "LogServer") -> "LogServer":
    """The server, empty."""
    with running.client() as client:
        client.flushall()
    return running


@pytest.fixture
def log(server: "LogServer") -> Iterator["RedisLog"]:
    """A new log in it."""
    from ingest.redis_log import RedisLog  # noqa: PLC0415  as above

    with RedisLog.open(server.address) as opened:
        yield opened
