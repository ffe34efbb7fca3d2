"""Controls the mock upstream through the `x-mock` header, and counts its connections."""

import json
import pathlib
import uuid
from typing import Any
from urllib.parse import urlsplit

from harness.servers import Server


def scripted(**fields: Any) -> dict[str, str]:
    """Headers for `extra_headers` that tell the mock how to answer."""
    return {"x-mock": json.dumps(fields)}


def failing(status: int, times: int, **fields: Any) -> dict[str, str]:
    """Fails the first `times` requests with these headers, and answers later ones normally.

    The upstream asks for a retry within a millisecond, so that no test waits for the SDK's back-off.
    """
    headers = {"content-type": "application/json", "retry-after-ms": "1", **fields.pop("headers", {})}
    return scripted(status=status, times=times, key=str(uuid.uuid4()), headers=headers, **fields)


ECHO = scripted(echo=True)


def open_connections(server: Server) -> int:
    """The number of established TCP connections to the server, according to the kernel."""
    port = f"{urlsplit(server.origin).port:04X}"
    rows = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(local.endswith(f":{port}") and state == "01" for _, local, _, state, *_ in rows)
