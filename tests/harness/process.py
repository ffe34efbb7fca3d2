"""A server as a child process, with its output in a file."""

import os
import pathlib
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

START_DEADLINE = 60.0
STOP_DEADLINE = 10.0
POLL_INTERVAL = 0.01

T = TypeVar("T")


class Process:
    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        directory: pathlib.Path,
        environment: Mapping[str, str] = MappingProxyType({}),
    ):
        self.name = name
        self.log = directory / f"{name}.log"
        with self.log.open("wb") as output:
            self.child = subprocess.Popen(
                [os.fspath(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={**_environment(), **environment},
            )

    @property
    def pid(self) -> int:
        return self.child.pid

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for_output(self, pattern: str) -> re.Match[str]:
        """Waits for `pattern` in the output, in which servers print their address. Returns the first match."""

        def look() -> re.Match[str] | None:
            self.check_alive()
            return re.search(pattern, self.output())

        return poll(look, f"`{self.name}` to print /{pattern}/", START_DEADLINE, self.output)

    def check_alive(self) -> None:
        status = self.child.poll()
        if status is not None:
            raise AssertionError(f"`{self.name}` ended with status {status}; its output:\n{self.output()}")

    def stop(self) -> int:
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(
                f"`{self.name}` was still running {STOP_DEADLINE} s after SIGTERM; its output:\n{self.output()}"
            ) from None


def poll(look: Callable[[], T | None], what: str, deadline: float, context: Callable[[], str] = str) -> T:
    """Calls `look` until it returns something true. Fails with `context()` after `deadline` seconds."""
    end = time.monotonic() + deadline
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline} s for {what}\n{context()}")
        time.sleep(POLL_INTERVAL)


def _environment() -> dict[str, str]:
    # A developer's settings would change the behaviour of the server under test.
    ours = ("TIDEGATE_", "AGENT_CONTEXT_", "CONTEXT_", "OPENAI_", "OTEL_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}
