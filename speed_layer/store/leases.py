"""What consumers and the views server agree on: leases, manifests of checkpoints, and how they may fail."""

from typing import Final

import msgspec

from domain.errors import LakeboardError
from domain.log import without_secrets
from speed_layer.snapshot import Part
from speed_layer.store.keys import of_partition

MANIFEST_VERSION: Final = 1

# The scripts of every lease, of a partition or of the charts.

# KEYS: lease, epoch. ARGV: epoch found before, epoch wanted, milliseconds.
ACQUIRE: Final = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
# A lease that ran out is taken up again as long as nobody else had the partition. ARGV: epoch, milliseconds.
RENEW: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class ViewsUnavailableError(LakeboardError):
    """The views server cannot be reached, does not answer in time, or takes nothing more."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = without_secrets(address)
        super().__init__(self.address, reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the views server at {self.address} does not answer ({self.reason}): start it with `lakeboard up`, "
            "or set views_url to where it runs"
        )


class LeaseLostError(LakeboardError):
    """Another consumer works on the partition, or the views server forgot that we do; nothing was written."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.partition = partition

    def __str__(self) -> str:
        return (
            f"partition {self.partition} of the live charts is not ours any more: nothing was written; "
            "it is taken up again when it is free"
        )


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint consists of.

    Attributes:
        version: Of these bytes.
        log_id: Of which log.
        position: `EntryId.version` of the last entry that is in it; the consumer reads on behind it.
        complete_from_ms: Plays before this log time may be missing, milliseconds since 1970 UTC; 0 = none is.
        blobs: Name of the part -> name of the blob.
    """

    version: int = MANIFEST_VERSION
    log_id: str
    position: int
    complete_from_ms: int
    blobs: dict[str, str]


class Lease:
    """The right to write one partition, for as long as the server knows no other epoch.

    Attributes:
        partition: Its number.
        epoch: A number that grows with each holder, and a word of its own.
        sequence: Of the checkpoint in force, as its holder knows it.
        parts: What that checkpoint holds: by name the part and the name of its blob.
    """

    def __init__(self, partition: int, epoch: str) -> None:
        self.partition = partition
        self.epoch = epoch
        self.sequence = ""
        self.parts: dict[str, tuple[Part, str]] = {}

    def key(self, name: str) -> str:
        """Return a key of its partition."""
        return of_partition(self.partition, name)
