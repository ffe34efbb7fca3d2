"""Transfers 50 MB through Tidegate with curl in both directions: every byte arrives, and memory stays flat."""

import base64
import hashlib
import json
import pathlib
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.mock import ECHO
from harness.servers import Server

SIZE = 50 * 1000 * 1000
MAX_GROWTH_KIB = 16 * 1024


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("upload") / "tides.bin"
    path.write_bytes(random.Random(3).randbytes(SIZE))
    return path


def test_a_plain_upload_arrives_with_flat_memory(fresh_sides, file):
    headers = ["-H", "content-type: application/octet-stream", "-H", f"x-mock: {ECHO['x-mock']}"]
    with flat_memory(fresh_sides.through):
        answer = curl(*headers, "--data-binary", f"@{file}", f"{fresh_sides.through.origin}/v1/uploads/1/parts")
    echo = json.loads(answer)
    assert echo["body_bytes"] == SIZE
    assert digest(base64.b64decode(echo["body_base64"])) == digest(file.read_bytes())


def test_a_chunked_upload_arrives_with_flat_memory(fresh_sides, file):
    headers = ["-H", "transfer-encoding: chunked", "-H", "content-type: application/octet-stream"]
    headers += ["-H", f"x-mock: {ECHO['x-mock']}"]
    with flat_memory(fresh_sides.through):
        answer = curl(*headers, "--data-binary", f"@{file}", f"{fresh_sides.through.origin}/v1/uploads/1/parts")
    assert digest(base64.b64decode(json.loads(answer)["body_base64"])) == digest(file.read_bytes())


def test_a_form_upload_arrives_with_flat_memory(fresh_sides, file):
    url = f"{fresh_sides.through.origin}/v1/files"
    form = ["-F", "purpose=user_data", "-F", f"file=@{file};type=application/octet-stream"]
    with flat_memory(fresh_sides.through):
        answer = json.loads(curl(*form, url))
        echo = json.loads(curl("-H", f"x-mock: {ECHO['x-mock']}", *form, url))
    assert (answer["bytes"], answer["filename"]) == (SIZE, file.name)
    body = base64.b64decode(echo["body_base64"])
    assert body.count(file.read_bytes()) == 1


@pytest.mark.parametrize("protocol", ["--http1.1", "--http2-prior-knowledge"])
def test_a_download_arrives_with_flat_memory(fresh_sides, tmp_path, protocol):
    path = f"/v1/files/file-{SIZE}/content"
    direct, through = tmp_path / "direct", tmp_path / "through"
    curl("--output", direct, f"{fresh_sides.direct.origin}{path}")
    with flat_memory(fresh_sides.through):
        curl(protocol, "--output", through, f"{fresh_sides.through.origin}{path}")
    assert through.stat().st_size == SIZE
    assert digest(through.read_bytes()) == digest(direct.read_bytes())


def test_a_slow_reader_does_not_fill_memory(fresh_sides, tmp_path):
    """A client that reads slowly must slow down the upstream."""
    path = f"/v1/files/file-{SIZE}/content"
    with flat_memory(fresh_sides.through):
        curl("--limit-rate", "25M", "--output", tmp_path / "slow", f"{fresh_sides.through.origin}{path}")
    assert (tmp_path / "slow").stat().st_size == SIZE


def curl(*arguments: str | pathlib.Path) -> bytes:
    command = ["curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "120", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}\n{done.stdout[:2000]}"
    return done.stdout


@contextmanager
def flat_memory(server: Server) -> Iterator[None]:
    """Asserts that the peak memory of the process grows by less than the limit while the block runs."""
    # Small calls first, so that one-time allocations of the first request are not counted. The chat waits for the tokenizer.
    curl(f"{server.origin}/v1/models")
    chat = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]})
    curl("-H", "content-type: application/json", "--data-binary", chat, f"{server.origin}/v1/chat/completions")
    before = peak_kib(server)
    yield
    growth = peak_kib(server) - before
    assert growth < MAX_GROWTH_KIB, f"the peak grew by {growth} KiB from {before} KiB"


def peak_kib(server: Server) -> int:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
