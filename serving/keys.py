"""Keys of the API and the file that holds them: names, roles and hashes, never a key itself.

    lb_<id>_<secret>      what a client sends as `Authorization: Bearer ...`

The file is small and is written whole: a new one beside it, synced, then renamed over it, so that a reader sees the
old keys or the new ones.
"""

import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from domain.clock import Clock, utc_now
from domain.errors import BadRequestError, LakeboardError
from ingest.durable import replace_file

MOST_KEYS = 65_536  # places in the file in which the workers count together
DEV_KEY_NAME = "dev"
_PREFIX = "lb"
_PARTS = 3
_ID_BYTES = 6
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OWNER_ONLY = 0o600


class Role(StrEnum):
    """What a key may do. None of them includes another one."""

    READER = "reader"
    PRODUCER = "producer"
    GAME_SERVER = "game_server"
    PLAYER = "player"
    ADMIN = "admin"


class Key(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key as the file has it.

    Attributes:
        id: Its public part, 12 hex digits.
        number: From 0, in the order of making; never given again.
        name: Whose it is. Events carry it as their source, `api/<name>`; two keys may share it while one replaces
            the other.
        roles: What it may do.
        sha256: Of its secret, in hex.
        created: When it was made, UTC.
        revoked: When it was revoked, UTC; None = it is valid.
        events_per_second: Limit of its own; None = the general one.
        requests_per_second: The same for requests.
        games: The games it is limited to; None = all.
    """

    id: str
    number: int
    name: str
    roles: tuple[Role, ...]
    sha256: str
    created: datetime
    revoked: datetime | None = None
    events_per_second: int | None = None
    requests_per_second: int | None = None
    games: tuple[str, ...] | None = None


class KeyFileContent(msgspec.Struct, frozen=True):
    """The whole file."""

    version: Literal[1]
    keys: tuple[Key, ...]


class UnreadableKeysError(LakeboardError):
    """The file of keys is not one, or may not be read."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path} cannot be read ({self.problem}): restore it from a copy, or remove it and make new keys"


class UnknownKeyError(BadRequestError):
    """There is no key of this id."""

    def __init__(self, key_id: str) -> None:
        super().__init__(key_id)
        self.key_id = key_id

    def __str__(self) -> str:
        return f"there is no key {self.key_id!r}: `lakeboard keys list` shows the ids"


class KeyNameError(BadRequestError):
    """A key cannot have this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"a key cannot be named {self.name!r}: use 1 to 64 of A-Z a-z 0-9 . _ -, a letter or digit first"


class TooManyKeysError(LakeboardError):
    """No place is left for another key."""

    def __str__(self) -> str:
        return f"there were {MOST_KEYS:,} keys already: remove keys.json and make the ones in use again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a new key may send a second; None = as the settings say."""

    events_per_second: int | None = None
    requests_per_second: int | None = None


NO_OWN_LIMITS = Limits()


class KeyFile:
    """The keys of one home folder."""

    def __init__(self, home: Path, clock: Clock = utc_now) -> None:
        self.path = home / "keys.json"
        self._clock = clock

    def read(self) -> Sequence[Key]:
        """Return all keys, revoked ones too; none when there is no file.

        Raises:
            UnreadableKeysError: it is damaged, of another version, or may not be read.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=KeyFileContent).keys
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise UnreadableKeysError(str(self.path), error.strerror or type(error).__name__) from error
        except msgspec.MsgspecError as error:
            raise UnreadableKeysError(str(self.path), str(error)) from error

    def add(self, name: str, roles: Iterable[Role], limits: Limits = NO_OWN_LIMITS) -> tuple[Key, str]:
        """Make a key and return it with its text, which is stored nowhere.

        Raises:
            KeyNameError: it cannot have this name.
            TooManyKeysError: no place is left.
            UnreadableKeysError: the file cannot be read.
        """
        if not _NAME.fullmatch(name):
            raise KeyNameError(name)
        with self._changing() as keys:
            secret = secrets.token_urlsafe(32)
            key = Key(
                id=secrets.token_hex(_ID_BYTES),
                number=max((each.number for each in keys), default=-1) + 1,
                name=name,
                roles=tuple(sorted(set(roles))),
                sha256=hashed(secret),
                created=self._clock(),
                events_per_second=limits.events_per_second,
                requests_per_second=limits.requests_per_second,
            )
            if key.number >= MOST_KEYS:
                raise TooManyKeysError
            self._write((*keys, key))
        return key, f"{_PREFIX}_{key.id}_{secret}"

    def revoke(self, key_id: str) -> Key:
        """Revoke a key for ever; one that is revoked stays so.

        Raises:
            UnknownKeyError: there is none of this id.
            UnreadableKeysError: the file cannot be read.
        """
        with self._changing() as keys:
            found = next((key for key in keys if key.id == key_id), None)
            if found is None:
                raise UnknownKeyError(key_id)
            if found.revoked is not None:
                return found
            revoked = msgspec.structs.replace(found, revoked=self._clock())
            self._write(tuple(revoked if key.id == key_id else key for key in keys))
        return revoked

    @contextmanager
    def _changing(self) -> Iterator[Sequence[Key]]:
        """Hold the one right to change the file, and hand out what it holds."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.read()
        finally:
            os.close(lock)  # frees the lock

    def _write(self, keys: tuple[Key, ...]) -> None:
        content = msgspec.json.format(msgspec.json.encode(KeyFileContent(version=1, keys=keys)), indent=2)
        replace_file(self.path, content + b"\n", mode=_OWNER_ONLY)


def hashed(secret: str) -> str:
    """Return SHA-256 of a secret in hex. It has 256 bits of chance, so that no slow hash is needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def parts_of(text: str) -> tuple[str, str]:
    """Cut a key's text into id and secret; empty ones when it is none."""
    parts = text.split("_", _PARTS - 1)
    return (parts[1], parts[2]) if len(parts) == _PARTS and parts[0] == _PREFIX else ("", "")


def ensure_dev_key(home: Path, clock: Clock = utc_now) -> Path:
    """Make a developer's key at first start, and return the file with its text, for its owner's eyes only.

    It may send events and scores, and administer. A file that is there stays, unless its key is unknown or revoked.

    Raises:
        UnreadableKeysError: the file of keys cannot be read.
    """
    path, keys = home / "dev.key", KeyFile(home, clock)
    if path.exists():
        key_id, secret = parts_of(path.read_text(encoding="ascii", errors="replace").strip())
        valid = {key.id: key.sha256 for key in keys.read() if key.revoked is None}
        if valid.get(key_id) == hashed(secret):
            return path
    _, text = keys.add(DEV_KEY_NAME, (Role.PRODUCER, Role.GAME_SERVER, Role.ADMIN))
    replace_file(path, f"{text}\n".encode(), mode=_OWNER_ONLY)
    return path
