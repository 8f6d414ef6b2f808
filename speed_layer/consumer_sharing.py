"""How several consumers share the partitions: each takes its part, and what nobody takes."""

from collections import Counter
from collections.abc import Sequence
from secrets import token_hex

from speed_layer.consumer_partition import PartitionWork
from speed_layer.consumer_ports import Leases

_PATIENCE = 3  # looks: so long a partition is left to consumers that have fewer, and so long one too many is kept


class Sharing:
    """Decides which partitions to take and to leave. Wrong guesses cost work, never a number: there is the fence.

    Args:
        leases: In the views server.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._name = token_hex(8)
        self._free: Counter[int] = Counter()  # looks in which a partition was free, in a row
        self._too_many = 0  # looks in which we had too many, in a row
        self._share = 0
        self._ours = 0

    def look(self, works: Sequence[PartitionWork]) -> None:
        """Say that we are there, and see who else is and what is free; before each round of `may_take`."""
        consumers = self._leases.present(self._name)
        free = self._leases.free([work.number for work in works])
        self._free = Counter({number: self._free[number] + 1 for number in free})
        for work in works:
            if work.lease is None and work.number not in free:
                work.live = None  # what we counted of it is of no use while another one counts on
        self._share = -(-len(works) // max(consumers, 1))
        self._ours = sum(work.lease is not None for work in works)
        self._too_many = self._too_many + 1 if self._ours > self._share else 0

    def may_take(self, work: PartitionWork) -> bool:
        """Say whether to try to take a partition: it is free, and of our part or nobody's."""
        looks = self._free[work.number]
        return looks > _PATIENCE or (looks > 0 and self._ours < self._share)

    def taken(self) -> None:
        """Count a partition that was taken."""
        self._ours += 1

    def to_leave(self, works: Sequence[PartitionWork]) -> PartitionWork | None:
        """Return the partition that another consumer should have, if we have had too many for some time."""
        if self._too_many <= _PATIENCE:
            return None
        self._too_many = 0
        return next((work for work in reversed(works) if work.lease is not None), None)

    def leave(self) -> None:
        """Say that we are not there any more."""
        self._leases.absent(self._name)
