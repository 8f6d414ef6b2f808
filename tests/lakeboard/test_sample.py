import csv
import gzip
import hashlib
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

pytestmark = pytest.mark.fast

SAMPLE = Path(__file__).parents[2] / "lakeboard" / "sample"
README = (SAMPLE / "README.md").read_text(encoding="utf-8")
TEXT = gzip.decompress((SAMPLE / "flights.csv.gz").read_bytes())
FLIGHTS = list(csv.DictReader(TEXT.decode().splitlines()))
FACTS = re.compile(
    r"^\| (\d{4}-\d\d-\d\d) \| (\d+) \| (\d+) \| (\d+) \| ((?:[A-Z]{3} \d+, ){4}[A-Z]{3} \d+)", re.MULTILINE
)


def facts_of(day: str) -> tuple[str, str, str, str, str]:
    """The page's line of a UTC day, counted from the rows."""
    flights = [flight for flight in FLIGHTS if flight["departure"].startswith(day)]
    regions = Counter(flight["region"] for flight in flights)
    destinations = Counter(flight["dest"] for flight in flights)
    first_five = sorted(destinations.items(), key=lambda counted: (-counted[1], counted[0]))[:5]
    listed = ", ".join(f"{dest} {count}" for dest, count in first_five)
    return day, str(len(flights)), str(regions["US-NJ"]), str(regions["US-NY"]), listed


def test_the_page_states_the_digest_the_size_and_the_number_of_rows() -> None:
    assert hashlib.sha256(TEXT).hexdigest() in README
    assert f"{(SAMPLE / 'flights.csv.gz').stat().st_size:,} bytes" in README
    assert f"{len(FLIGHTS):,} rows" in README


def test_the_known_facts_of_each_day_hold() -> None:
    stated = FACTS.findall(README)

    assert [day for day, *_ in stated] == sorted({flight["departure"][:10] for flight in FLIGHTS})
    assert stated == [facts_of(day) for day, *_ in stated]


def test_both_time_columns_name_one_instant_on_both_sides_of_the_clock_changes() -> None:
    new_york = ZoneInfo("America/New_York")
    differing = [
        flight["flight_id"]
        for flight in FLIGHTS
        if datetime.fromisoformat(flight["local_departure"]).replace(tzinfo=new_york).astimezone(UTC)
        != datetime.fromisoformat(flight["departure"])
    ]

    assert differing == []


def test_ids_are_unique_and_regions_are_codes() -> None:
    assert len({flight["flight_id"] for flight in FLIGHTS}) == len(FLIGHTS)
    assert {flight["region"] for flight in FLIGHTS} == {"US-NJ", "US-NY"}
