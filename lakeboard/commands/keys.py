"""`lakeboard keys`: who may send events."""

import click

from domain.answers import iso
from lakeboard.commands.reading import JSON_OPTION, print_json, print_table
from lakeboard.settings import Settings
from serving.keys import Key, KeyFile, Limits, Role


@click.group(
    "keys",
    epilog="""\b
Examples:
  lakeboard keys add shop --role producer
  lakeboard keys add importer --role producer --rate 20000
  lakeboard keys list
  lakeboard keys revoke 1f2e3d4c5b6a

A running API follows within a second. A key leaked: docs/runbook.md.""",
)
def keys_command() -> None:
    """Make, list and revoke keys of the HTTP API.

    LAKEBOARD_HOME/keys.json holds their hashes, never a key.
    """


@keys_command.command("add")
@click.argument("name")
@click.option(
    "--role",
    "roles",
    type=click.Choice([role.value for role in Role]),
    multiple=True,
    required=True,
    help="What it may do; may be said more than once. Events need producer.",
)
@click.option("--rate", type=click.IntRange(min=1), help="Events a second. Default: the setting events_per_second.")
@click.option("--requests", type=click.IntRange(min=1), help="Requests a second. Default: requests_per_second.")
@click.pass_obj
def add_command(
    settings: Settings, /, *, name: str, roles: tuple[str, ...], rate: int | None, requests: int | None
) -> None:
    """Make a key and print it, this once.

    NAME is whose it is: events carry it as their source, api/NAME. Two keys may share a name while one replaces the
    other.
    """
    limits = Limits(events_per_second=rate, requests_per_second=requests)
    key, text = KeyFile(settings.home, settings.machine_clock).add(name, [Role(role) for role in roles], limits)
    click.echo(text)
    click.echo(f"Key {key.id} of {key.name}: {', '.join(key.roles)}. It is not stored: keep it now.", err=True)


@keys_command.command("list")
@JSON_OPTION
@click.pass_obj
def list_command(settings: Settings, /, *, as_json: bool) -> None:
    """List the keys, revoked ones too; never their secrets."""
    keys = KeyFile(settings.home, settings.machine_clock).read()
    if as_json:
        print_json([_facts(key) for key in keys])
    elif not keys:
        click.echo("There are no keys: `lakeboard keys add NAME --role producer` makes one.")
    else:
        headings = ["id", "name", "roles", "created", "revoked", "events/s", "requests/s"]
        rows = [tuple("" if value is None else str(value) for value in _facts(key).values()) for key in keys]
        print_table(headings, rows, right=["events/s", "requests/s"], folding=["name"])


@keys_command.command("revoke")
@click.argument("key_id", metavar="ID")
@click.pass_obj
def revoke_command(settings: Settings, /, *, key_id: str) -> None:
    """Revoke a key for ever; a running API refuses it within a second."""
    key = KeyFile(settings.home, settings.machine_clock).revoke(key_id)
    click.echo(f"Key {key.id} of {key.name} is revoked.")


def _facts(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "roles": ", ".join(key.roles),
        "created": iso(key.created),
        "revoked": None if key.revoked is None else iso(key.revoked),
        "events_per_second": key.events_per_second,
        "requests_per_second": key.requests_per_second,
    }
