import pytest
from hypothesis import settings

from ingest.importers import chunks, json_array, streams

# The first Arrow array of a process loads pandas: 2 s. Fewer examples than usual: all fast tests have 10 s together.
settings.register_profile("ingest", deadline=None, max_examples=50)
settings.load_profile("ingest")


@pytest.fixture(params=[1, 7, 2 << 20], ids=lambda size: f"blocks of {size}")
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks so small that every row begins in one and ends in another."""
    for module in (streams, json_array, chunks):
        monkeypatch.setattr(module, "CHUNK_BYTES", request.param)
    return int(request.param)
