"""`lakeboard publish` killed after any command that it sends: whoever follows the pointer has a whole view."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pytest
from redis.connection import AbstractConnection

from domain.batch_view import BatchView
from speed_layer.store import views as views_module
from speed_layer.store.connection import Views, connect
from speed_layer.store.keys import BATCH_VIEW
from speed_layer.store.views import ViewStore
from tests.lake_rows import Play, at
from tests.lakeboard.test_publish import lake_of
from tests.speed_layer.test_view_store import region, view
from tests.stacks import LAKEBOARD
from tests.views_server import ViewsServer, views_server

pytestmark = pytest.mark.redis


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewsServer]:
    with views_server(tmp_path / "views") as found:
        yield found


def says(release: int) -> BatchView:
    """A view of many parts that says its release everywhere."""
    regions = {f"R{n}": region((f"{release}-{n}", release)) for n in range(8)}
    return replace(view(release), version=f"v{release}", regions=regions)


def die_after(commands: int, address: str, release: int) -> None:
    """Publish in a process that ends as by `kill -9` before it sends one more command."""
    whole: Any = AbstractConnection.send_packed_command
    left = [commands]

    def counting(self: AbstractConnection, *arguments: object, **options: object) -> object:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return whole(self, *arguments, **options)

    AbstractConnection.send_packed_command = counting  # type: ignore[method-assign]
    with connect(address) as views:
        ViewStore(views).write(says(release))


def in_force(views: Views) -> int:
    """The release of the view that a reader finds, which must be whole."""
    store = ViewStore(views)
    version = store.current()
    assert version is not None
    found = store.load(version)
    assert found is not None
    assert {int(r.plays[0]) for r in found.regions.values()} == {found.release}
    assert len(found.regions) == 8
    return found.release


def test_killed_after_any_command_the_view_before_or_the_new_one_is_in_force(
    server: ViewsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "_WRITE_BYTES", 1)  # every region in a command of its own
    with connect(server.address) as views:
        ViewStore(views).write(says(1))
        seen, release = [], 1
        for commands in range(200):
            process = get_context("fork").Process(target=die_after, args=(commands, server.address, release + 1))
            process.start()
            process.join()
            found = in_force(views)
            assert found in (release, release + 1)
            seen.append(found - release)
            release = found
            if process.exitcode == 0:
                break
        assert process.exitcode == 0
        assert seen.index(1) > 15  # nothing is new before all of it was written
        assert ViewStore(views).versions() == {f"v{release}", f"v{release - 1}"}


def test_killed_at_any_moment_the_command_leaves_a_whole_view(server: ViewsServer, tmp_path: Path) -> None:
    home, random = tmp_path / "home", Random(5)
    lake_of(home / "lake", [Play(f"e{n}", f"t{n % 50}", at(1), f"R{n % 9}") for n in range(600)], at(3))
    environment = {**os.environ, "LAKEBOARD_HOME": str(home), "LAKEBOARD_VIEWS_URL": server.address}
    began = time.monotonic()
    subprocess.run([LAKEBOARD, "publish"], env=environment, check=True, capture_output=True)
    whole = time.monotonic() - began
    with connect(server.address) as views:
        first = ViewStore(views).current()
        assert first is not None
        for _ in range(3):
            views.client.delete(BATCH_VIEW)
            views.client.set(BATCH_VIEW, first)
            views.client.delete(f"lb:batch:{{{first}}}:meta")  # so that there is something to do again
            process = subprocess.Popen([LAKEBOARD, "publish"], env=environment, stderr=subprocess.DEVNULL)
            time.sleep(whole * random.uniform(0.5, 1.0))
            process.kill()
            process.wait()
            now = ViewStore(views).current()
            found = None if now in (None, first) else ViewStore(views).load(str(now))
            assert now == first or (found is not None and len(found.regions) == 10)
        done = subprocess.run([LAKEBOARD, "publish"], env=environment, check=True, capture_output=True, text=True)
        assert "release 1" in done.stdout.lower()
        store = ViewStore(views)
        last = store.load(str(store.current()))
        assert last is not None
        assert last.regions["*"].total == 600
