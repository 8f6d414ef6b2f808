"""Structured logs: one JSON object a line on stderr. Never a payload, never a key, nothing else of clients."""

import logging
import os
import sys
import traceback
from typing import Any

import structlog

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def of_error(error: BaseException) -> dict[str, Any]:
    """Return what an error was and the places it came through; not its words, which may be a client's."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "places": places}


def _with_exception(_: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Say the error that is being handled, in lines of `log.exception`."""
    error = sys.exception()
    if line.pop("exc_info", None) and error is not None:
        line.update(of_error(error))
    return line


_SHARED: list[structlog.typing.Processor] = [
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logs() -> None:
    """Send our lines to stderr as JSON."""
    structlog.configure(
        processors=[*_SHARED, _with_exception, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),  # of now: tests and servers replace it
        cache_logger_on_first_use=False,
    )


def server_logs() -> dict[str, Any]:
    """Return the configuration with which the HTTP server's own lines look like ours."""
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ],
        "foreign_pre_chain": _SHARED,
    }
    handler = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "json"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": formatter},
        "handlers": {"stderr": handler},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {"_granian": {"handlers": ["stderr"], "level": "WARNING", "propagate": False}},
    }
