"""Batch views in the views server: written whole under a new name, then one pointer is swapped.

A reader follows the pointer to a view that never changes, so it never sees half of one. What a killed writer left has
an expiry until it is whole, and is swept by the next writer.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from domain.batch_view import BatchView
from domain.errors import LakeboardError
from speed_layer.store.connection import Views, octets
from speed_layer.store.keys import BATCH_VIEW, MERGED_VIEW, of_view, version_in
from speed_layer.store.view_codec import (
    EncodedView,
    ViewMeta,
    decode_items,
    decode_meta,
    decode_region,
    encode_view,
    view_from,
)

_NAMES: Final = ("meta", "items", "regions")
_WRITE_BYTES: Final = 4 << 20  # of fields in one go
_READ_REGIONS: Final = 32
_UNFINISHED: Final = timedelta(minutes=10)  # how long what a killed writer left stays, at most
_KEPT: Final = 2

# KEYS: meta, items, regions of a view. ARGV: number of regions, number of parts of ids.
# What was swept meanwhile is not whole any more, and must not be pointed at.
_KEEP = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('HLEN', KEYS[3]) ~= tonumber(ARGV[1]) then return 0 end
if redis.call('HLEN', KEYS[2]) ~= tonumber(ARGV[2]) then return 0 end
for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
return 1
"""
# KEYS: pointer. ARGV: version it must have ('' for none), version it gets.
_SWAP = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


class ViewWentBackError(LakeboardError):
    """A view was to be published that says less than the one in force."""

    def __init__(self, now: ViewMeta, wanted: ViewMeta) -> None:
        super().__init__(now, wanted)
        self.now = now
        self.wanted = wanted

    def __str__(self) -> str:
        return (
            f"the live charts use release {self.now.release}, certified up to {_hour(self.now)}, and release "
            f"{self.wanted.release}, certified up to {_hour(self.wanted)}, lies behind it: if the lake was brought "
            "back from a copy on purpose, run `lakeboard restore`"
        )


class OtherPublisherError(LakeboardError):
    """Another process published, or swept, while this one did."""

    def __str__(self) -> str:
        return "another process published a view in the same moment: nothing was changed; run `lakeboard publish` again"


class ViewStore:
    """Views of batch. Every call may raise `ViewsUnavailableError`; one object may be used by several threads."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._keep = views.client.register_script(_KEEP)
        self._swap = views.client.register_script(_SWAP)
        self._loaded: dict[str, BatchView] = {}
        self._loading = Lock()

    def current(self) -> str | None:
        """Return the version of the view in force; None before any."""
        return self._text(BATCH_VIEW)

    def acknowledged(self) -> str | None:
        """Return the version that the merger has loaded: consumers may use it; None before any."""
        return self._text(MERGED_VIEW)

    def meta(self, version: str) -> ViewMeta | None:
        """Return what is said of a view; None when it is gone.

        Raises:
            UnknownListFormatError: it is of another version of this program.
        """
        with self._views.translated():
            found = self._views.client.get(of_view(version, "meta"))
        return None if found is None else decode_meta(octets(found))

    def in_force(self, release: int, frontier: datetime, log_id: str | None) -> ViewMeta | None:
        """Return what is said of the view in force if it is that of a release; None when another one, or none, is."""
        version = self.current()
        found = None if version is None else self.meta(version)
        return found if found is not None and found.says == (release, frontier, log_id) else None

    def write(self, view: BatchView, *, back: bool = False) -> ViewMeta:
        """Put a view in force: all of it is written, then the pointer is swapped; return what is said of it.

        Nothing is changed, and what is said of the one in force returned, when that is of the same release.

        Args:
            view: With a version that no view had before.
            back: It may lie behind the view in force.

        Raises:
            ViewWentBackError: it does.
            OtherPublisherError: another process published meanwhile.
        """
        before = self.current()
        now = None if before is None else self.meta(before)
        if now is not None and now.says == (view.release, view.frontier, view.log_id):
            return now
        encoded = encode_view(view)
        if now is not None and not back and _lies_behind(encoded.meta, now):
            raise ViewWentBackError(now, encoded.meta)
        self._sweep({before, self.acknowledged()})
        self._write(encoded)
        with self._views.translated():
            whole = self._keep(keys=_keys(view.version), args=[encoded.meta.regions, encoded.meta.parts])
            swapped = whole and self._swap(keys=[BATCH_VIEW], args=[before or "", view.version])
            # The client asks twice when an answer was lost, and the second time it is refused.
            if not swapped and self.current() != view.version:
                self._views.client.unlink(*_keys(view.version))
                raise OtherPublisherError
        self._sweep({before, view.version, self.acknowledged()})
        return encoded.meta

    def load(self, version: str) -> BatchView | None:
        """Return a view; the same object to all who ask for one of the last two. None when it is gone.

        Raises:
            UnknownListFormatError: it is of another version of this program.
        """
        with self._loading:
            if version not in self._loaded:
                found = self._load(version)
                if found is None:
                    return None
                kept = list(self._loaded.items())[1 - _KEPT :]
                self._loaded = dict([*kept, (version, found)])
            return self._loaded[version]

    def versions(self) -> set[str]:
        """Return the versions of all views that are there, half-written ones too."""
        with self._views.translated():
            keys = list(self._views.client.scan_iter(match="lb:batch:{*", count=1000))
        return {version_in(octets(key)) for key in keys}

    def _load(self, version: str) -> BatchView | None:
        meta = self.meta(version)
        if meta is None:
            return None
        client = self._views.client
        with self._views.translated():
            found = client.hgetall(of_view(version, "items"))
            names = [octets(name).decode() for name in client.hkeys(of_view(version, "regions"))]
        parts = {octets(name).decode(): octets(body) for name, body in found.items()}
        if len(parts) != meta.parts or len(names) != meta.regions:
            return None  # it was dropped between the two
        ids = decode_items(parts)
        regions = {}
        for start in range(0, len(names), _READ_REGIONS):
            some = names[start : start + _READ_REGIONS]
            with self._views.translated():
                bodies = client.hmget(of_view(version, "regions"), some)
            if None in bodies:
                return None
            regions.update({name: decode_region(octets(body), ids) for name, body in zip(some, bodies, strict=True)})
        return view_from(meta, regions)

    def _write(self, encoded: EncodedView) -> None:
        version = encoded.meta.version
        for name, fields in (("items", encoded.items), ("regions", encoded.regions)):
            for some in _in_parts(fields):
                pipeline = self._views.client.pipeline(transaction=True)
                pipeline.hset(of_view(version, name), items=[word for pair in some.items() for word in pair])
                pipeline.expire(of_view(version, name), _UNFINISHED)
                with self._views.translated():
                    pipeline.execute()
        with self._views.translated():
            self._views.client.set(of_view(version, "meta"), encoded.head, ex=_UNFINISHED)

    def _sweep(self, kept: set[str | None]) -> None:
        for version in self.versions() - kept:
            with self._views.translated():
                self._views.client.unlink(*_keys(version))

    def _text(self, key: str) -> str | None:
        with self._views.translated():
            found = self._views.client.get(key)
        return None if found is None else octets(found).decode()


def _keys(version: str) -> list[str]:
    return [of_view(version, name) for name in _NAMES]


def _lies_behind(wanted: ViewMeta, now: ViewMeta) -> bool:
    return wanted.frontier_hour < now.frontier_hour or wanted.release < now.release


def _hour(meta: ViewMeta) -> str:
    return f"{meta.frontier:%Y-%m-%d %H:%M} UTC"


def _in_parts(fields: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    some: dict[str, bytes] = {}
    size = 0
    for name, body in fields.items():
        some[name] = body
        size += len(body)
        if size >= _WRITE_BYTES:
            yield some
            some, size = {}, 0
    if some:
        yield some
