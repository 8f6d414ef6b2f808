import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Sequence

import pytest

from serving.bodies import BodyReader, ClientLeftError, Message, inflated
from serving.problems import RefusedError
from serving.settings import MAX_BODY_BYTES

pytestmark = pytest.mark.fast


def read(messages: Sequence[Message], *, length: bytes | None = None, free: int = 1 << 30) -> bytes:
    """Read a body that comes in these messages; then the client says nothing more."""
    left = list(messages)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    async def reading() -> bytes:
        reader = BodyReader(seconds=0.05, most_bytes=free)
        watching = asyncio.create_task(reader.watch())
        try:
            return await reader.read(receive, length=length)
        finally:
            watching.cancel()

    return asyncio.run(reading())


def piece(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def code(messages: Sequence[Message], *, length: bytes | None = None, free: int = 1 << 30) -> str:
    with pytest.raises(RefusedError) as caught:
        read(messages, length=length, free=free)
    return caught.value.code


def test_pieces_make_one_body() -> None:
    assert read([piece(b"ab", more=True), piece(b"", more=True), piece(b"c")]) == b"abc"


def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    half = b"x" * (MAX_BODY_BYTES // 2)

    assert len(read([piece(half, more=True), piece(half)])) == MAX_BODY_BYTES
    assert code([piece(half, more=True), piece(half + b"x")]) == "body_too_large"
    assert code([piece(half, more=True), piece(half, more=True), piece(b"x", more=True)]) == "body_too_large"
    assert code([piece(half + half + b"x")]) == "body_too_large"


@pytest.mark.parametrize("length", [b"4194305", b"9" * 40, b"-1", b"nonsense"])
def test_a_body_that_says_it_is_too_large_is_not_read_at_all(length: bytes) -> None:
    assert code([], length=length) == "body_too_large"


def test_a_body_that_does_not_come_is_cut_off() -> None:
    assert code([piece(b"{", more=True)]) == "too_slow"
    assert code([]) == "too_slow"


def test_a_client_that_leaves_gets_no_answer() -> None:
    with pytest.raises(ClientLeftError):
        read([piece(b"{", more=True), {"type": "http.disconnect"}])


def test_bodies_together_have_a_limit_too_and_give_back_what_they_took() -> None:
    assert code([], length=b"11", free=10) == "busy"

    async def two_in_turn() -> None:
        reader = BodyReader(seconds=1, most_bytes=10)

        async def receive() -> Message:
            return piece(b"0123456789")

        for _ in range(2):
            assert await reader.read(receive, length=b"10") == b"0123456789"

    asyncio.run(two_in_turn())


def inflating(body: bytes, encoding: bytes | None = b"gzip") -> str:
    with pytest.raises(RefusedError) as caught:
        inflated(body, encoding)
    return caught.value.code


def test_gzip_is_inflated_members_and_all() -> None:
    assert inflated(gzip.compress(b"ab") + gzip.compress(b"c"), b"GZIP") == b"abc"
    assert inflated(b"plain", None) == inflated(b"plain", b"identity") == b"plain"


def test_inflating_ends_at_the_limit() -> None:
    assert len(inflated(gzip.compress(bytes(MAX_BODY_BYTES)), b"gzip")) == MAX_BODY_BYTES
    assert inflating(gzip.compress(bytes(MAX_BODY_BYTES + 1))) == "body_too_large"
    assert inflating(gzip.compress(bytes(MAX_BODY_BYTES)) + gzip.compress(b"x")) == "body_too_large"


def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = gzip.compress(bytes(64 << 20), 1)
    tracemalloc.start()

    assert inflating(bomb) == "body_too_large"

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * MAX_BODY_BYTES


@pytest.mark.parametrize(
    "body",
    [b"no gzip", gzip.compress(b"abc")[:-1], gzip.compress(b"abc") + b"garbage", zlib.compress(b"abc"),
     gzip.compress(b"a") * 65, gzip.compress(b"abc" * 100)[:-9] + b"\0" * 9],
    ids=["none", "cut", "garbage", "zlib", "members", "damaged"],
)  # fmt: skip
def test_what_is_no_gzip_is_refused(body: bytes) -> None:
    assert inflating(body) == "invalid_gzip"


@pytest.mark.parametrize("encoding", [b"br", b"gzip, gzip", b"deflate"])
def test_other_encodings_are_refused(encoding: bytes) -> None:
    assert inflating(b"", encoding) == "unsupported_encoding"
