"""The Dockerfile, as far as that is possible without an engine: its linter, its health check, and what it copies."""

import json
import re

from files import DEPLOY, packaged, run, succeed

from harness.servers import ROOT, Sides, deserted_address

DOCKERFILE = DEPLOY / "Dockerfile"


def health_check(port: str) -> int:
    """Runs the very command of the image against a port of this machine."""
    [found] = re.findall(r"^HEALTHCHECK .*\\\n\s+CMD (\[.*\])$", DOCKERFILE.read_text(), re.MULTILINE)
    return run(*json.loads(found), environment={"HEALTH_PORT": port}).returncode


def test_the_linter_has_nothing_to_say():
    succeed(packaged("hadolint"), DOCKERFILE)


def test_the_health_check_tells_who_answers(sides: Sides):
    tidegate = sides.through
    assert tidegate.admin
    assert health_check(port_of(tidegate.admin)) == 0
    assert health_check(port_of(tidegate.origin)) != 0, "that is for clients"
    with deserted_address() as nobody:
        assert health_check(port_of(nobody)) != 0


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


def test_what_is_copied_is_what_the_build_may_see():
    """.dockerignore leaves out everything but what it names."""
    ignore = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ignore[0] == "*"
    allowed = {line.removeprefix("!") for line in ignore[1:]}
    assert all((ROOT / path).exists() for path in allowed)
    text = DOCKERFILE.read_text()
    copied = {path for path in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE) if path != "."}
    assert copied <= allowed


def test_it_runs_as_nobody_in_particular():
    text = DOCKERFILE.read_text()
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert re.search(r"^VOLUME /data$", text, re.MULTILINE)
