"""The Dockerfile, as far as that is possible without an engine: its linter, its health check, and what it copies."""

import json
import re

from files import DEPLOY, packaged, run, succeed

from harness.servers import ROOT, Server, free_address

DOCKERFILE = DEPLOY / "Dockerfile"


def health_check(port: str) -> int:
    """Runs the very command of the image against a port of this machine."""
    [found] = re.findall(r"^HEALTHCHECK .*\\\n\s+CMD (\[.*\])$", DOCKERFILE.read_text(), re.MULTILINE)
    return run(*json.loads(found), environment={"HEALTH_PORT": port}).returncode


def test_the_linter_has_nothing_to_say():
    succeed(packaged("hadolint"), DOCKERFILE)


def test_the_health_check_tells_who_answers(fresh_sides):
    tidegate: Server = fresh_sides.through
    assert tidegate.admin
    assert health_check(tidegate.admin.rpartition(":")[2]) == 0
    assert health_check(free_address().rpartition(":")[2]) != 0, "nobody listens there"
    assert health_check(tidegate.origin.rpartition(":")[2]) != 0, "somebody else listens there"


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
