"""Who is asking: keys as the workers hold them, checked in the same steps whether a key is known or not."""

import asyncio
import hmac
from collections.abc import Mapping
from pathlib import Path

from domain.errors import LakeboardError
from serving.keys import Key, KeyFile, Role, hashed, parts_of
from serving.logs import log
from serving.problems import Code, RefusedError

LOOK_SECONDS = 0.5  # so that a revoked key is refused within a second
_SCHEME = b"bearer "
_CHALLENGE = ((b"www-authenticate", b'Bearer realm="lakeboard"'),)
_LONGEST_KEY = 256
_MOST_PROVED = 1024
_NOBODY = hashed("nobody")  # what a secret is compared with where no key has the id


class KeyRing:
    """The keys of a home folder, read again when their file changes.

    Attributes:
        problem: Why the file could not be read last time; the keys of before stand meanwhile.
    """

    def __init__(self, home: Path) -> None:
        self.problem: str | None = None
        self._file = KeyFile(home)
        self._seen: object = None
        self._keys: Mapping[str, Key] = {}
        self._proved: dict[bytes, Key] = {}  # whole headers that were right; found by a keyed hash of all their bytes

    def look(self) -> None:
        """Read the file if it is another one than last time."""
        seen = self._state()
        if seen == self._seen:
            return
        try:
            self._keys = {key.id: key for key in self._file.read()}
        except LakeboardError as error:
            self.problem = str(error)
            log.error("keys_unreadable", problem=self.problem)
        else:
            self.problem = None
            self._proved.clear()
        self._seen = seen

    async def watch(self) -> None:
        """Look twice a second, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def require(self, authorization: bytes | None, role: Role) -> Key:
        """Return the key of a request.

        Args:
            authorization: The header as it came.
            role: What the key must be allowed to do.

        Raises:
            RefusedError: `key_missing`, `key_invalid` (unknown, wrong or revoked), `role_missing`.
        """
        if not authorization:
            detail = "send a key: Authorization: Bearer <key>; `lakeboard keys add` makes one"
            raise RefusedError(Code.KEY_MISSING, detail, headers=_CHALLENGE)
        key = self._proved.get(authorization) or self._checked(authorization)
        if key is None:
            detail = "the key is unknown, wrong or revoked; `lakeboard keys list` shows the ones that are valid"
            raise RefusedError(Code.KEY_INVALID, detail, headers=_CHALLENGE)
        if role not in key.roles:
            raise RefusedError(Code.ROLE_MISSING, f"the key needs the role {role.value}; it has {', '.join(key.roles)}")
        return key

    def known(self, authorization: bytes | None) -> Key | None:
        """Return the valid key of a request, whatever it may do; None when it says none, or one that is not valid."""
        return (self._proved.get(authorization) or self._checked(authorization)) if authorization else None

    def _checked(self, authorization: bytes) -> Key | None:
        """Return the valid key of a header. Every step is taken for every header, whatever an earlier one found."""
        is_bearer = authorization[: len(_SCHEME)].lower() == _SCHEME
        text = authorization[len(_SCHEME) : len(_SCHEME) + _LONGEST_KEY].decode("latin-1").strip()
        key_id, secret = parts_of(text)
        key = self._keys.get(key_id)
        equal = hmac.compare_digest(hashed(secret), _NOBODY if key is None else key.sha256)
        if key is None or not equal or not is_bearer or key.revoked is not None:
            return None
        if len(self._proved) < _MOST_PROVED:
            self._proved[authorization] = key
        return key

    def _state(self) -> object:
        try:
            found = self._file.path.stat()
        except FileNotFoundError:
            return "no file"
        except OSError as error:
            return error.errno
        return (found.st_ino, found.st_mtime_ns, found.st_size)
