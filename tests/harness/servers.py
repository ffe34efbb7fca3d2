"""The servers of the black-box suites: Tidegate, the mock upstream and a real small LLM, all on loopback."""

import dataclasses
import json
import os
import pathlib
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Protocol

from harness.process import START_DEADLINE, Process, poll

HARNESS = pathlib.Path(__file__).resolve().parent
ROOT = HARNESS.parent.parent


@dataclasses.dataclass(frozen=True)
class Server:
    """A running server. `origin` is `http://host:port`; `admin` is the origin of Tidegate's admin address."""

    origin: str
    process: Process
    admin: str | None = None


@dataclasses.dataclass(frozen=True)
class Sides:
    """The same upstream, directly and through Tidegate. `upstream` is the origin of the one that Tidegate forwards to."""

    direct: Server
    through: Server
    upstream: str


class Upstream(Protocol):
    """Anything that Tidegate can forward to: a server or a recorder."""

    @property
    def origin(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class Kind:
    """How an upstream speaks: its protocol, the compression of its answers, and whether they have a length."""

    protocol: str = "http1"
    coding: str | None = None
    chunked: bool = False

    def __str__(self) -> str:
        return "-".join([self.protocol, self.coding or "plain", *(["chunked"] if self.chunked else [])])


# Every protocol and every compression, with and without a length.
KINDS = [
    Kind(),
    Kind("http1", "gzip", chunked=True),
    Kind("h2c", "deflate"),
    Kind("tls-http1", "br"),
    Kind("tls", chunked=True),
    Kind("tls", "zstd"),
    Kind("tls", "gzip", chunked=True),
]


@contextmanager
def mock_upstream(directory: pathlib.Path, kind: Kind = Kind()) -> Iterator[Server]:
    command = [binary("MOCK_UPSTREAM_BIN", "mock-upstream"), "--listen", "127.0.0.1:0", "--kind", kind.protocol]
    command += ["--ca", directory / "ca.pem"] if kind.protocol.startswith("tls") else []
    command += ["--coding", kind.coding] if kind.coding else []
    command += ["--chunked"] if kind.chunked else []
    with running(Process("mock-upstream", command, directory)) as process:
        yield Server(announced_origin(process), process)


@contextmanager
def sides_of(kind: Kind, directory: pathlib.Path) -> Iterator[Sides]:
    """A mock upstream that a client can use directly, and Tidegate in front of one of this kind, with the same answers."""
    plain = dataclasses.replace(kind, protocol="http1")
    (directory / "direct").mkdir()
    config = '[upstreams.default]\nprotocol = "http2"\n' if kind.protocol == "h2c" else ""
    trusted = {"SSL_CERT_FILE": str(directory / "ca.pem")} if kind.protocol.startswith("tls") else {}
    with (
        mock_upstream(directory / "direct", plain) as direct,
        mock_upstream(directory, kind) as upstream,
        tidegate(upstream, directory, config, trusted) as through,
    ):
        yield Sides(direct, through, upstream.origin)


@contextmanager
def small_llm(directory: pathlib.Path, template: str | None = None) -> Iterator[Server]:
    """A real small LLM, with its own chat template or this one."""
    command = [sys.executable, HARNESS / "llm_server.py"]
    if template is not None:
        file = directory / "template.jinja"
        file.write_text(template)
        command.append(file)
    with running(Process("small-llm", command, directory)) as process:
        origin = announced_origin(process)
        poll(lambda: status_of(f"{origin}/health") == 200, "the small LLM to load", START_DEADLINE, process.output)
        yield Server(origin, process)


@contextmanager
def tidegate(
    upstream: Upstream,
    directory: pathlib.Path,
    config: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Server]:
    """Tidegate in front of `upstream`. It runs in `directory`, where its default store is created."""
    file = directory / "proxy.toml"
    file.write_text(config)
    listen, admin = free_address(), free_address()
    command = [binary("TIDEGATE_BIN", "tidegate"), "serve", "--config", file]
    command += ["--listen", listen, "--admin", admin, "--upstream", upstream.origin]
    with running(Process("tidegate", command, directory, environment)) as process:

        def ready() -> bool:
            process.check_alive()
            return status_of(f"http://{admin}/readyz") == 200

        poll(ready, "Tidegate to be ready", START_DEADLINE, process.output)
        yield Server(f"http://{listen}", process, f"http://{admin}")


@contextmanager
def running(process: Process) -> Iterator[Process]:
    ALIVE.append(process)
    try:
        yield process
    except BaseException:
        # A process that does not stop either must not hide what went wrong.
        process.child.kill()
        raise
    finally:
        ALIVE.remove(process)
        process.stop()


# The processes whose output is shown when a test fails.
ALIVE: list[Process] = []


def binary(variable: str, name: str) -> str:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = os.environ.get(variable) or str(target / "debug" / name)
    assert pathlib.Path(path).is_file(), f"`{path}` is missing; hint: `tests/run python` builds it"
    return path


def announced_origin(process: Process) -> str:
    return process.wait_for_output(r"listening on (https?://\S+)")[1].rstrip("/")


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def unused_address() -> Iterator[str]:
    """An address where nothing listens. The port stays bound, so that no other process gets it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def status_of(url: str) -> int | None:
    """The status of a GET, or None if there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return None


def get_json(url: str) -> object:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)
