"""`lakeboard api`: the HTTP API alone, in the foreground."""

import dataclasses

import click
import msgspec

from domain.errors import BadRequestError
from lakeboard.api_settings import api_settings
from lakeboard.settings import Settings
from serving.settings import is_loopback


class OpenToOthersError(BadRequestError):
    """The API would listen on an address that other machines reach, and nobody said so in the command."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host

    def __str__(self) -> str:
        return (
            f"the setting host is {self.host}, which other machines reach, and the API has no TLS of its own: "
            f"say --host {self.host} as well if that is meant"
        )


@click.command(
    "api",
    epilog="""\b
Examples:
  lakeboard api
  lakeboard api --port 9000 --workers 2
  lakeboard api --host 0.0.0.0 --access-log

It needs the event log's server; `lakeboard up` starts both. SIGTERM or Ctrl-C ends it once requests in flight are
answered. Routes and codes: docs/http-api.md.""",
)
@click.option("--host", help="Address to listen on. Default: the setting host, when it is this machine's own.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on. Default: the setting port, 8080.")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes. Default: the setting workers, 1.")
@click.option("--access-log", is_flag=True, help="Write a line for every request, not only for refused ones.")
@click.pass_obj
def api_command(
    settings: Settings, /, *, host: str | None, port: int | None, workers: int | None, access_log: bool
) -> None:
    """Run the HTTP API alone; `lakeboard up` runs it with all that it needs.

    In the foreground, on 127.0.0.1:8080 unless told otherwise. Each accepted event is on disk before its answer. Logs
    are JSON lines on stderr.
    """
    from serving.server import serve  # noqa: PLC0415  loads the server, which `--help` can do without

    if host is None and not is_loopback(settings.host):
        raise OpenToOthersError(settings.host)
    chosen = {"host": host, "port": port, "workers": workers}
    given = {name: value for name, value in chosen.items() if value is not None}
    asked = api_settings(msgspec.structs.replace(settings, **given))
    serve(dataclasses.replace(asked, access_log=access_log))
