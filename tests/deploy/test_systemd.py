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


def test_systemd_verifies_the_unit(tmp_path: pathlib.Path):
    # The program must exist: use the built one, because none is installed.
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/usr/local/bin/tidegate", binary("TIDEGATE_BIN", "tidegate")))
    assert analyze("verify", "--man=no", str(here)) == ""


def test_the_exposure_level_is_low():
    """The level is 0 for a fully confined service and 10 for an unconfined one. The rest is network access."""
    [level] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", str(UNIT)))
    assert float(level) <= 1.5
