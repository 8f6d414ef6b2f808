"""The log does what a plain Python list would do: appends, offsets, leases, trims and reads in any order."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from domain.log import BEGINNING, LAKE_READER, EntryId, Partition, Stream, TrimmedError
from ingest.redis_log import RedisLog
from tests.servers import LogServer, log_server

pytestmark = pytest.mark.redis

PARTITIONS = [Partition(Stream.PLAYS, 0), Partition(Stream.PLAYS, 1)]
LEASES = {"kept": None, "live": timedelta(hours=1), "ended": timedelta(seconds=-1)}
partitions = st.sampled_from(PARTITIONS)
readers = st.sampled_from(["lake_writer", "speed", "pin"])


class LogModel(RuleBasedStateMachine):
    """Entries, offsets and marks as lists and dictionaries, beside the real log."""

    server: LogServer

    def __init__(self) -> None:
        super().__init__()
        with self.server.client() as client:
            client.flushall()
        self.log = RedisLog.open(self.server.address, partitions={Stream.PLAYS: 2, Stream.SCORES: 1})
        self.entries: dict[Partition, list[tuple[EntryId, bytes]]] = {p: [] for p in PARTITIONS}
        self.offsets: dict[tuple[str, Partition], EntryId] = {}
        self.holds = {LAKE_READER: True}
        self.mark = dict.fromkeys(PARTITIONS, BEGINNING)

    def teardown(self) -> None:
        self.log.close()

    def place(self, partition: Partition, number: int) -> EntryId:
        """Some place of a partition: the beginning, or an entry that it ever had."""
        places = [BEGINNING, *(at for at, _ in self.entries[partition])]
        return places[number % len(places)]

    @rule(partition=partitions, count=st.integers(1, 3))
    def append(self, partition: Partition, count: int) -> None:
        texts = [f"{partition}/{len(self.entries[partition]) + n}".encode() for n in range(count)]
        ids = self.log.append([(partition, text) for text in texts])
        self.entries[partition] += zip(ids, texts, strict=True)

    @rule(reader=readers, partition=partitions, number=st.integers(0, 20), lease=st.sampled_from(sorted(LEASES)))
    def commit(self, reader: str, partition: Partition, number: int, lease: str) -> None:
        at = self.place(partition, number)
        self.log.commit_offsets(reader, {partition: at}, lease=LEASES[lease])
        self.holds[reader] = lease != "ended"
        self.offsets[reader, partition] = max(at, self.offsets.get((reader, partition), BEGINNING))

    @rule(reader=readers, lease=st.sampled_from(sorted(LEASES)))
    def renew_or_let_end(self, reader: str, lease: str) -> None:
        self.log.commit_offsets(reader, {}, lease=LEASES[lease])
        self.holds[reader] = lease != "ended"

    @precondition(lambda self: self.holds)
    @rule(number=st.integers(0, 2))
    def remove(self, number: int) -> None:
        reader = sorted(self.holds)[number % len(self.holds)]
        self.log.remove_reader(reader)
        del self.holds[reader]
        self.offsets = {key: at for key, at in self.offsets.items() if key[0] != reader}

    @rule(partition=partitions)
    def trim(self, partition: Partition) -> None:
        holding = [self.offsets.get((r, partition), BEGINNING) for r, holds in self.holds.items() if holds]
        if holding:
            self.mark[partition] = max(self.mark[partition], min(holding))

        assert self.log.trim(partition) == self.mark[partition]

    @rule(partition=partitions, number=st.integers(0, 20), limit=st.integers(1, 5))
    def read(self, partition: Partition, number: int, limit: int) -> None:
        after = self.place(partition, number)
        if after < self.mark[partition]:
            with pytest.raises(TrimmedError):
                self.log.read(partition, after=after, limit=limit)
            return
        reading = self.log.read(partition, after=after, limit=limit)
        rest = [(at, body) for at, body in self.entries[partition] if at > after]
        assert [(entry.id, entry.body) for entry in reading.entries] == rest[:limit]
        assert reading.reached_end == (len(rest) < limit)

    @invariant()
    def ends_and_lengths_are_those_of_the_lists(self) -> None:
        ends, lengths = self.log.end_offsets(Stream.PLAYS), self.log.lengths(Stream.PLAYS)
        for partition, entries in self.entries.items():
            assert ends[partition] == (entries[-1][0] if entries else BEGINNING)
            assert lengths[partition] == sum(at > self.mark[partition] for at, _ in entries)

    @invariant()
    def offsets_are_the_largest_ever_committed(self) -> None:
        for reader in self.holds:
            found = self.log.offsets(reader, Stream.PLAYS)
            assert found == {p: self.offsets.get((reader, p), BEGINNING) for p in PARTITIONS}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogServer]:
    with log_server(tmp_path_factory.mktemp("log")) as running:
        yield running


def test_the_log_does_what_the_lists_do(server: LogServer) -> None:
    LogModel.server = server
    run_state_machine_as_test(LogModel, settings=settings(max_examples=40, stateful_step_count=30, deadline=None))
