"""Who may read charts, and how often."""

from serving.answers import Head
from serving.auth import KeyRing
from serving.keys import Key, Role
from serving.read_limits import ReadLimits
from serving.settings import ApiSettings, is_loopback

_LAKE = "lake"  # no chart's name: those have their window and region in them
_OF_LAKE = "one key or address may have the lake read {rate:,} times a second: what was asked before is remembered"


class Readers:
    """Lets readers in and counts what they read, for one worker."""

    def __init__(self, settings: ApiSettings, *, ring: KeyRing) -> None:
        self._settings = settings
        self._ring = ring
        self._limits = ReadLimits(settings.reads_file)

    def close(self) -> None:
        """Let go of what is shared with other workers."""
        self._limits.close()

    @property
    def cache_scope(self) -> bytes:
        """`public` where a proxy may hand an answer to others."""
        return b"public" if self._settings.open_reads else b"private"

    def admit(self, head: Head) -> None:
        """Let a reader in: anybody when reads are open, else this machine, else a key with the role.

        Raises:
            RefusedError: none of these.
        """
        if not self._settings.open_reads and not is_loopback(head.client):
            self._ring.require(head.headers.get(b"authorization"), Role.READER)

    def take(self, head: Head, chart: str) -> None:
        """Take one read of a chart, for the key of the request, or for the address where it has none.

        Raises:
            RefusedError: `rate_limited`.
        """
        key = self._key(head)
        self._limits.take(_name(head, key), chart, rate=self._rate(key))

    def take_lake(self, head: Head) -> None:
        """Take one read of the lake, whatever it is asked for: each question may be a new one.

        Raises:
            RefusedError: `rate_limited`.
        """
        key = self._key(head)
        self._limits.take(_name(head, key), _LAKE, rate=self._rate(key), says=_OF_LAKE)

    def name(self, head: Head) -> str:
        """Return the id of the request's key, or its address where it has none."""
        return _name(head, self._key(head))

    def _key(self, head: Head) -> Key | None:
        return self._ring.known(head.headers.get(b"authorization"))

    def _rate(self, key: Key | None) -> int:
        own = None if key is None else key.requests_per_second
        return own or self._settings.reads_per_second


def _name(head: Head, key: Key | None) -> str:
    return head.client if key is None else key.id
