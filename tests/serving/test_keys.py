import hmac
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from serving import auth
from serving.auth import KeyRing
from serving.keys import (
    KeyFile,
    KeyNameError,
    Limits,
    Role,
    UnknownKeyError,
    UnreadableKeysError,
    ensure_dev_key,
    hashed,
)
from serving.problems import RefusedError

pytestmark = pytest.mark.fast

MADE = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)


def key_file(home: Path) -> KeyFile:
    return KeyFile(home, lambda: MADE)


def ring_of(home: Path) -> KeyRing:
    ring = KeyRing(home)
    ring.look()
    return ring


def code(ring: KeyRing, authorization: bytes | None, role: Role = Role.PRODUCER) -> str:
    with pytest.raises(RefusedError) as caught:
        ring.require(authorization, role)
    return caught.value.code


def test_a_new_key_opens_what_its_roles_say_and_nothing_else(tmp_path: Path) -> None:
    key, text = key_file(tmp_path).add("shop", [Role.PRODUCER, Role.READER])
    ring = ring_of(tmp_path)

    assert ring.require(f"Bearer {text}".encode(), Role.PRODUCER) == key
    assert ring.require(f"bearer  {text} ".encode(), Role.READER) == key
    assert code(ring, f"Bearer {text}".encode(), Role.ADMIN) == "role_missing"


def test_the_file_holds_a_hash_and_never_the_key_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    key, text = key_file(tmp_path).add("shop", [Role.PRODUCER], Limits(events_per_second=5))
    path = tmp_path / "keys.json"

    content = path.read_text(encoding="utf-8")
    assert json.loads(content) == {
        "version": 1,
        "keys": [{"id": key.id, "number": 0, "name": "shop", "roles": ["producer"], "sha256": key.sha256,
                  "created": "2026-11-14T09:30:00Z", "events_per_second": 5}],
    }  # fmt: skip
    assert text.split("_", 2)[2] not in content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(found.name for found in tmp_path.iterdir()) == ["keys.json", "keys.lock"]


def test_wrong_keys_are_invalid_whatever_is_wrong_with_them(tmp_path: Path) -> None:
    key, text = key_file(tmp_path).add("shop", [Role.PRODUCER])
    ring = ring_of(tmp_path)
    wrong = [text[:-1], text + "x", f"lb_{'0' * 12}_{text.split('_', 2)[2]}", f"lb_{key.id}", "lb__", "x", "\xff" * 9]

    assert {code(ring, f"Bearer {each}".encode("latin-1")) for each in wrong} == {"key_invalid"}
    assert code(ring, f"Basic {text}".encode()) == "key_invalid"
    assert {code(ring, None), code(ring, b"")} == {"key_missing"}


def test_a_refusal_says_how_to_ask(tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as caught:
        ring_of(tmp_path).require(None, Role.PRODUCER)

    assert dict(caught.value.headers) == {b"www-authenticate": b'Bearer realm="lakeboard"'}
    assert caught.value.status == 401


def test_known_and_unknown_ids_cost_the_same_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, text = key_file(tmp_path).add("shop", [Role.PRODUCER])
    revoked, old = key_file(tmp_path).add("old", [Role.PRODUCER])
    key_file(tmp_path).revoke(revoked.id)
    ring = ring_of(tmp_path)
    steps: list[str] = []
    compared = hmac.compare_digest

    def hash_(secret: str) -> str:
        steps.append("hash")
        return hashed(secret)

    def compare(left: str, right: str) -> bool:
        steps.append(f"compare {len(right)}")
        return compared(left, right)

    monkeypatch.setattr(auth, "hashed", hash_)
    monkeypatch.setattr(hmac, "compare_digest", compare)

    taken = []
    for said in (text, f"lb_{key.id}_wrong", f"lb_{'0' * 12}_{text.split('_', 2)[2]}", old, "nonsense"):
        steps.clear()
        ring._checked(f"Bearer {said}".encode())
        taken.append(tuple(steps))

    assert set(taken) == {("hash", "compare 64")}


def test_a_revoked_key_is_invalid_at_the_next_look(tmp_path: Path) -> None:
    keys = key_file(tmp_path)
    key, text = keys.add("shop", [Role.PRODUCER])
    ring = ring_of(tmp_path)
    ring.require(f"Bearer {text}".encode(), Role.PRODUCER)

    keys.revoke(key.id)
    ring.look()

    assert code(ring, f"Bearer {text}".encode()) == "key_invalid"
    assert keys.revoke(key.id).revoked == MADE


def test_a_damaged_file_leaves_the_keys_of_before_and_says_so(tmp_path: Path) -> None:
    _, text = key_file(tmp_path).add("shop", [Role.PRODUCER])
    ring = ring_of(tmp_path)
    (tmp_path / "keys.json").write_text('{"version": 2, "keys": []}', encoding="utf-8")

    ring.look()

    assert ring.require(f"Bearer {text}".encode(), Role.PRODUCER).name == "shop"
    assert ring.problem is not None
    with pytest.raises(UnreadableKeysError, match=r"keys\.json cannot be read"):
        key_file(tmp_path).read()


def test_a_damaged_file_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{", encoding="utf-8")

    with pytest.raises(UnreadableKeysError):
        key_file(tmp_path).add("shop", [Role.PRODUCER])

    assert (tmp_path / "keys.json").read_text(encoding="utf-8") == "{"


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "é", "a" * 65, "a\n"])
def test_a_name_that_could_confuse_a_log_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyNameError):
        key_file(tmp_path).add(name, [Role.PRODUCER])


def test_revoking_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownKeyError, match="lakeboard keys list"):
        key_file(tmp_path).revoke("abc")


def test_the_developers_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = ensure_dev_key(tmp_path)
    text = path.read_text(encoding="ascii").strip()

    assert ensure_dev_key(tmp_path) == tmp_path / "dev.key"
    assert path.read_text(encoding="ascii").strip() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = ring_of(tmp_path).require(f"Bearer {text}".encode(), Role.PRODUCER)
    assert key.roles == (Role.ADMIN, Role.GAME_SERVER, Role.PRODUCER)
    assert len(KeyFile(tmp_path).read()) == 1


def test_a_revoked_developers_key_is_replaced_at_the_next_start(tmp_path: Path) -> None:
    first = ensure_dev_key(tmp_path).read_text(encoding="ascii")
    KeyFile(tmp_path).revoke(KeyFile(tmp_path).read()[0].id)

    second = ensure_dev_key(tmp_path).read_text(encoding="ascii").strip()

    assert second != first.strip()
    assert ring_of(tmp_path).require(f"Bearer {second}".encode(), Role.PRODUCER).number == 1


def test_the_file_is_replaced_and_synced_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_file(tmp_path).add("first", [Role.PRODUCER])
    before = (tmp_path / "keys.json").stat().st_ino
    steps: list[str] = []
    sync, rename = os.fsync, Path.replace

    def replace(self: Path, target: Any) -> Path:
        steps.append("rename")
        return rename(self, target)

    def fsync(number: int) -> None:
        steps.append("sync")
        sync(number)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    key_file(tmp_path).add("second", [Role.PRODUCER])

    assert steps == ["sync", "rename", "sync"]  # its content, then its name, then the folder
    assert (tmp_path / "keys.json").stat().st_ino != before


def test_a_key_of_the_file_of_today_can_be_read_by_later_versions(tmp_path: Path) -> None:
    stored = {
        "version": 1,
        "keys": [{"id": "0a1b2c3d4e5f", "number": 4, "name": "game", "roles": ["game_server"], "sha256": "00" * 32,
                  "created": "2026-11-14T09:30:00Z", "revoked": "2026-11-15T00:00:00Z", "events_per_second": 10,
                  "requests_per_second": 2, "games": ["chess"]}],
    }  # fmt: skip
    (tmp_path / "keys.json").write_bytes(msgspec.json.encode(stored))

    key = key_file(tmp_path).read()[0]

    assert (key.games, key.requests_per_second, key.revoked) == (("chess",), 2, datetime(2026, 11, 15, tzinfo=UTC))
    assert key_file(tmp_path).add("next", [Role.READER])[0].number == 5
