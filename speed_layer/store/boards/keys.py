"""Names of the keys of boards. `docs/redis-keys.md` describes them for people.

All keys of a shard carry its hash tag, so that one script may touch all of them. `<b>` is `<board>:<version>`.

lb:board:{s}:state        hash: log id, the position applied of each partition, the log time that is applied, ready
lb:board:{s}:boards       hash: board -> its version in force, buckets of overlay and base, pages, members of a page,
                          players of the base (the pointer)
lb:board:{s}:<b>:p:<n>    page n of the base: a sorted set of 512 members, all scores 0
lb:board:{s}:<b>:index    sorted set: the first member of each page
lb:board:{s}:<b>:m:<k>    bucket k of the base map: hash player -> entry
lb:board:{s}:<b>:removed  sorted set: members of the base that no longer hold
lb:board:{s}:<b>:over     sorted set: live members
lb:board:{s}:<b>:o:<k>    bucket k of the overlay map: hash player -> entry, empty for one who is on the base and gone
lb:board:{s}:shadow:<board>  hash: banned player -> the entry that would stand
lb:board:{s}:ledger:<day> hash: match -> who was first, of scores that the log took on a day
lb:board:{s}:held         hash: match -> a score that waits for approval
lb:board:{s}:bans         hash: banned player -> when it ends
"""

from typing import Final
from zlib import crc32

PAGE_MEMBERS: Final = 512
OVERLAY_BUCKETS: Final = 64  # of a board without a base; a rebuild chooses by the number of players
NEW_BOARD: Final = f"0 {OVERLAY_BUCKETS} 0 0 {PAGE_MEMBERS} 0"


def of_shard(shard: int, name: str = "") -> str:
    """Return a key of a shard, or the beginning of all of them."""
    return f"lb:board:{{{shard}}}:{name}"


def bucket_hash(player_id: str) -> int:
    """Return the number that says, modulo buckets, in which one a player is; 32 bits, exact in any language."""
    return crc32(player_id.encode())
