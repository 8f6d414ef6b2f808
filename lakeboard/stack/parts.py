"""Which parts the stack has, and how each is run, from the settings."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ingest.log_relief import relieve
from lakeboard.settings import Settings, size_in_bytes
from lakeboard.stack.health import http_probe, server_probe, state_probe
from lakeboard.stack.part import PartPlan
from lakeboard.stack.servers import log_server_command, server_binary, socket_path, views_server_command

LOG, VIEWS, LAKE_WRITER, SPEED, MERGER, API = "log", "views", "lake-writer", "speed", "merger", "api"
BOARDS, BOARDS_STATE = "boards", "boards.json"
HOURLY, FEED = "hourly", "feed"
HOURLY_STATE, FEED_STATE = "hourly.json", "feed.json"
LAKE_WRITER_STATE, SPEED_STATE, MERGER_STATE = "lake-writer.json", "speed.json", "merger.json"


def own_servers(settings: Settings) -> list[str]:
    """Return the servers that the stack runs itself: those whose address is not set."""
    return [name for name, url in ((LOG, settings.log_url), (VIEWS, settings.views_url)) if not url]


def plans(settings: Settings, *, locks: Mapping[str, int], on_log_ready: Callable[[], None]) -> list[PartPlan]:
    """Return the parts in the order of their start; they are stopped in reverse.

    So the API is stopped first, and what it accepted last is committed before the log's server ends.

    Args:
        settings: Of the stack; folders are there.
        locks: Descriptor of the lock of each own server.
        on_log_ready: Called each time the log's server is up, before anything else uses it.
    """
    own = own_servers(settings)
    found = {name: _server_plan(settings, name, locks[name], on_log_ready) for name in own}
    needs = (LOG,) if LOG in own else ()
    writer = PartPlan(
        name=LAKE_WRITER,
        command=_lakeboard("lake-writer"),
        probe=state_probe(settings.run_folder / LAKE_WRITER_STATE),
        needs=needs,
        stop_seconds=60.0,  # it commits what it has read
    )
    api = PartPlan(
        name=API,
        command=_lakeboard("api", "--host", settings.host),
        probe=http_probe(settings.host, settings.port),
        needs=needs,
        stop_seconds=30.0,
    )
    hourly = PartPlan(
        name=HOURLY,
        command=_lakeboard("hourly"),
        probe=state_probe(settings.run_folder / HOURLY_STATE),
        needs=tuple(own),
        stop_seconds=30.0,  # it ends a recount that is under way
    )
    feed = PartPlan(
        name=FEED,
        command=_lakeboard("feed"),
        probe=state_probe(settings.run_folder / FEED_STATE),
        needs=(API,),
    )
    chosen = [*([hourly] if settings.hourly else []), *([feed] if settings.demo else [])]
    return [*found.values(), writer, *_live_plans(settings, own), api, *chosen]


def _live_plans(settings: Settings, own: Sequence[str]) -> list[PartPlan]:
    speed = PartPlan(
        name=SPEED,
        command=_lakeboard("speed"),
        probe=state_probe(settings.run_folder / SPEED_STATE),
        needs=tuple(own),
        stop_seconds=30.0,  # it stores what it has counted
    )
    merger = PartPlan(
        name=MERGER,
        command=_lakeboard("merge"),
        probe=state_probe(settings.run_folder / MERGER_STATE),
        needs=tuple(own),
    )
    boards = PartPlan(
        name=BOARDS,
        command=_lakeboard("boards"),
        probe=state_probe(settings.run_folder / BOARDS_STATE),
        needs=tuple(own),
    )
    return [speed, merger, boards]


def _server_plan(settings: Settings, name: str, lock: int, on_log_ready: Callable[[], None]) -> PartPlan:
    socket = socket_path(settings.run_folder, name)
    binary = server_binary(Path(sys.prefix), settings.search_path)
    if name == LOG:
        size = size_in_bytes(settings.log_max_memory)
        command = log_server_command(binary, folder=settings.home / LOG, socket=socket, max_bytes=size)
        return PartPlan(name=name, command=command, probe=server_probe(socket), held=(lock,), on_ready=on_log_ready)
    size = size_in_bytes(settings.views_max_memory)
    command = views_server_command(binary, folder=settings.home / VIEWS, socket=socket, max_bytes=size)
    return PartPlan(name=name, command=command, probe=server_probe(socket), held=(lock,))


def _lakeboard(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lakeboard", *arguments]


def relief_of(settings: Settings) -> Callable[[], str | None]:
    """Return what makes room in the log when it refuses events, and says why it still does."""

    def look() -> str | None:
        relief = relieve(
            settings.log_address,
            folder=settings.log_folder,
            min_free_bytes=size_in_bytes(settings.log_min_free_disk),
        )
        if relief.refusal is None:
            return None
        return f"{relief.refusal}{'; its file is being written anew' if relief.rewriting else ''}"

    return look
