"""Structured logs: one JSON object a line on stderr. Never a payload, never a key, nothing else of clients."""

import logging
from typing import Any

import structlog

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_SHARED: list[structlog.typing.Processor] = [
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logs() -> None:
    """Send our lines to stderr as JSON."""
    structlog.configure(
        processors=[*_SHARED, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=_stderr()),
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


def _stderr() -> Any:
    import sys  # noqa: PLC0415  the stream of the moment: tests and servers replace it

    return sys.stderr
