"""Names of keys in the views server. `docs/redis-keys.md` describes them for people.

Braces are hash tags: what one script or transaction touches stands on one node of a cluster.

lb:speed:{p}:lease     who works on partition p of the plays, with an expiry
lb:speed:{p}:epoch     grows by 1 each time the lease changes hands; a writer of an older epoch is refused (the fence)
lb:speed:{p}:manifest  the checkpoint in force: which blobs make it up, and up to where the log is in them
lb:speed:{p}:blobs     set: names of all blobs, each noted before it is written, so that what is left over is found
lb:speed:{p}:blob:*    parts of checkpoints; written under new names, never changed
lb:speed:{p}:lists     hash: <window>|<region> -> what the partition says of it
lb:speed:{p}:changed   sorted set: <window>|<region> -> number of the cycle that changed it last
lb:speed:{p}:status    up to where the partition has read, written with each cycle
lb:speed:{p}:asks      hash: <window>|<region> -> rows that the merger needs instead of the usual number
lb:speed:consumers     sorted set: consumer -> when it was there last; they share the partitions by that

lb:batch:view          version of the view in force (`lakeboard publish` swaps it)
lb:batch:{v}:meta      frontier, release, offsets of a view
lb:batch:{v}:items     hash: number of a part -> ids of the view's items, which stand here once
lb:batch:{v}:regions   hash: region -> its counts

lb:{charts}:lease        who merges, with an expiry
lb:{charts}:epoch        a new one each time the lease is taken; a writer of an older one is refused (the fence)
lb:{charts}:view         version of the view that the merger has loaded: consumers may use it from now on
lb:{charts}:ready        hash: <window>|<region> -> a chart as it is served
lb:{charts}:status       how the merger is, written with each cycle
"""

from typing import Final

from domain.live_windows import LiveWindow

CONSUMERS: Final = "lb:speed:consumers"
BATCH_VIEW: Final = "lb:batch:view"
MERGED_VIEW: Final = "lb:{charts}:view"
READY: Final = "lb:{charts}:ready"
CHARTS_STATUS: Final = "lb:{charts}:status"
CHARTS_LEASE: Final = "lb:{charts}:lease"
CHARTS_EPOCH: Final = "lb:{charts}:epoch"


def of_partition(number: int, name: str) -> str:
    """Return a key of a partition: `lease`, `epoch`, `manifest`, `lists`, `changed`, `status`, `asks`, `blob:...`."""
    return f"lb:speed:{{{number}}}:{name}"


def of_view(version: str, name: str) -> str:
    """Return a key of a batch view: `meta`, `items` or `regions`."""
    return f"lb:batch:{{{version}}}:{name}"


def version_in(key: bytes) -> str:
    """Return the version of the view that a key made by `of_view` belongs to."""
    return key.decode().partition("{")[2].partition("}")[0]


def field(kind: LiveWindow, region: str) -> str:
    """Return the field of a window and region."""
    return f"{kind.value}|{region}"


def of_field(name: str | bytes) -> tuple[LiveWindow, str]:
    """Return the window and region of a field."""
    kind, _, region = (name.decode() if isinstance(name, bytes) else name).partition("|")
    return LiveWindow(kind), region
