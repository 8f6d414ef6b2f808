"""The view of batch that a consumer's partitions go with: the one that the merger uses."""

from collections.abc import Callable
from dataclasses import dataclass, field

from domain.batch_view import BatchView, PartitionOf
from speed_layer.consumer_partition import PartitionWork
from speed_layer.consumer_ports import BatchViews, Tell


@dataclass
class ViewInUse:
    """Follows the merger from view to view.

    Args:
        views: Batch's views.
        partition_of: Gives the partition of each item, by their ids, when it is told how many partitions there are.
        tell: Told what happened.
    """

    views: BatchViews
    partition_of: Callable[[int], PartitionOf]
    tell: Tell
    _view: BatchView | None = None
    _parts: list[BatchView] = field(default_factory=list)
    _missing: str | None = None

    @property
    def version(self) -> str | None:
        """Version of the view in use; None before any."""
        return None if self._view is None else self._view.version

    def look(self, partitions: int) -> bool:
        """Load the view that the merger uses now, if it is another one; return whether it is.

        Raises:
            ViewsUnavailableError: the views server does not answer.
            UnknownListFormatError: the view is of another version of this program.
        """
        version = self.views.acknowledged()
        if version is None or (version == self.version and len(self._parts) == partitions):
            return False
        view = self.views.load(version)
        if view is None:  # the merger will use another one soon; until then the one before stays
            if self._missing != version:
                self.tell("view is gone", view=version)
            self._missing = version
            return False
        self._view, self._parts = view, view.split(self.partition_of(partitions), partitions)
        self.tell("view taken", view=version, frontier=view.frontier.isoformat())
        return True

    def hand(self, work: PartitionWork) -> None:
        """Hand the view to a partition that is ours, if it was made of the same log."""
        if self._view is not None and work.live is not None and self._view.goes_with(work.log_id):
            work.take_view(self._parts[work.number], offset=self._view.offset(work.log_id, work.number))
