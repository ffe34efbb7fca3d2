"""Agents as their users install them: how each is started with a task and an upstream."""

import json
import os
import pathlib
import subprocess

from harness import servers

TURNS = 40
TASK = "Find the ship that is late."
CACHE = servers.ROOT / "tests/.cache"
# Virtual environments of their own: litellm needs another release of the OpenAI SDK than the other suites.
PYTHON = pathlib.Path(os.environ.get("TIDEGATE_CLIENTS", CACHE / "clients")) / "bin"
AIDER = pathlib.Path(os.environ.get("TIDEGATE_AIDER", CACHE / "aider")) / "bin"
NODE = pathlib.Path(os.environ.get("TIDEGATE_NODE_CLIENTS", CACHE / "node-clients")) / "node_modules/.bin"
DEADLINE = 240.0


def mini_swe_agent(base_url: str, model: str, home: pathlib.Path) -> None:
    settings = (f"model.model_kwargs.api_base={base_url}", "model.model_kwargs.api_key=key")
    command = [PYTHON / "mini", "--yolo", "--exit-immediately", "--cost-limit", "0", "--model", model]
    command += ["--task", TASK, "--output", home / "run.json", "-c", "mini.yaml"]
    run([*command, *(part for setting in settings for part in ("-c", setting))], home)


def litellm(base_url: str, model: str, home: pathlib.Path) -> None:
    script = pathlib.Path(__file__).parent / "litellm_agent.py"
    run([PYTHON / "python", script, base_url, model, str(TURNS)], home)


def aider(base_url: str, model: str, home: pathlib.Path) -> None:
    """A chat in which the user has the output of commands added, and asks for it."""
    command = [AIDER / "aider", "--model", model, "--openai-api-base", base_url, "--openai-api-key", "key"]
    flags = "yes-always no-git no-auto-commits no-check-update no-show-model-warnings no-analytics no-fancy-input no-pretty"
    command += [f"--{flag}" for flag in flags.split()] + ["--map-tokens", "0", "--edit-format", "ask"]
    turns = [f"/run seq -f '{turn:03}-%04g buoy passed' 60\nIs the ship of log {turn} late?" for turn in range(TURNS)]
    run(command, home, stdin="\n".join([*turns, "/exit", ""]))


def opencode(base_url: str, model: str, home: pathlib.Path) -> None:
    settings = json.loads(snippet("opencode.json", base_url.removesuffix("/v1")))
    settings["provider"]["tidegate"]["models"] = {model: {"tool_call": True}}
    settings |= {"permission": "allow", "autoupdate": False, "share": "disabled"}
    (home / "opencode.json").write_text(json.dumps(settings))
    run([NODE / "opencode", "run", "--model", f"tidegate/{model}", TASK], home, OPENAI_API_KEY="key")


def qwen_code(base_url: str, model: str, home: pathlib.Path) -> None:
    command = [NODE / "qwen", "--yolo", "--auth-type", "openai", "--model", model]
    run([*command, "--openai-base-url", base_url, "--openai-api-key", "key", "--prompt", TASK], home)


def cline(base_url: str, model: str, home: pathlib.Path) -> None:
    key = ["--provider", "openai", "--apikey", "key", "--modelid", model, "--baseurl", base_url]
    run([NODE / "cline", "auth", *key], home)
    run([NODE / "cline", "--yolo", TASK], home)


def codex(origin: str, model: str, home: pathlib.Path) -> str:
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(snippet("codex.toml", origin))
    command = [NODE / "codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--model", model, TASK]
    return run(command, home, OPENAI_API_KEY="key")


def claude_code(origin: str, model: str, home: pathlib.Path) -> str:
    lines = [line for line in snippet("claude-code.env", origin).splitlines() if line and not line.startswith("#")]
    settings = dict(line.split("=", 1) for line in lines)
    # The flag that skips questions is refused to root, unless it runs in a sandbox.
    settings |= {"ANTHROPIC_API_KEY": "key", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
    return run([NODE / "claude", "--print", TASK, "--model", model, "--dangerously-skip-permissions"], home, **settings)


def snippet(name: str, origin: str) -> str:
    """A file of deploy/clients, pointed at this origin."""
    text = (servers.ROOT / "deploy/clients" / name).read_text()
    assert "http://127.0.0.1:8080" in text
    return text.replace("http://127.0.0.1:8080", origin)


def run(command: list[object], home: pathlib.Path, stdin: str = "", **settings: str) -> str:
    # Nothing of the user's configuration, and no request to anyone but the upstream.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "TERM": "dumb",
        "CI": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_GLOBAL_CONFIG_DIR": str(home),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "QWEN_TELEMETRY_ENABLED": "0",
    } | settings
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=home,
        env=environment,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    return ended.stdout
