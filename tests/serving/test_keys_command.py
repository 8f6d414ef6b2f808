import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lakeboard.commands.keys import keys_command
from lakeboard.settings import Settings
from serving.auth import KeyRing
from serving.keys import Role, UnknownKeyError

pytestmark = pytest.mark.fast


def ran(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(keys_command, arguments, obj=Settings(home=home))


def test_a_key_is_printed_once_alone_on_stdout_and_works(tmp_path: Path) -> None:
    result = ran(tmp_path, "add", "shop", "--role", "producer", "--role", "reader", "--rate", "20000")
    ring = KeyRing(tmp_path)
    ring.look()

    key = ring.require(f"Bearer {result.stdout.strip()}".encode(), Role.PRODUCER)
    assert (key.name, key.roles, key.events_per_second) == ("shop", (Role.PRODUCER, Role.READER), 20_000)
    assert result.stdout.count("\n") == 1
    assert "keep it now" in result.stderr


def test_the_list_shows_ids_and_never_secrets(tmp_path: Path) -> None:
    text = ran(tmp_path, "add", "shop", "--role", "producer").stdout.strip()
    key_id, secret = text.split("_", 2)[1:]
    ran(tmp_path, "revoke", key_id)

    shown = ran(tmp_path, "list")
    facts = json.loads(ran(tmp_path, "list", "--json").stdout)

    assert key_id in shown.stdout
    assert secret not in shown.stdout + json.dumps(facts)
    assert (facts[0]["id"], facts[0]["name"], facts[0]["roles"]) == (key_id, "shop", "producer")
    assert facts[0]["revoked"] is not None


def test_without_keys_the_list_says_how_to_make_one(tmp_path: Path) -> None:
    assert "lakeboard keys add NAME --role producer" in ran(tmp_path, "list").stdout


def test_an_unknown_id_and_a_missing_role_are_said(tmp_path: Path) -> None:
    assert isinstance(ran(tmp_path, "revoke", "nobody").exception, UnknownKeyError)
    assert "Missing option '--role'" in ran(tmp_path, "add", "shop").output
