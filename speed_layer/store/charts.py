"""Ready charts in the views server: one merger writes them, behind a fence, and the API reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from domain.errors import LakeboardError
from domain.live_chart import LiveChart
from domain.live_windows import LiveWindow
from speed_layer.store.connection import Views, octets
from speed_layer.store.keys import CHARTS_EPOCH, CHARTS_LEASE, CHARTS_STATUS, MERGED_VIEW, READY, field
from speed_layer.store.leases import ACQUIRE, RELEASE, RENEW, ViewsUnavailableError
from speed_layer.store.ready import ChartsStatus, decode_chart, decode_charts_status, encode_chart, encode_charts_status

_READ_SECONDS: Final = 2.0
_CONNECTIONS: Final = 16  # of one reader; more reads at once wait for their turn

Name = tuple[LiveWindow, str]

# KEYS: lease, epoch, status, ready, view. ARGV: epoch, milliseconds, status, whether all charts are here, version of
# the view ('' = none), then pairs of field and chart ('' = it is gone).
_WRITE = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if ARGV[4] == '1' then redis.call('DEL', KEYS[4]) end
for i = 6, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[4], ARGV[i])
  else redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1]) end
end
redis.call('SET', KEYS[3], ARGV[3])
if ARGV[5] ~= '' then redis.call('SET', KEYS[5], ARGV[5]) end
return 1
"""


class MergerReplacedError(LakeboardError):
    """Another merger writes the charts, or the views server forgot that we do; nothing was written."""

    def __str__(self) -> str:
        return "another merger writes the charts now: nothing was written; one is enough, stop one of them"


@dataclass(frozen=True, slots=True)
class ChartReading:
    """What one read found, all of one moment.

    Attributes:
        now_ms: The views server's clock, milliseconds since 1970 UTC.
        status: None before a merger wrote.
        chart: None where there is none of that window and region.
    """

    now_ms: int
    status: ChartsStatus | None
    chart: LiveChart | None


class ChartsWriter:
    """The one writer of ready charts. Every call may raise `ViewsUnavailableError`."""

    def __init__(self, views: Views, *, lease_ms: int = 5000) -> None:
        self._views = views
        self._lease_ms = lease_ms
        self._acquire = views.client.register_script(ACQUIRE)
        self._renew = views.client.register_script(RENEW)
        self._write = views.client.register_script(_WRITE)
        self._release = views.client.register_script(RELEASE)

    def acquire(self) -> str | None:
        """Become the writer and return the epoch to write under; None while another one is."""
        with self._views.translated():
            before = octets(self._views.client.get(CHARTS_EPOCH) or b"").decode()
            epoch = f"{int(before.partition('-')[0] or 0) + 1}-{token_hex(8)}"
            taken = self._acquire(keys=[CHARTS_LEASE, CHARTS_EPOCH], args=[before, epoch, self._lease_ms])
        return epoch if taken else None

    def renew(self, epoch: str) -> None:
        """Keep the lease while there is nothing to write yet.

        Raises:
            MergerReplacedError: another one has been given an epoch since.
        """
        with self._views.translated():
            kept = self._renew(keys=[CHARTS_LEASE, CHARTS_EPOCH], args=[epoch, self._lease_ms])
        if not kept:
            raise MergerReplacedError

    def write(
        self, epoch: str, charts: Mapping[Name, LiveChart | None], status: ChartsStatus, *, anew: bool = False
    ) -> int:
        """Write charts and status in one step, and keep the lease; return the bytes written.

        Args:
            epoch: As of `acquire`.
            charts: Those that are different; None = there is none any more.
            status: Of this cycle; its view is acknowledged by it.
            anew: These are all charts: others go.

        Raises:
            MergerReplacedError: another one has been given an epoch since; nothing was written.
        """
        pairs = [part for name, chart in charts.items() for part in (field(*name), _encoded(chart))]
        keys = [CHARTS_LEASE, CHARTS_EPOCH, CHARTS_STATUS, READY, MERGED_VIEW]
        said = encode_charts_status(status)
        with self._views.translated():
            args = [epoch, self._lease_ms, said, int(anew), status.view or "", *pairs]
            if not self._write(keys=keys, args=args):
                raise MergerReplacedError
        return len(said) + sum(len(part) for part in pairs)

    def release(self, epoch: str) -> None:
        """Let another one write at once."""
        with self._views.translated():
            self._release(keys=[CHARTS_LEASE], args=[epoch])


class ChartsReader:
    """Reads ready charts for one event loop; close it after use.

    Args:
        address: Of the views server, as of `speed_layer.store.connection.connect`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        pool = BlockingConnectionPool.from_url(
            address,
            max_connections=_CONNECTIONS,
            timeout=_READ_SECONDS,
            socket_timeout=_READ_SECONDS,
            socket_connect_timeout=_READ_SECONDS,
            retry=Retry(NoBackoff(), 1),
            protocol=3,
        )
        self._client = Redis.from_pool(pool)
        self._said: bytes | None = None
        self._status: ChartsStatus | None = None

    async def read_status(self) -> ChartReading:
        """Return the status without a chart; the same object as before while nothing was written.

        Raises:
            ViewsUnavailableError, UnknownListFormatError: as `read`.
        """
        now_ms, status = await self._asked()
        return ChartReading(now_ms, status, None)

    async def read(self, kind: LiveWindow, region: str) -> ChartReading:
        """Return a chart and the status that goes with it.

        Raises:
            ViewsUnavailableError: the server does not answer.
            UnknownListFormatError: another version of this program wrote there.
        """
        now_ms, status, body = await self._asked(field(kind, region))
        return ChartReading(now_ms, status, None if body is None else decode_chart(body))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _asked(self, *charts: str) -> list[Any]:
        """Return the server's clock in milliseconds, the status, and the bytes of charts, all of one moment.

        The status is the same object for as long as nothing is written, whatever is asked for.
        """
        try:
            async with self._client.pipeline(transaction=True) as pipeline:
                pipeline.time()
                pipeline.get(CHARTS_STATUS)
                for chart in charts:
                    pipeline.hget(READY, chart)
                (seconds, microseconds), said, *bodies = await pipeline.execute()
        except (RedisError, OSError) as error:
            raise ViewsUnavailableError(self.address, str(error) or type(error).__name__) from error
        if said != self._said:
            self._status = None if said is None else decode_charts_status(said)
            self._said = said
        return [seconds * 1000 + microseconds // 1000, self._status, *bodies]


def _encoded(chart: LiveChart | None) -> bytes:
    return b"" if chart is None else encode_chart(chart)
