"""uvicorn + FastAPI, one XADD a request.

python -m bench.peers.redis_app --address unix:///path/log.sock --port 9000
"""

import argparse
from collections.abc import Sequence

import uvicorn
from fastapi import FastAPI
from redis.asyncio import Redis

from bench.peers.bodies import PLAYS_IN, PlayIn, listed

STREAM = "plays"


def application(address: str) -> FastAPI:
    """Return the service over the server at this address."""
    app = FastAPI()
    client = Redis.from_url(address)

    @app.post("/v1/events", status_code=202)
    async def take(body: PlayIn | list[PlayIn]) -> dict[str, int]:
        plays = listed(body)
        await client.xadd(STREAM, {"plays": PLAYS_IN.dump_json(plays)})
        return {"accepted": len(plays)}

    return app


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.redis_app")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args(argv)
    app = application(arguments.address)
    uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
