"""Promise 1, as a client sees it: what was acknowledged is in bronze once and is counted, whatever was killed."""

import random
import sys
from collections import Counter
from pathlib import Path
from threading import Thread

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from domain.tables import HOURLY_COUNTS, PLAYS
from ingest.lake_reader import LakeReader
from tests.counted_lakes import recount
from tests.faults.sending import FIRST_HOUR, Client, Event, Killer, made_up_events, requests_of
from tests.lakes import at
from tests.stacks import running_stack, until

pytestmark = pytest.mark.spark

EVENTS = 20_000
ROUNDS = 7  # in each of which log server, lake writer and a worker of the API are killed once
SEED = 20_261_114
POSITION = ["log_id", "log_partition", "log_ms", "log_sequence", "log_index"]
COMMAND = (sys.executable, "-m", "tests.faults.run_stack")


@pytest.mark.timeout(1500)  # twenty restarts with growing waits, then a recount
def test_whatever_is_killed_each_acknowledged_event_is_in_bronze_and_counted_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    events = made_up_events(EVENTS, SEED)
    requests = requests_of(events, SEED)
    victims = ["log", "lake-writer", "api"] * ROUNDS
    chance.shuffle(victims)
    with running_stack(tmp_path / "home", command=COMMAND) as stack:
        client, killer = Client(stack), Killer(stack, chance)

        for number, victim in enumerate(victims):
            share = requests[number :: len(victims)]
            again = chance.sample(share, len(share) // 20)  # sent twice on purpose
            sender = Thread(target=client.send, args=([*share, *again],))
            sender.start()
            killer.kill(victim, within=0.6)
            sender.join()

        assert killer.kills.total() >= 20
        assert set(client.acknowledged) == {event["event_id"] for event in events}
        until(lambda: set(client.acknowledged) <= set(stack.ids_in_bronze()), "every acknowledged event is in bronze")
        assert stack.stop() == 0, stack.said

    lake = tmp_path / "home" / "lake"
    assert_in_bronze(lake, client)
    recount(spark, lake, at(12, day=25))
    assert counted(lake) == model(events)


def assert_in_bronze(lake: Path, client: Client) -> None:
    rows = DeltaTable(lake / PLAYS.name).to_pyarrow_table(columns=["event_id", *POSITION]).to_pylist()
    times = Counter(row["event_id"] for row in rows)
    once = client.once()
    assert len(once) > EVENTS / 2, client.failures  # what the judgement stands on
    assert client.failures, "nothing ever failed: the kills met nothing"
    assert {event_id: times[event_id] for event_id in once} == dict.fromkeys(once, 1)
    assert all(1 <= times[event_id] <= sent for event_id, sent in client.sent.items())
    places = Counter(tuple(row[name] for name in POSITION) for row in rows)
    assert not {place: count for place, count in places.items() if count > 1}


def counted(lake: Path) -> Counter[tuple[str, str, int]]:
    """What the release says, by item, region and hour."""
    with LakeReader(lake) as reader:
        scan = reader.table(HOURLY_COUNTS).scan()
        rows = reader.files.rows(f"SELECT item_id, region, event_hour, counted FROM {scan}")
    return Counter({(item, region, hour): count for item, region, hour, count in rows})


def model(events: list[Event]) -> Counter[tuple[str, str, int]]:
    """The same in plain Python: each id once."""
    counts: Counter[tuple[str, str, int]] = Counter()
    for event in {event["event_id"]: event for event in events}.values():
        hour = FIRST_HOUR.hour + (hours_after(event))
        counts[event["item_id"], event["region"], hour] += event["count"]
    return counts


def hours_after(event: Event) -> int:
    return int(event["event_time"][11:13]) - FIRST_HOUR.hour
