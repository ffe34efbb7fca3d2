"""A scripted upstream that speaks Anthropic's messages: an agent that calls a tool at every turn, and then answers.

It refuses what the API's public rules forbid, and records what has arrived.
"""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class AnthropicUpstream:
    origin: str
    turns: int
    tool: str
    arguments: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@contextmanager
def anthropic_upstream(
    turns: int, tool: str = "gauge", arguments: str = '{"step": STEP, "where": "pier é"}'
) -> Iterator[AnthropicUpstream]:
    upstream = AnthropicUpstream("", turns, tool, arguments)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """What has arrived since this was last asked for, for tests in other languages."""
            recorded = {"requests": upstream.requests, "problems": upstream.problems}
            upstream.requests, upstream.problems = [], []
            self.answer(200, "application/json", json.dumps(recorded).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            upstream.requests.append(body)
            upstream.headers.append({name.lower(): value for name, value in self.headers.items()})
            mistake = mistake_in(body)
            if mistake:
                upstream.problems.append(mistake)
                error = {"type": "error", "error": {"type": "invalid_request_error", "message": mistake}}
                return self.answer(400, "application/json", json.dumps(error).encode())
            message = message_for(body, upstream)
            if body.get("stream"):
                return self.answer(200, "text/event-stream", b"".join(events_of(message)))
            self.answer(200, "application/json", json.dumps(message).encode())

        def answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    upstream.origin = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def message_for(body: dict[str, Any], upstream: AnthropicUpstream) -> dict[str, Any]:
    """The answer depends on the number of steps so far, which an edit may not change, and not on their contents."""
    step = 1 + sum(message["role"] == "assistant" for message in body["messages"])
    thinking = {"type": "thinking", "thinking": f"Step {step}.", "signature": f"c2lnbmF0dXJl{step}"}
    if step <= upstream.turns:
        given = json.loads(upstream.arguments.replace("STEP", str(step)))
        call = {"type": "tool_use", "id": f"toolu_{step:03}", "name": upstream.tool, "input": given}
        content, reason = [thinking, {"type": "text", "text": f"I read gauge {step}."}, call], "tool_use"
    else:
        content, reason = [{"type": "text", "text": "Berth 7 is dry."}], "end_turn"
    usage = {"input_tokens": 12, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 1000, "output_tokens": 20}
    return {
        "id": f"msg_{step:03}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }


def events_of(message: dict[str, Any]) -> Iterator[bytes]:
    def event(kind: str, **members: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()

    yield event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        match block["type"]:
            case "thinking":
                start, deltas = {**block, "thinking": "", "signature": ""}, [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case "tool_use":
                text = json.dumps(block["input"])
                start, deltas = {**block, "input": {}}, [
                    {"type": "input_json_delta", "partial_json": part} for part in (text[:7], text[7:])
                ]
            case _:
                start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        yield event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": 20})
    yield event("message_stop")


def mistake_in(body: dict[str, Any]) -> str | None:
    """What the API would refuse a request for."""
    calls: set[str] = set()
    messages = body["messages"]
    if not messages or messages[0]["role"] != "user":
        return "the first message must be the user's"
    for number, message in enumerate(messages):
        blocks = blocks_of(message)
        kinds = [block["type"] for block in blocks]
        if not blocks or any(block["type"] == "text" and not block["text"] for block in blocks):
            return f"messages.{number}: content must not be empty"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if kinds[: len(results)] != ["tool_result"] * len(results):
            return f"messages.{number}: results must come first"
        if set(results) != calls or len(results) != len(calls):
            return f"messages.{number}: calls {sorted(calls)} are answered by {results}"
        calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    if json.dumps(body).count('"cache_control"') > 4:
        return "a maximum of 4 blocks with cache_control may be provided"
    return None


if __name__ == "__main__":
    with anthropic_upstream(int(sys.argv[1])) as running:
        print(f"listening on {running.origin}", flush=True)
        signal.pause()
