"""The files of deploy/, and the programs that check them."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType

from harness.servers import ROOT, binary

DEPLOY = ROOT / "deploy"


def run(
    *command: str | os.PathLike[str], environment: Mapping[str, str] = MappingProxyType({}), stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a program with only this environment, so that a developer's settings have no effect."""
    parts = [os.fspath(part) for part in command]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}
    return subprocess.run(parts, env=environment, input=stdin, capture_output=True, text=True, check=False)


def succeed(*command: str | os.PathLike[str], environment: Mapping[str, str] = MappingProxyType({})) -> str:
    result = run(*command, environment=environment)
    assert result.returncode == 0, f"{list(command)}\n{result.stdout}{result.stderr}"
    return result.stdout


def packaged(name: str) -> pathlib.Path:
    """A program from a Python package."""
    path = pathlib.Path(sys.executable).parent / name
    assert path.is_file(), f"`{path}` is missing; hint: `tests/run python` installs it"
    return path


def checked(config: pathlib.Path, environment: Mapping[str, str] = MappingProxyType({}), *flags: str) -> str:
    """The output of `tidegate check` for a configuration, which must be valid with the secrets of a deployment."""
    environment = {"TIDEGATE_ADMIN_TOKEN": "t", "OPENAI_API_KEY": "k", **environment}
    return succeed(binary("TIDEGATE_BIN", "tidegate"), "check", "--config", config, *flags, environment=environment)
