"""A lake that more than one end-to-end test reads and none changes: counting it once is enough."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def wikiticker(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of a day of edits of Wikipedia, imported and counted; each edit is one row."""
    from ingest.importers.request import Format  # noqa: PLC0415
    from tests.counted_lakes import recount  # noqa: PLC0415  fast runs are free of pyspark
    from tests.end_to_end.test_real_data import EDITS, NOW, WIKITICKER, imported, shared  # noqa: PLC0415

    columns = {"item": "page", "time": "time", "region": "countryIsoCode"}
    lake = tmp_path_factory.mktemp("wikiticker")
    assert imported(lake, shared(WIKITICKER), format=Format.CSV, **columns) == EDITS
    recount(spark, lake, NOW)
    return lake
