"""uvicorn + FastAPI, one INSERT a request into a table with the event's id as its key.

python -m bench.peers.postgres_app --socket-folder /path --port 9000
"""

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped]  # it ships no types (0.32)
import uvicorn
from fastapi import FastAPI

from bench.peers.bodies import PlayIn, listed
from bench.peers.postgres import DATABASE, USER

CONNECTIONS = 32
_INSERT = """
INSERT INTO plays (event_id, item_id, region, user_id, event_time, duration_ms, count)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[], $7::bigint[])
ON CONFLICT (event_id) DO NOTHING"""


def application(folder: str) -> FastAPI:
    """Return the service over the server whose socket is in this folder."""
    pools: list[asyncpg.Pool] = []

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(
            host=folder, user=USER, database=DATABASE, min_size=CONNECTIONS, max_size=CONNECTIONS
        ) as pool:
            pools.append(pool)
            yield

    app = FastAPI(lifespan=life)

    @app.post("/v1/events", status_code=202)
    async def take(body: PlayIn | list[PlayIn]) -> dict[str, int]:
        plays = listed(body)
        columns = zip(
            *((p.event_id, p.item_id, p.region, p.user_id, p.event_time, p.duration_ms, p.count) for p in plays),
            strict=True,
        )
        await pools[0].execute(_INSERT, *map(list, columns))
        return {"accepted": len(plays)}

    return app


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.postgres_app")
    parser.add_argument("--socket-folder", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args(argv)
    app = application(arguments.socket_folder)
    uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
