"""A scripted upstream that speaks OpenAI's responses: an agent that calls a tool at every turn, and then answers.

It refuses what the API's public rules forbid, keeps responses for `previous_response_id`, and records what has arrived.
"""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ResponsesUpstream:
    origin: str
    turns: int
    tool: str
    arguments: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    stored: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@contextmanager
def responses_upstream(turns: int, tool: str = "gauge", arguments: str = '{"step": STEP}') -> Iterator[ResponsesUpstream]:
    upstream = ResponsesUpstream("", turns, tool, arguments)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Answers have two writes, which would otherwise wait for each other.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            """What has arrived since this was last asked for, for tests in other languages."""
            if self.path == "/recorded":
                recorded = {"requests": upstream.requests, "problems": upstream.problems}
                upstream.requests, upstream.problems, upstream.stored = [], [], {}
                return self.answer(200, "application/json", json.dumps(recorded).encode())
            self.answer(200, "application/json", b'{"object": "list", "data": [], "models": []}')

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.split("?")[0].endswith("/responses"):
                return self.answer(404, "application/json", b'{"error": {"message": "no such endpoint"}}')
            with lock:
                items = upstream.stored.get(body.get("previous_response_id") or "", []) + items_of(body)
                upstream.requests.append(body)
                upstream.headers.append({name.lower(): value for name, value in self.headers.items()})
                mistake = mistake_in(items)
                if mistake:
                    upstream.problems.append(mistake)
                    error = {"error": {"message": mistake, "type": "invalid_request_error", "param": "input", "code": None}}
                    return self.answer(400, "application/json", json.dumps(error).encode())
                response = response_to(body, items, upstream)
                upstream.stored[response["id"]] = items + response["output"]
            if body.get("stream"):
                return self.answer(200, "text/event-stream", b"".join(events_of(response)))
            self.answer(200, "application/json", json.dumps(response).encode())

        def answer(self, status: int, kind: str, body: bytes) -> None:
            # The client may have given up.
            with suppress(OSError):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Disables the log: the bodies are recorded."""

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


def items_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def response_to(body: dict[str, Any], items: list[dict[str, Any]], upstream: ResponsesUpstream) -> dict[str, Any]:
    """The answer depends on the number of results so far, which an edit may not change, and not on their contents."""
    step = 1 + sum(item.get("type", "").endswith("_call_output") for item in items)
    reasoning = {"id": f"rs_{step:03}", "type": "reasoning", "summary": [], "encrypted_content": f"gAAAA{step}"}
    if step <= upstream.turns:
        call = {
            "id": f"fc_{step:03}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{step:03}",
            "name": upstream.tool,
            "arguments": upstream.arguments.replace("STEP", str(step)),
        }
        output = [reasoning, call]
    else:
        text = {"type": "output_text", "text": "Berth 7 is dry.", "annotations": [], "logprobs": []}
        words = {"id": f"msg_{step:03}", "type": "message", "status": "completed", "role": "assistant", "content": [text]}
        output = [reasoning, words]
    return {
        "id": f"resp_{step:03}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": 1042,
            "input_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 8},
            "total_tokens": 1062,
        },
    }


def events_of(response: dict[str, Any]) -> Iterator[bytes]:
    number = 0

    def event(kind: str, **members: Any) -> bytes:
        nonlocal number
        number += 1
        return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **members})}\n\n".encode()

    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "function_call":
                text = item["arguments"]
                yield event("response.output_item.added", output_index=index, item={**item, "arguments": "", "status": "in_progress"})
                for part in (text[:7], text[7:]):
                    yield event("response.function_call_arguments.delta", **place, delta=part)
                yield event("response.function_call_arguments.done", **place, name=item["name"], arguments=text)
            case "message":
                part = item["content"][0]
                inner = {**place, "content_index": 0}
                yield event("response.output_item.added", output_index=index, item={**item, "content": [], "status": "in_progress"})
                yield event("response.content_part.added", **inner, part={**part, "text": ""})
                yield event("response.output_text.delta", **inner, delta=part["text"], logprobs=[])
                yield event("response.output_text.done", **inner, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **inner, part=part)
            case _:
                yield event("response.output_item.added", output_index=index, item={**item, "encrypted_content": None})
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=response)


def mistake_in(items: list[dict[str, Any]]) -> str | None:
    """What the API would refuse a request for."""
    calls: set[str] = set()
    refers = any(item.get("type") == "item_reference" for item in items)
    for number, item in enumerate(items):
        kind = item.get("type") or "message"
        if kind.endswith("_call"):
            calls.add(item["call_id"])
        elif kind.endswith("_call_output"):
            if item["call_id"] not in calls and not refers:
                return f"No tool call found for function call output with call_id {item['call_id']}."
            calls.discard(item["call_id"])
        elif kind == "reasoning":
            following = items[number + 1] if number + 1 < len(items) else {}
            if following.get("role", "assistant") != "assistant" or following.get("type", "").endswith("_output"):
                return f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        elif kind == "message" and not item.get("content"):
            return f"input[{number}].content must not be empty"
    return f"No tool output found for function call {sorted(calls)[0]}." if calls else None


if __name__ == "__main__":
    with responses_upstream(int(sys.argv[1])) as running:
        print(f"listening on {running.origin}", flush=True)
        signal.pause()
