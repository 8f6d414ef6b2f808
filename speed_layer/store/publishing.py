"""What partitions say, once a second: written behind the fence by consumers, read by the merger.

One script writes a cycle's lists, their marks in `changed` and the status, or nothing: a reader never sees a list that
is newer than the status it goes with.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from speed_layer.store.connection import Views, octets
from speed_layer.store.keys import of_partition
from speed_layer.store.leases import Lease, LeaseLostError
from speed_layer.store.lists import PartitionStatus, decode_status, encode_status

_MARKS_KEPT_MS: Final = 3_600_000  # of lists that are gone, at the first cycle of a consumer
_WHOLE = "whole"

# KEYS: epoch, lists, changed, status. ARGV: epoch, status, cycle, whole or some, cycle before which marks are dropped,
# then field, list, field, list, ...; an empty list is none. All marks of the first cycle of a consumer are raised: what
# it does not say any more is gone.
_PUBLISH = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[4] == 'whole' then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[5])
  for _, field in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do redis.call('ZADD', KEYS[3], ARGV[3], field) end
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do redis.call('ZADD', KEYS[3], ARGV[3], field) end
  redis.call('DEL', KEYS[2])
end
for i = 6, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[i])
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
  redis.call('ZADD', KEYS[3], ARGV[3], ARGV[i])
end
redis.call('SET', KEYS[4], ARGV[2])
return 1
"""
# KEYS: status, changed, lists. ARGV: cycle.
_CHANGED = """#!lua flags=no-writes
local found = {redis.call('GET', KEYS[1])}
for i, field in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf')) do
  found[2 * i] = field
  found[2 * i + 1] = redis.call('HGET', KEYS[3], field)
end
return found
"""


@dataclass(frozen=True, slots=True)
class Changed:
    """What a partition said since a cycle.

    Attributes:
        status: As of the newest cycle; None when it has said nothing yet.
        lists: Field -> bytes of the list (`decode_list`), None when the list is empty now.
    """

    status: PartitionStatus | None
    lists: Mapping[str, bytes | None]


class Publishing:
    """Lists and statuses in the views server. Every call may raise `ViewsUnavailableError`."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._publish = views.client.register_script(_PUBLISH)
        self._changed = views.client.register_script(_CHANGED)

    def publish(self, lease: Lease, status: PartitionStatus, lists: Mapping[str, bytes | None], *, whole: bool) -> None:
        """Write one cycle of a partition.

        Args:
            lease: Of the partition.
            status: Its cycle is larger than that of the status before.
            lists: Field -> bytes of each list that says something new, None for one that became empty.
            whole: These are all lists there are; others are dropped.

        Raises:
            LeaseLostError: another consumer took the partition; nothing was written.
        """
        keys = [lease.key(name) for name in ("epoch", "lists", "changed", "status")]
        args: list[str | int | bytes] = [lease.epoch, encode_status(status), status.cycle]
        args += [_WHOLE if whole else "some", status.cycle - _MARKS_KEPT_MS]
        args += [word for name, body in lists.items() for word in (name, body or b"")]
        with self._views.translated():
            written = self._publish(keys=keys, args=args)
        if not written:
            raise LeaseLostError(lease.partition)

    def read_statuses(self, partitions: Iterable[int]) -> dict[int, PartitionStatus | None]:
        """Return what each partition said last of how far it is; None where nothing was said.

        Raises:
            UnknownListFormatError: one is of another version.
        """
        numbers = list(partitions)
        with self._views.translated():
            found = self._views.client.mget([of_partition(number, "status") for number in numbers]) if numbers else []
        return {
            n: None if body is None else decode_status(octets(body)) for n, body in zip(numbers, found, strict=True)
        }

    def changed_since(self, partition: int, cycle: int) -> Changed:
        """Return the lists that changed after a cycle with the status that they go with, as of one moment.

        Args:
            partition: Its number.
            cycle: Of the status that was read before; -1 = all lists. Should the status's cycle be smaller than it,
                the views were lost in between: read all.

        Raises:
            UnknownListFormatError: the status is of another version.
        """
        keys = [of_partition(partition, name) for name in ("status", "changed", "lists")]
        with self._views.translated():
            status, *found = self._changed(keys=keys, args=[cycle])
        lists = {name.decode(): body for name, body in zip(found[::2], found[1::2], strict=True)}
        return Changed(None if status is None else decode_status(status), lists)

    def read_asks(self, partition: int) -> dict[str, int]:
        """Return for which lists the merger needs more rows than usual: field -> rows."""
        with self._views.translated():
            found = self._views.client.hgetall(of_partition(partition, "asks"))
        return {octets(name).decode(): int(rows) for name, rows in found.items()}

    def ask(self, partition: int, rows: Mapping[str, int]) -> None:
        """Say for which lists more rows are needed than usual, from now on; those asked for before and not now are not.

        Args:
            partition: Its number.
            rows: Field -> rows.
        """
        key = of_partition(partition, "asks")
        with self._views.translated():
            pipeline = self._views.client.pipeline(transaction=True)
            pipeline.delete(key)
            if rows:
                pipeline.hset(key, mapping={name: str(number) for name, number in rows.items()})
            pipeline.execute()

    def now_ms(self) -> int:
        """Return the server's clock, milliseconds since 1970 UTC."""
        return self._views.now_ms()
