"""The Dockerfile, without a container engine: its linter, its health check, and the files it copies."""

import json
import re

from files import DEPLOY, packaged, run, succeed

from harness.servers import ROOT, Sides, binary, unused_address

DOCKERFILE = DEPLOY / "Dockerfile"


def health_check(port: str) -> int:
    """Runs the health check command of the image against a local port, with the binary under test."""
    [found] = re.findall(r"^HEALTHCHECK .*\\\n\s+CMD (\[.*\])$", DOCKERFILE.read_text(), re.MULTILINE)
    program, *arguments = json.loads(found)
    assert f"/out/tidegate {program}" in DOCKERFILE.read_text(), "the image has no other program, and no shell"
    environment = {"TIDEGATE_CONFIG": str(DEPLOY / "image.toml"), "TIDEGATE_ADMIN": f"127.0.0.1:{port}"}
    return run(binary("TIDEGATE_BIN", "tidegate"), *arguments, environment=environment).returncode


def test_hadolint_passes():
    succeed(packaged("hadolint"), DOCKERFILE)


def test_the_health_check_passes_only_on_the_admin_port(sides: Sides):
    tidegate = sides.through
    assert tidegate.admin
    assert health_check(port_of(tidegate.admin)) == 0
    assert health_check(port_of(tidegate.origin)) != 0, "the client port passed"
    with unused_address() as unused:
        assert health_check(port_of(unused)) != 0


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


def test_copied_files_are_in_the_build_context():
    """.dockerignore excludes everything except what it names."""
    ignore = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ignore[0] == "*"
    allowed = {line.removeprefix("!") for line in ignore[1:]}
    assert all((ROOT / path).exists() for path in allowed)
    text = DOCKERFILE.read_text()
    copied = {path for path in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE) if path != "."}
    assert copied <= allowed


def test_the_image_runs_as_an_unprivileged_user():
    text = DOCKERFILE.read_text()
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert re.search(r"^VOLUME /data$", text, re.MULTILINE)
    assert "--chown=10001:10001 /out/data /data" in text


def test_dependencies_have_a_layer_of_their_own():
    """A change of the sources must not come before the dependencies are built."""
    stage = DOCKERFILE.read_text().partition("AS build\n")[2].partition("\nFROM ")[0]
    cook, sources, build = (stage.index(step) for step in ("cargo chef cook", "COPY . .", "cargo build"))
    assert cook < sources < build


def test_both_architectures_are_cross_compiled():
    text = DOCKERFILE.read_text()
    assert "FROM --platform=$BUILDPLATFORM" in text
    for architecture, target in (("amd64", "x86_64-unknown-linux-gnu"), ("arm64", "aarch64-unknown-linux-gnu")):
        assert f"{architecture}) echo {target} ;;" in text
        assert f"CARGO_TARGET_{target.upper().replace('-', '_')}_LINKER=" in text
