"""The systemd unit, read by systemd itself."""

import pathlib
import re
import shutil

from files import DEPLOY, run

from harness.servers import binary

UNIT = DEPLOY / "systemd" / "tidegate.service"


def analyze(*arguments: str) -> str:
    program = shutil.which("systemd-analyze")
    assert program, "`systemd-analyze` is missing; hint: `tests/run python` installs it"
    result = run(program, *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def test_systemd_has_nothing_to_say_about_it(tmp_path: pathlib.Path):
    # The program must be there; it is not installed, but it was built.
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/usr/local/bin/tidegate", binary("TIDEGATE_BIN", "tidegate")))
    assert analyze("verify", "--man=no", str(here)) == ""


def test_it_exposes_little():
    """0 is a service that can do nothing, 10 one that can do everything. What is left is the network."""
    [level] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", str(UNIT)))
    assert float(level) <= 1.5
