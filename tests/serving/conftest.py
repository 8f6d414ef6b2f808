"""One API and one log server for all tests of a module that only talk to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from serving.keys import Role
from speed_layer.store.connection import connect
from tests.servers import LogServer, log_server
from tests.serving.api_server import Api, api
from tests.speed_layer.published import Publishers, merging, plays
from tests.views_server import views_server


@dataclass(frozen=True)
class Running:
    """A running API with charts, its log, and a key for it."""

    api: Api
    log: LogServer
    key: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home: Path = tmp_path_factory.mktemp("api")
    with (
        log_server(tmp_path_factory.mktemp("log")) as log,
        views_server(tmp_path_factory.mktemp("views")) as views,
        connect(views.address) as connection,
    ):
        Publishers(connection).say(plays("a", "a", "b"))
        merging(views, connection).cycle()
        key = Api(home, log.address).key(Role.PRODUCER)
        with api(home, log.address, views_url=views.address) as found:
            yield Running(found, log, key)
