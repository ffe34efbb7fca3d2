"""A real Prometheus on loopback, and promtool."""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from harness.process import START_DEADLINE, Process, poll
from harness.servers import free_address, running, status_of


@dataclasses.dataclass(frozen=True)
class Prometheus:
    origin: str

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """The samples of the expression, now or at this time. An invalid expression fails with Prometheus' message."""
        when = {} if at is None else {"time": str(at)}
        return self.api("query", query=expression, **when)["result"]

    def api(self, endpoint: str, **parameters: str) -> Any:
        url = f"{self.origin}/api/v1/{endpoint}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from None


@contextmanager
def prometheus(directory: pathlib.Path, config: dict[str, Any]) -> Iterator[Prometheus]:
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    address = free_address()
    command = [program("prometheus"), f"--config.file={file}", f"--web.listen-address={address}"]
    command.append(f"--storage.tsdb.path={directory / 'prometheus-data'}")
    with running(Process("prometheus", command, directory)) as process:

        def ready() -> bool:
            process.check_alive()
            return status_of(f"http://{address}/-/ready") == 200

        poll(ready, "Prometheus to be ready", START_DEADLINE, process.output)
        yield Prometheus(f"http://{address}")


def promtool(*arguments: str, directory: pathlib.Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [program("promtool"), *arguments]
    return subprocess.run(command, cwd=directory, input=stdin, capture_output=True, text=True, check=False)


def program(name: str) -> str:
    path = shutil.which(name)
    assert path, f"`{name}` is missing; hint: `tests/run python` installs it"
    return path
