"""Partitions that count for real and publish to a real views server, and a merger of what they say."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from domain.speed_policy import SpeedPolicy
from speed_layer.store.charts import ChartsWriter
from speed_layer.store.connection import Views, connect
from speed_layer.store.keys import field
from speed_layer.store.lists import encode_list
from speed_layer.store.merge_loop import MergeJob, Merging
from speed_layer.store.publishing import Publishing
from speed_layer.store.state import StateStore
from tests.speed_layer.live_model import START, Played
from tests.speed_layer.merging import Saying, partition_of
from tests.views_server import ViewsServer

AT = START + timedelta(seconds=1)  # not where a window of 10 seconds ends


class Publishers:
    """Partitions that count for real and write what they say, as the consumer does."""

    def __init__(self, views: Views, partitions: int = 2, policy: SpeedPolicy | None = None) -> None:
        self._views = views
        self._policy = policy or SpeedPolicy()
        self._partitions = partitions
        self._cycle = 0
        self.start_over()

    def start_over(self) -> None:
        """Be a consumer that has just started and knows nothing."""
        self.parts = [Saying(self._policy) for _ in range(self._partitions)]
        self._lists: list[dict[str, bytes | None]] = [{} for _ in self.parts]
        self.again()

    def again(self) -> None:
        """Take the partitions and say all of them, as a consumer does that finds that its views are lost."""
        self._views.client.delete(*[f"lb:speed:{{{n}}}:lease" for n in range(len(self.parts))])
        store = StateStore(self._views)
        self.leases = [store.acquire(number) for number in range(len(self.parts))]
        self._whole = True

    def say(self, plays: list[Played], *, now: datetime | None = None, **status: object) -> None:
        """Count plays and say what changed, at the log time `now`: that of the last play by default."""
        now = now or plays[-1].logged
        self._cycle += 1
        for number, part in enumerate(self.parts):
            part.read([play for play in plays if partition_of(play.item, len(self.parts)) == number])
            part.live.advance(now)
            said = part.publish(cycle=self._cycle, **status)
            lists = {field(*name): None if one is None else encode_list(one) for name, one in said.changed.items()}
            self._lists[number] |= lists
            lease, said_now = self.leases[number], said.status
            assert lease is not None
            assert said_now is not None
            all_or_new = self._lists[number] if self._whole else lists
            Publishing(self._views).publish(lease, said_now, all_or_new, whole=self._whole)
        self._whole = False


def job(server: ViewsServer, **other: object) -> MergeJob:
    plain: Mapping[str, object] = {
        "connect": lambda: connect(server.address),
        "partitions": 2,
        "partition_of": lambda items: [partition_of(item, 2) for item in items],
        "list_size": 128,
        "load_view": lambda _, __: None,
        "say": lambda *_: None,
        "report": lambda _: None,
    }
    return MergeJob(**{**plain, **other})  # type: ignore[arg-type]  # of many kinds


def merging(server: ViewsServer, views: Views, **other: object) -> Merging:
    writer = ChartsWriter(views)
    epoch = writer.acquire()
    assert epoch is not None
    return Merging(job(server, **other), views, writer=writer, epoch=epoch)


def plays(*items: str, region: str = "IN", first: int = 0, at: datetime = AT) -> list[Played]:
    return [Played(first + n, at, first + n, item, region, at) for n, item in enumerate(items)]
