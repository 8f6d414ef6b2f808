"""One log server and one views server for all tests of live counting; empty before each."""

from collections.abc import Iterator

import pytest

from ingest.redis_log import RedisLog
from speed_layer.store.connection import Views, connect
from speed_layer.store.state import StateStore
from tests.servers import LogServer, log_server
from tests.speed_layer.consuming import PARTITIONS
from tests.speed_layer.storing import FOREVER_MS
from tests.views_server import ViewsServer, views_server


@pytest.fixture(scope="session")
def log_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogServer]:
    with log_server(tmp_path_factory.mktemp("log")) as server:
        yield server


@pytest.fixture(scope="session")
def views_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewsServer]:
    with views_server(tmp_path_factory.mktemp("views")) as server:
        yield server


@pytest.fixture
def server(log_of_all: LogServer) -> LogServer:
    with log_of_all.client() as client:
        client.flushall()
    return log_of_all


@pytest.fixture
def log(server: LogServer) -> Iterator[RedisLog]:
    with RedisLog.open(server.address, partitions=PARTITIONS) as log:
        yield log


@pytest.fixture
def views(views_of_all: ViewsServer) -> Iterator[Views]:
    with connect(views_of_all.address) as views:
        views.client.flushall()
        yield views


@pytest.fixture
def store(views: Views) -> StateStore:
    """Leases that do not run out during a test."""
    return StateStore(views, lease_ms=FOREVER_MS)
