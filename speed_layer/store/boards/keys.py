"""Names of the keys of boards. `docs/redis-keys.md` describes them for people.

All keys of a shard carry its hash tag, so that one script may touch all of them. `<g>` is `lb:board:{s}:g<generation>`,
all boards of the shard as they were made at once; a rebuild makes the next one beside the one that is live. `<b>` is
`<board>:<version>`.

lb:board:{s}:live         the generation that readers take
lb:board:{s}:next         a generation that is to become live once it is as far
lb:board:{s}:made         the highest number of a generation so far
<g>:state                 hash: log id, the position applied of each partition, the log time that is applied, ready
<g>:boards                hash: board -> its version in force, buckets of overlay and base, pages, members of a page,
                          players of the base (the pointer)
<g>:<b>:p:<n>             page n of the base: a sorted set of 512 members, all scores 0
<g>:<b>:index             sorted set: the first member of each page
<g>:<b>:m:<k>             bucket k of the base map: hash player -> entry
<g>:<b>:removed           sorted set: members of the base that no longer hold
<g>:<b>:over              sorted set: live members
<g>:<b>:o:<k>             bucket k of the overlay map: hash player -> entry, empty for one who is on the base and gone
<g>:shadow:<board>        hash: banned player -> the entry that would stand
<g>:ledger:<day>          hash: match -> who was first, of scores that the log took on a day
<g>:held                  hash: match -> a score that waits for approval
<g>:bans                  hash: banned player -> when it ends
"""

from typing import Final
from zlib import crc32

PAGE_MEMBERS: Final = 512
OVERLAY_BUCKETS: Final = 64  # of a board without a base; a rebuild chooses by the number of players
NEW_BOARD: Final = f"0 {OVERLAY_BUCKETS} 0 0 {PAGE_MEMBERS} 0"


def of_shard(shard: int, name: str = "") -> str:
    """Return a key of a shard, or the beginning of all of them."""
    return f"lb:board:{{{shard}}}:{name}"


def of_generation(shard: int, generation: int, name: str = "") -> str:
    """Return a key of a generation, or the beginning of all of them."""
    return of_shard(shard, f"g{generation}:{name}")


def bucket_hash(player_id: str) -> int:
    """Return the number that says, modulo buckets, in which one a player is; 32 bits, exact in any language."""
    return crc32(player_id.encode())
