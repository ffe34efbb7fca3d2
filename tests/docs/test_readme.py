"""Every command and every snippet of the README, executed. What no test knows how to execute fails."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

from harness.anthropic_upstream import anthropic_upstream
from harness.process import Process
from harness.servers import ROOT, Server, Sides, binary, running, tidegate

README = (ROOT / "README.md").read_text()
CLIENTS = "127.0.0.1:8080"
DASHBOARD = "127.0.0.1:9090"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """The lines of all shell blocks, without comments and with continued lines joined."""
    text = "".join(blocks("sh")).replace("\\\n", " ")
    lines = [re.sub(r"\s+#.*$", "", line).strip() for line in text.splitlines()]
    return [re.sub(r"\s+", " ", line) for line in lines if line and not line.startswith("#")]


def inline_commands() -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    return [found.replace("\n", " ") for found in re.findall(r"`((?:tidegate |\./tests/)[^`]+)`", prose)]


def run(command: list[str], directory: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in which `tidegate` is the binary under test."""
    command = [binary("TIDEGATE_BIN", "tidegate"), *command[1:]] if command[0] == "tidegate" else command
    environ = {**os.environ, "OPENAI_API_KEY": "sk-test", **environment}
    done = subprocess.run(command, cwd=directory, env=environ, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def test_every_command_has_a_test():
    known = [BUILD_AND_RUN, TESTS, INSTALL, OBSERVE, DOCKER, CURL, CLAUDE, SETUP]
    for command in commands():
        assert sum(bool(re.match(pattern, command)) for pattern in known) == 1, command
    for command in inline_commands():
        assert re.match(INLINE, command), command
    languages = set(re.findall(r"^```(\w+)$", README, re.MULTILINE))
    assert languages == {"sh", "python", "toml"}


BUILD_AND_RUN = r"cargo run --release -- demo$"
TESTS = r"\./tests/run$"
INSTALL = r"cargo install --path \. --locked$"
OBSERVE = r"mkdir gateway && cd gateway && tidegate serve --observe$"
DOCKER = r"docker (build|run) "
CURL = r"curl "
CLAUDE = r"ANTHROPIC_BASE_URL=\S+ claude$"
SETUP = r"tidegate (init|check)$"
INLINE = r"tidegate (explain request\.json|replay runs\.jsonl --recommend|demo)$|\./tests/run$"


def test_the_demo_runs_until_it_is_interrupted(tmp_path: pathlib.Path):
    """What `cargo run --release` starts: the build is not repeated here."""
    assert any(re.match(BUILD_AND_RUN, command) for command in commands())
    with running(Process("demo", [binary("TIDEGATE_BIN", "tidegate"), "demo"], tmp_path)) as process:
        process.wait_for_output(r"dashboard\W+http://127\.0\.0\.1:\d+")


def test_the_first_two_commands_build_and_test():
    first, second = commands()[:2]
    assert re.match(BUILD_AND_RUN, first) and re.match(TESTS, second)
    assert os.access(ROOT / "tests/run", os.X_OK)


def test_what_is_installed_observes_in_a_directory_of_its_own(tmp_path: pathlib.Path):
    """In a clone, with the reference configuration beside it: `tidegate` is what `cargo install` would put on the PATH."""
    [package] = [found for found in tomllib.loads((ROOT / "Cargo.toml").read_text())["bin"] if found["name"] == "tidegate"]
    assert (ROOT / package["path"]).is_file()
    (tmp_path / "proxy.toml").write_text((ROOT / "proxy.toml").read_text())
    [command] = [command for command in commands() if re.match(OBSERVE, command)]
    on_path = {"PATH": f"{pathlib.Path(binary('TIDEGATE_BIN', 'tidegate')).parent}:{os.environ['PATH']}"}
    command = command.replace("tidegate serve", "exec tidegate serve") + " --listen 127.0.0.1:0 --admin 127.0.0.1:0"
    with running(Process("serve", ["bash", "-c", command], tmp_path, on_path)) as process:
        process.wait_for_output(r"(dashboard|admin)\W+http://127\.0\.0\.1:\d+")
    # The next commands are given in the same directory.
    for command in commands():
        if re.match(SETUP, command):
            run(shlex.split(command), tmp_path / "gateway")
    assert "observe" in (tmp_path / "gateway/proxy.toml").read_text()


def test_the_docker_commands_name_what_exists(tmp_path: pathlib.Path):
    """There is no container engine, so the process runs with the same variables outside of one."""
    build, start = (shlex.split(command) for command in commands() if command.startswith("docker "))
    assert (ROOT / build[build.index("-f") + 1]).is_file()
    image = build[build.index("-t") + 1]
    assert start[-1] == image, "the last word of `docker run` is the image"
    published = [value.rpartition(":")[2] for name, value in zip(start, start[1:], strict=False) if name == "-p"]
    exposed = re.search(r"^EXPOSE (.+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    assert exposed and published == exposed[1].split()
    environment = dict(value.split("=", 1) for name, value in zip(start, start[1:], strict=False) if name == "-e")
    run(["tidegate", "check", "--config", str(ROOT / "deploy/image.toml")], tmp_path, **environment)
    assert environment["TIDEGATE_ADMIN"].startswith("0.0.0.0:")


def test_curl_shows_these_headers(sides: Sides, tmp_path: pathlib.Path):
    [command] = [command for command in commands() if command.startswith("curl ")]
    words = shlex.split(command.replace(CLIENTS, address(sides.through)).replace("$OPENAI_API_KEY", "sk-test"))
    shown = run([*words, "--silent"], tmp_path).stdout
    [listed] = [block for block in blocks("") if block.startswith("x-tidegate-")]
    for line in listed.splitlines():
        name, value = line.split(": ")
        found = re.search(rf"^{name}: (\S+)\r?$", shown, re.MULTILINE)
        assert found, f"{name} in\n{shown}"
        # The time differs from run to run.
        assert found[1] == value or name == "x-tidegate-overhead-us"


@pytest.mark.parametrize("snippet", blocks("python"))
def test_the_python_snippet_gets_an_answer(snippet: str, sides: Sides, tmp_path: pathlib.Path):
    assert CLIENTS in snippet
    program = snippet.replace(CLIENTS, address(sides.through))
    assert run([sys.executable, "-c", program], tmp_path).stdout.strip()


def test_claude_code_reaches_a_managed_endpoint(tmp_path: pathlib.Path):
    """Claude Code appends `/v1/messages` to its base URL, as Anthropic's SDK does."""
    [command] = [command for command in commands() if command.endswith(" claude")]
    base_url = command.split()[0].split("=", 1)[1]
    program = (
        "import anthropic\n"
        "answer = anthropic.Anthropic().messages.with_raw_response.create(model='claude-sonnet-4-5', max_tokens=64,"
        " messages=[{'role': 'user', 'content': 'hello'}])\n"
        "print(answer.headers['x-tidegate-route'])"
    )
    with anthropic_upstream(1) as upstream, tidegate(upstream, tmp_path) as through:
        environment = {"ANTHROPIC_BASE_URL": base_url.replace(CLIENTS, address(through)), "ANTHROPIC_API_KEY": "sk-test"}
        assert run([sys.executable, "-c", program], tmp_path, **environment).stdout.strip() == "default"


@pytest.mark.parametrize("snippet", blocks("toml"))
def test_a_toml_snippet_is_valid(snippet: str, tmp_path: pathlib.Path):
    parsed = tomllib.loads(snippet)
    if "model_providers" in parsed:
        assert parsed["model_providers"]["tidegate"]["base_url"] == f"http://{CLIENTS}/v1"
        return
    (tmp_path / "proxy.toml").write_text(snippet)
    assert "warning" not in run(["tidegate", "check"], tmp_path).stdout


@pytest.mark.parametrize("command", sorted({command for command in inline_commands() if command.startswith("tidegate ")}))
def test_a_command_in_the_text_works(command: str, tmp_path: pathlib.Path):
    recording = run(["tidegate", "demo", "--recording"], tmp_path).stdout
    (tmp_path / "runs.jsonl").write_text(recording)
    conversation = json.loads(recording.splitlines()[0])
    request = {"model": "gpt-4o", "messages": conversation["messages"][:30]}
    (tmp_path / "request.json").write_text(json.dumps(request))
    words = shlex.split(command)
    assert run([*words, "--exit"] if words[-1] == "demo" else words, tmp_path).stdout


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("crates/*/README.md"), *ROOT.glob("deploy/*.md"), *ROOT.glob(".github/*.md")]:
        for target in links(page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def links(text: str) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            yield target


def test_addresses_are_the_defaults(tmp_path: pathlib.Path):
    resolved = run(["tidegate", "check"], tmp_path).stdout
    assert f'"{CLIENTS}"' in resolved and f'"{DASHBOARD}"' in resolved


def address(server: Server) -> str:
    return server.origin.partition("://")[2]
