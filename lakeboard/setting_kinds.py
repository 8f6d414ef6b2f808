"""Kinds of value that a setting may have."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

# The description says what a person may write; errors repeat it.
Memory = Annotated[str, Meta(pattern=r"^[1-9][0-9]*[kmgtKMGT]$", description="a size of memory such as 4g or 512m")]
Tasks = Annotated[int, Meta(ge=1, description="a whole number from 1 on")]
Master = Annotated[str, Meta(min_length=1, description="a Spark master such as local[*]")]
YesOrNo = Annotated[bool, Meta(description="true or false")]
JavaHome = Annotated[str | None, Meta(description="the path of a Java home")]
Folder = Annotated[Path | None, Meta(description="the path of a folder")]
Server = Annotated[
    str,
    Meta(
        pattern=r"^((unix:///|rediss?://)[^\s]+)?$",
        description="the address of a server such as redis://host:6379 or unix:///path",
    ),
]
Host = Annotated[str, Meta(pattern=r"^[^\s]+$", description="an address of this machine such as 127.0.0.1")]
Port = Annotated[int, Meta(ge=1, le=65535, description="a port from 1 to 65535")]
Workers = Annotated[int, Meta(ge=1, le=64, description="a whole number from 1 to 64")]
Seconds = Annotated[float, Meta(ge=0.1, le=3600, description="seconds from 0.1 to 3600")]
Rows = Annotated[int, Meta(ge=1, le=10_000_000, description="a whole number from 1 to 10000000")]
PerSecond = Annotated[int, Meta(ge=1, le=1_000_000_000, description="a whole number a second from 1 on")]
Shards = Annotated[int, Meta(ge=1, le=8, description="a whole number from 1 to 8")]  # partitions of a log
LiveRegions = Annotated[int, Meta(ge=1, le=10_000, description="a whole number from 1 to 10000")]
LiveWidth = Annotated[
    Literal[256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536],
    Meta(description="a power of two from 256 to 65536"),
]
Origins = Annotated[
    str,
    Meta(
        pattern=r"^$|^(\*|https?://[^\s,/]+)(,(\*|https?://[^\s,/]+))*$",
        description="origins such as https://example.org, separated by commas, or *",
    ),
]
