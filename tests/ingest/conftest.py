import pytest

from ingest.importers import chunks, json_array, streams


@pytest.fixture(params=[1, 7, 2 << 20], ids=lambda size: f"blocks of {size}")
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks so small that every row begins in one and ends in another."""
    for module in (streams, json_array, chunks):
        monkeypatch.setattr(module, "CHUNK_BYTES", request.param)
    return int(request.param)
