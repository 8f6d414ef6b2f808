"""Who works on a partition, and its checkpoints: leases save work, the fence keeps it right.

A lease is a key with an expiry. Each holder has an epoch of its own, which stays in the server when the lease has run
out: whatever is written says under which epoch, and is refused when another one has been given since. So a consumer
that was stopped for a minute and goes on does no harm.

A checkpoint is written as blobs under names that nobody has used, then a script puts its manifest in force, only if
the epoch is the writer's and the manifest in force is the one that it knew. What is killed between leaves blobs that no
manifest names; they are swept by the next one to hold the partition.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_hex
from typing import Final

import msgspec
import redis

from speed_layer.snapshot import Part, Snapshot
from speed_layer.store.connection import Views, octets
from speed_layer.store.keys import CONSUMERS, of_partition
from speed_layer.store.leases import ACQUIRE, MANIFEST_VERSION, RELEASE, RENEW, Lease, LeaseLostError, Manifest

_WRITE_BYTES: Final = 8 << 20  # of blobs in one go
_READ_BLOBS: Final = 16
_BLOB = "blob:"
_RAW, _ZLIB = b"\0", b"\1"
_LEVEL, _SAMPLE, _WORTH = 1, 16_384, 0.9


_MANIFESTS = msgspec.msgpack.Decoder(Manifest)

# KEYS: epoch, manifest. ARGV: epoch, sequence found before, sequence, manifest.
_FLIP = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if (redis.call('HGET', KEYS[2], 'sequence') or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], 'sequence', ARGV[3], 'body', ARGV[4])
return 1
"""


class StateStore:
    """Leases and checkpoints in the views server. Every call may raise `ViewsUnavailableError`."""

    def __init__(self, views: Views, *, lease_ms: int = 5000) -> None:
        self._views = views
        self._lease_ms = lease_ms
        client = views.client
        self._acquire, self._renew = client.register_script(ACQUIRE), client.register_script(RENEW)
        self._release, self._flip = client.register_script(RELEASE), client.register_script(_FLIP)

    def acquire(self, partition: int) -> Lease | None:
        """Take a partition that nobody works on; None when somebody does."""
        keys = [of_partition(partition, name) for name in ("lease", "epoch")]
        with self._views.translated():
            before = octets(self._views.client.get(keys[1]) or b"").decode()
            epoch = f"{int(before.partition('-')[0] or 0) + 1}-{token_hex(8)}"
            if self._acquire(keys=keys, args=[before, epoch, self._lease_ms]):
                return Lease(partition, epoch)
        return None

    def free(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions that nobody works on."""
        keys = [of_partition(number, "lease") for number in partitions]
        with self._views.translated():
            found = self._views.client.mget(keys) if keys else []
        return [number for number, holder in zip(partitions, found, strict=True) if holder is None]

    def present(self, name: str) -> int:
        """Say that a consumer is there for as long as a lease lasts; return how many are, itself among them."""
        now_ms = self._views.now_ms()
        with self._views.translated():
            pipeline = self._views.client.pipeline(transaction=True)
            pipeline.zremrangebyscore(CONSUMERS, "-inf", now_ms - self._lease_ms)
            pipeline.zadd(CONSUMERS, {name: now_ms})
            pipeline.zcard(CONSUMERS)
            return int(pipeline.execute()[-1])

    def absent(self, name: str) -> None:
        """Say that a consumer is not there any more."""
        with self._views.translated():
            self._views.client.zrem(CONSUMERS, name)

    def renew(self, lease: Lease) -> None:
        """Keep a partition.

        Raises:
            LeaseLostError: another consumer took it, or the server forgot it.
        """
        with self._views.translated():
            kept = self._renew(keys=[lease.key("lease"), lease.key("epoch")], args=[lease.epoch, self._lease_ms])
        if not kept:
            raise LeaseLostError(lease.partition)

    def release(self, lease: Lease) -> None:
        """Leave a partition to others."""
        with self._views.translated():
            self._release(keys=[lease.key("lease")], args=[lease.epoch])

    def load(self, lease: Lease) -> tuple[Manifest, dict[str, bytes]] | None:
        """Return the checkpoint in force and the blobs of its parts, and sweep what belongs to none.

        None when there is none, or it is of another version of this program; a part whose blob is gone is left out.
        """
        client = self._views.client
        with self._views.translated():
            sequence, body = client.hmget(lease.key("manifest"), ["sequence", "body"])
            lease.sequence = octets(sequence or b"").decode()
            manifest = _manifest(octets(body))
            self._sweep(lease, manifest.blobs.values() if manifest else ())
            if manifest is None:
                return None
            names: list[str] = list(manifest.blobs)
            blobs: dict[str, bytes] = {}
            for start in range(0, len(names), _READ_BLOBS):
                some = names[start : start + _READ_BLOBS]
                found = client.mget([lease.key(_BLOB + manifest.blobs[name]) for name in some])
                pairs = zip(some, found, strict=True)
                blobs.update({name: unpacked(octets(blob)) for name, blob in pairs if blob is not None})
        return manifest, blobs

    def restored(self, lease: Lease, manifest: Manifest, snapshot: Snapshot) -> None:
        """Note that the blobs of a manifest hold these parts, so that they are not written again."""
        lease.parts = {
            name: (part, manifest.blobs[name]) for name, part in snapshot.parts.items() if name in manifest.blobs
        }

    def checkpoint(self, lease: Lease, snapshot: Snapshot, *, log_id: str, complete_from_ms: int) -> int:
        """Put a snapshot in force; return the bytes of what had to be written.

        Raises:
            LeaseLostError: another consumer took the partition; the checkpoint before stays in force.
        """
        number = int(lease.sequence or 0) + 1
        writing = f"{lease.epoch}.{number}-{token_hex(4)}"  # no name twice: a flip may hold whose answer was lost
        new: dict[str, bytes] = {}
        parts: dict[str, tuple[Part, str]] = {}
        for name, part in snapshot.parts.items():
            stored = lease.parts.get(name)
            if stored is not None and part.is_same(stored[0]):
                parts[name] = stored
            else:
                parts[name] = (part, f"{writing}.{name}")
                new[parts[name][1]] = packed(part.encode())
        manifest = Manifest(
            log_id=log_id,
            position=snapshot.position,
            complete_from_ms=complete_from_ms,
            blobs={name: blob for name, (_, blob) in parts.items()},
        )
        with self._views.translated():
            self._write(lease, new)
            body = msgspec.msgpack.encode(manifest)
            keys = [lease.key("epoch"), lease.key("manifest")]
            flipped = self._flip(keys=keys, args=[lease.epoch, lease.sequence, str(number), body])
            if not flipped and not self._was_put(lease, str(number), body, new):
                raise LeaseLostError(lease.partition)
            self._drop(lease, {blob for _, blob in lease.parts.values()} - {blob for _, blob in parts.values()})
        lease.sequence, lease.parts = str(number), parts
        return sum(map(len, new.values()))

    def _was_put(self, lease: Lease, sequence: str, body: bytes, new: Iterable[str]) -> bool:
        """Say whether a checkpoint that was refused is in force: the client asks twice when an answer was lost.

        Else drop its blobs, but for those that the one in force names: its writer found ours, and went on from it.
        """
        found = [octets(one or b"") for one in self._views.client.hmget(lease.key("manifest"), ["sequence", "body"])]
        if found == [sequence.encode(), body]:
            return True
        in_force = _manifest(found[1])
        if in_force is not None or not found[1]:  # of one that we cannot read the next holder sweeps
            self._drop(lease, set(new) - set(in_force.blobs.values() if in_force is not None else ()))
        return False

    def _write(self, lease: Lease, blobs: Mapping[str, bytes]) -> None:
        """Write blobs, each noted before it is there, so that a sweep finds what a killed writer left."""
        left = list(blobs)
        while left:
            pipeline, size = self._views.client.pipeline(transaction=False), 0
            while left and size < _WRITE_BYTES:
                name = left.pop()
                pipeline.sadd(lease.key("blobs"), name)
                pipeline.set(lease.key(_BLOB + name), blobs[name])
                size += len(blobs[name])
            pipeline.execute()

    def _sweep(self, lease: Lease, named: Iterable[str]) -> None:
        every = {octets(name).decode() for name in self._views.client.smembers(lease.key("blobs"))}
        self._drop(lease, every - set(named))

    def _drop(self, lease: Lease, names: Iterable[str]) -> None:
        gone = list(names)
        if gone:
            pipeline: redis.client.Pipeline = self._views.client.pipeline(transaction=False)
            pipeline.unlink(*[lease.key(_BLOB + name) for name in gone])
            pipeline.srem(lease.key("blobs"), *gone)
            pipeline.execute()


def packed(body: bytes) -> bytes:
    """Return bytes as they are stored: one byte that says how, then they or, where it saves a tenth, their zlib form.

    Ids shrink to a third, hashes do not at all.
    """
    sample = body[:_SAMPLE]
    if len(zlib.compress(sample, _LEVEL)) < _WORTH * len(sample):
        return _ZLIB + zlib.compress(body, _LEVEL)
    return _RAW + body


def unpacked(stored: bytes) -> bytes:
    """Return what was packed; nothing of what is damaged, which no part can be read from."""
    if not stored.startswith(_ZLIB):
        return stored[1:]
    try:
        return zlib.decompress(stored[1:])
    except zlib.error:
        return b""


def _manifest(body: bytes) -> Manifest | None:
    """Read a manifest; one of another version is none, as the state behind it is not ours to read."""
    if not body:
        return None
    try:
        manifest = _MANIFESTS.decode(body)
    except msgspec.MsgspecError:
        return None
    return manifest if manifest.version == MANIFEST_VERSION else None
