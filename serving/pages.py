"""The OpenAPI document as a page: plain HTML, nothing loaded from elsewhere, no script."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import msgspec

from serving.problems import REQUEST_CODES, ROW_CODES, status_of

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
pre { background: #8881; padding: 0.7rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: 0.25rem 0.6rem 0.25rem 0; }
td { border-top: 1px solid #8884; vertical-align: top; } h2 { margin-top: 2.5rem; }
"""
_CURL = """curl -sS http://127.0.0.1:8080/v1/events \\
  -H "Authorization: Bearer $(cat .lakeboard/dev.key)" -H "Content-Type: application/json" \\
  -d '{"item_id": "song-1", "event_id": "e-1", "region": "IN"}'"""


def docs_page(document: bytes) -> bytes:
    """Return the page of an OpenAPI document."""
    said: Mapping[str, Any] = msgspec.json.decode(document)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>{escape(said['info']['title'])} API</title><style>{_STYLE}</style>",
        f"<h1>{escape(said['info']['title'])} API</h1>",
        '<p>The same for machines: <a href="/openapi.json">/openapi.json</a>. Send an event:</p>',
        f"<pre>{escape(_CURL)}</pre>",
        *_operations(said["paths"]),
        *_codes(),
    ]
    return "\n".join(parts).encode()


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in sorted(paths.items(), key=lambda item: (not item[0].startswith("/v1"), item[0])):
        for method, operation in methods.items():
            yield f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation.get('summary') or '')}. {escape(operation.get('description') or '')}</p>"
            yield from _parameters(operation.get("parameters"))
            yield from _body(operation.get("requestBody"))
            yield _table(("status", "meaning"), sorted(_responses(operation)))


def _responses(operation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for status, response in operation.get("responses", {}).items():
        yield escape(status), escape(response.get("description") or "")


def _parameters(parameters: Sequence[Mapping[str, Any]] | None) -> Iterator[str]:
    rows = [(f"<code>{escape(one['name'])}</code>", escape(one.get("description") or "")) for one in parameters or ()]
    if rows:
        yield _table(("parameter", "meaning"), rows)


def _body(body: Mapping[str, Any] | None) -> Iterator[str]:
    if body is None:
        return
    yield f"<p>Body: {escape(body.get('description') or '')}. Kinds: {escape(', '.join(body['content']))}.</p>"
    schema = next(iter(body["content"].values()))["schema"]
    thing = schema.get("oneOf", [schema])[0]
    needed = set(thing.get("required", ()))
    rows = [
        (f"<code>{escape(name)}</code>{' (needed)' if name in needed else ''}", escape(field.get("description") or ""))
        for name, field in thing.get("properties", {}).items()
    ]
    yield _table(("field", "meaning"), rows)


def _codes() -> Iterator[str]:
    yield "<h2>Codes</h2><p>A refusal is <code>application/problem+json</code> with one of these as <code>code</code>."
    yield "Codes stay; the words of <code>detail</code> may change.</p>"
    requests = [(code, title) for code, (_, title) in REQUEST_CODES.items()]
    rows = [(str(code), detail) for code, (_, detail) in ROW_CODES.items()]
    named = [
        (f'<code id="{escape(code)}">{escape(code)}</code>', str(status_of(code)), escape(meaning))
        for code, meaning in (*requests, *rows)
    ]
    yield _table(("code", "status", "meaning"), named)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its cells are HTML already."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
