from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from serving.keys import Key, KeyFile, Limits, Role
from serving.limits import RateLimits, new_limits_file
from serving.problems import RefusedError
from serving.settings import ApiSettings

pytestmark = pytest.mark.fast


class Watch:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def limits(run: Path, watch: Callable[[], float]) -> RateLimits:
    return RateLimits(ApiSettings(home=run, run=run, log_url=""), watch)


def key(home: Path, **own: int) -> Key:
    return KeyFile(home).add("shop", [Role.PRODUCER], Limits(**own))[0]


def refused(take: Callable[[], None]) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        take()
    assert caught.value.code == "rate_limited"
    return caught.value


def test_a_key_may_send_its_rate_each_second_and_no_more(tmp_path: Path) -> None:
    watch = Watch()
    one, found = limits(tmp_path, watch), key(tmp_path, events_per_second=2000)

    one.take_events(found, 1000)
    one.take_events(found, 1000)
    refused(lambda: one.take_events(found, 1))
    watch.seconds += 0.5
    one.take_events(found, 1000)
    refused(lambda: one.take_events(found, 1))


def test_what_is_refused_costs_nothing_and_says_when_to_come_back(tmp_path: Path) -> None:
    watch = Watch()
    one, found = limits(tmp_path, watch), key(tmp_path, requests_per_second=2)
    one.take_request(found)
    one.take_request(found)

    refusals = [refused(lambda: one.take_request(found)) for _ in range(100)]

    assert {refusal.status for refusal in refusals} == {429}
    assert dict(refusals[-1].headers) == {
        b"retry-after": b"1",
        b"ratelimit-policy": b'"requests";q=2;w=1',
        b"ratelimit": b'"requests";r=0;t=1',
    }
    watch.seconds += 0.5
    one.take_request(found)


def test_a_full_request_passes_a_low_limit_once_in_a_while(tmp_path: Path) -> None:
    watch = Watch()
    one, found = limits(tmp_path, watch), key(tmp_path, events_per_second=10)

    one.take_events(found, 1000)
    assert dict(refused(lambda: one.take_events(found, 1000)).headers)[b"retry-after"] == b"100"
    watch.seconds += 100
    one.take_events(found, 1000)


def test_workers_share_a_key_and_keys_share_nothing(tmp_path: Path) -> None:
    watch = Watch()
    found, other = key(tmp_path, events_per_second=1000), key(tmp_path, events_per_second=1000)
    workers = [limits(tmp_path, watch) for _ in range(4)]

    taken = 0
    for _ in range(300):
        for worker in workers:
            try:
                worker.take_events(found, 1)
            except RefusedError:
                continue
            taken += 1

    assert taken == 1000
    workers[0].take_events(other, 1000)


def test_the_general_limits_hold_for_keys_without_their_own(tmp_path: Path) -> None:
    watch = Watch()
    one, found = limits(tmp_path, watch), key(tmp_path)

    for _ in range(500):
        one.take_events(found, 1000)
    refused(lambda: one.take_events(found, 1000))
    one.take_events(msgspec.structs.replace(found, number=found.number + 1), 1000)


def test_a_new_start_begins_with_full_buckets(tmp_path: Path) -> None:
    watch = Watch()
    found = key(tmp_path, requests_per_second=1)
    first = limits(tmp_path, watch)
    first.take_request(found)
    first.close()

    new_limits_file(tmp_path / "api-limits")
    limits(tmp_path, watch).take_request(found)
