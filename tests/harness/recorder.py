"""A proxy that records requests and answers."""

import dataclasses
import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclasses.dataclass(frozen=True)
class Exchange:
    request: dict
    status: int
    answer: dict
    seconds: float


@dataclasses.dataclass(frozen=True)
class Recorder:
    """A running recorder at `origin`. The exchanges are in the order of their answers."""

    origin: str
    exchanges: list[Exchange]


@contextmanager
def recording(origin: str) -> Iterator[Recorder]:
    """Records in front of `origin`. For JSON answers only: a stream would be buffered until its end."""
    exchanges: list[Exchange] = []
    address = urlsplit(origin).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            start = time.monotonic()
            upstream = http.client.HTTPConnection(address)
            try:
                upstream.request("POST", self.path, body, {"content-type": "application/json"})
                response = upstream.getresponse()
                answer = response.read()
            finally:
                upstream.close()
            seconds = time.monotonic() - start
            exchanges.append(Exchange(json.loads(body), response.status, json.loads(answer), seconds))
            # The client may have given up.
            with suppress(OSError):
                self.send_response(response.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Disables the log: the exchanges are recorded."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Recorder(f"http://127.0.0.1:{server.server_port}", exchanges)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
