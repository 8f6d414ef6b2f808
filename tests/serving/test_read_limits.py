"""How often one reader may read one chart, and who may read at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.answers import Head
from serving.auth import KeyRing
from serving.keys import KeyFile, Limits, Role
from serving.problems import RefusedError
from serving.read_limits import ReadLimits
from serving.readers import Readers
from serving.settings import ApiSettings

pytestmark = pytest.mark.fast


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits(tmp_path: Path, clock: Clock) -> Iterator[ReadLimits]:
    found = ReadLimits(tmp_path / "reads", clock)
    yield found
    found.close()


def taken(limits: ReadLimits, reader: str, chart: str, *, rate: int = 5, tries: int = 50) -> int:
    """How many reads in a row are let through."""
    for number in range(tries):
        try:
            limits.take(reader, chart, rate=rate)
        except RefusedError:
            return number
    return tries


def test_five_a_second_for_each_reader_and_chart(limits: ReadLimits, clock: Clock) -> None:
    assert taken(limits, "127.0.0.1", "1h|IN") == 5
    assert taken(limits, "127.0.0.1", "1h|DE") == 5
    assert taken(limits, "127.0.0.2", "1h|IN") == 5
    clock.now += 0.41
    assert taken(limits, "127.0.0.1", "1h|IN") == 2
    clock.now += 60
    assert taken(limits, "127.0.0.1", "1h|IN") == 5  # nothing is saved up


def test_it_says_when_to_come_back(limits: ReadLimits) -> None:
    taken(limits, "a", "c")
    with pytest.raises(RefusedError) as caught:
        limits.take("a", "c", rate=5)

    headers = dict(caught.value.headers)
    assert (caught.value.code, headers[b"retry-after"]) == ("rate_limited", b"1")
    assert (headers[b"ratelimit-policy"], headers[b"ratelimit"]) == (b'"reads";q=5;w=1', b'"reads";r=0;t=1')


def test_workers_count_together(tmp_path: Path, clock: Clock) -> None:
    one, other = ReadLimits(tmp_path / "reads", clock), ReadLimits(tmp_path / "reads", clock)

    assert taken(one, "a", "c", tries=3) == 3
    assert taken(other, "a", "c") == 2
    one.close()
    other.close()


def test_a_wide_limit_is_as_wide_as_it_says(limits: ReadLimits, clock: Clock) -> None:
    assert taken(limits, "key", "c", rate=1000, tries=2000) == 1000
    clock.now += 0.5
    assert taken(limits, "key", "c", rate=1000, tries=2000) == 500


@pytest.mark.law
def test_readers_beyond_all_places_are_let_through_and_nobody_pays_for_another(limits: ReadLimits) -> None:
    """100,000 readers at once are more than there are places: each has its own five, or more, never less."""
    for number in range(100_000):
        limits.take(f"10.0.{number // 256}.{number % 256}", "c", rate=5)
    assert taken(limits, "192.0.2.1", "c") == 5


def test_without_open_reads_a_key_with_the_role_is_needed_but_on_this_machine(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    reader, producer = keys.add("r", (Role.READER,))[1], keys.add("p", (Role.PRODUCER,), Limits())[1]
    ring = KeyRing(tmp_path)
    ring.look()
    closed = Readers(ApiSettings(home=tmp_path, run=tmp_path, log_url="", open_reads=False), ring=ring)
    open_ = Readers(ApiSettings(home=tmp_path, run=tmp_path, log_url=""), ring=ring)

    def head(key: str | None, client: str = "192.0.2.1") -> Head:
        said = {} if key is None else {b"authorization": f"Bearer {key}".encode()}
        return Head("GET", "/v1/top", b"", said, b"id", client)

    for key, code in ((None, "key_missing"), ("lb_0123456789ab_x", "key_invalid"), (producer, "role_missing")):
        with pytest.raises(RefusedError) as caught:
            closed.admit(head(key))
        assert caught.value.code == code
        open_.admit(head(key))
    closed.admit(head(reader))
    closed.admit(head(None, "127.0.0.1"))
    assert (closed.cache_scope, open_.cache_scope) == (b"private", b"public")
    closed.close()
    open_.close()


def test_a_key_has_its_own_limit_wherever_it_comes_from(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    wide = keys.add("wide", (Role.READER,), Limits(requests_per_second=40))[1]
    plain = keys.add("plain", (Role.READER,))[1]
    ring = KeyRing(tmp_path)
    ring.look()
    readers = Readers(ApiSettings(home=tmp_path, run=tmp_path, log_url="", reads_per_second=5), ring=ring)

    def let_through(key: str) -> int:
        head = Head("GET", "/v1/top", b"", {b"authorization": f"Bearer {key}".encode()}, b"id", "192.0.2.1")
        for number in range(100):
            try:
                readers.take(head._replace(client=f"192.0.2.{number}"), "c")
            except RefusedError:
                return number
        return 100

    assert 40 <= let_through(wide) < 60
    assert 5 <= let_through(plain) < 8
    readers.close()
