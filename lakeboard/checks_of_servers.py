"""Checks of the servers of the event log and the live views, when they run: settings that would lose or evict."""

from collections.abc import Callable, Iterator

from domain.log import LogUnavailableError
from ingest.server_checks import log_server_problems, views_server_problems
from lakeboard.checks import Check, State
from lakeboard.settings import Settings
from lakeboard.stack.health import is_listening
from lakeboard.stack.servers import socket_path


def servers(settings: Settings) -> Iterator[Check]:
    """Whether the log's server keeps what it acknowledges, and the views' server takes pages as they are."""
    yield from _server("log server", settings.log_url, settings, log_server_problems)
    yield from _server("views server", settings.views_url, settings, views_server_problems)


def _server(name: str, url: str, settings: Settings, problems_of: Callable[[str], list[str]]) -> Iterator[Check]:
    part = name.removesuffix(" server")
    if not url and not is_listening(socket_path(settings.run_folder, part)):
        yield Check(name, State.OK, "does not run; `lakeboard up` starts one")
        return
    address = url or (settings.log_address if part == "log" else settings.views_address)
    try:
        problems = problems_of(address)
    except LogUnavailableError as error:
        step = f"start it, or unset {part}_url so that `lakeboard up` runs one" if url else "see docs/runbook.md"
        yield Check(name, State.PROBLEM, f"{address} does not answer ({error.reason})", step)
        return
    if not problems:
        yield Check(name, State.OK, f"{address} is safe" if part == "log" else f"{address} is fit")
    for problem in problems:
        yield Check(name, State.PROBLEM, problem, "set this and start it again; `lakeboard up` runs one that is right")
