from datetime import UTC, datetime, timedelta

import pytest

from domain.frontier import certifiable_end, log_in_use, read_to_of_log
from domain.policy import Policy
from domain.windows import EPOCH

pytestmark = pytest.mark.fast

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
TEN_MS = int(TEN.timestamp() * 1000)
POLICY = Policy(grace=timedelta(minutes=10))


def test_the_slowest_partition_of_the_log_in_use_bounds_the_frontier() -> None:
    transactions = {
        "log_in_use/a": 1,
        "read_to/a/0": TEN_MS + 11 * 60_000,
        "read_to/a/1": TEN_MS + 600_000,
        "lake_writer/a/0": 5,
        "lake_writer/import/x/0": 5,
    }
    read_to = read_to_of_log(transactions)

    assert read_to == {"read_to/a/0": TEN + timedelta(minutes=11), "read_to/a/1": TEN + timedelta(minutes=10)}
    assert certifiable_end(read_to.values(), TEN + timedelta(days=1), POLICY) == TEN
    slower = transactions | {"read_to/a/1": TEN_MS + 599_999}
    assert certifiable_end(read_to_of_log(slower).values(), TEN, POLICY) == TEN - timedelta(hours=1)


def test_a_replaced_log_holds_nothing_back_and_counts_again_when_it_comes_back() -> None:
    transactions = {"log_in_use/a": 1, "read_to/a/0": 1, "log_in_use/b": 2, "read_to/b/0": 2, "read_to/ab/0": 3}

    assert log_in_use(transactions) == "b"
    assert read_to_of_log(transactions) == {"read_to/b/0": EPOCH + timedelta(milliseconds=2)}
    assert log_in_use(transactions | {"log_in_use/a": 3}) == "a"


def test_without_a_log_only_the_clock_bounds_the_frontier() -> None:
    assert log_in_use({"lake_writer/import/x/0": 5}) is None
    assert read_to_of_log({"lake_writer/import/x/0": 5}) == {}
    assert certifiable_end([], TEN + timedelta(minutes=10), POLICY) == TEN
