"""An OpenAI-compatible upstream that answers with a script, and keeps the bodies that it was sent."""

import dataclasses
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# The message that answers a request, given the request and the number of earlier steps. None: this request is not a step.
Script = Callable[[dict[str, Any], int], dict[str, Any] | None]


@dataclasses.dataclass(frozen=True)
class ScriptedUpstream:
    """Runs at `origin`. `steps` are the bodies of the requests that the script answered, `others` those it did not."""

    origin: str
    steps: list[dict[str, Any]]
    others: list[dict[str, Any]]
    problems: list[str]


def call(number: int, name: str, text: str = "", **arguments: Any) -> dict[str, Any]:
    """An assistant's message with one tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": f"call_{number:04}", "type": "function", "function": function}]
    return {"role": "assistant", "content": text or f"Step {number}.", "tool_calls": calls}


def say(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@contextmanager
def scripted_upstream(script: Script) -> Iterator[ScriptedUpstream]:
    upstream: ScriptedUpstream
    lock = threading.Lock()

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        with lock:
            upstream.problems.extend(problems_of(body["messages"]))
            message = script(body, len(upstream.steps))
            (upstream.others if message is None else upstream.steps).append(body)
        return message or say("Tide work")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Answers have two writes, which would otherwise wait for each other.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.reply("application/json", json.dumps({"object": "list", "data": []}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            message = answer(body)
            if body.get("stream"):
                self.reply("text/event-stream", "".join(f"data: {event}\n\n" for event in events(body, message)))
            else:
                self.reply("application/json", json.dumps(completion(body, message)))

        def reply(self, kind: str, text: str) -> None:
            data = text.encode()
            # The client may have given up.
            with suppress(OSError):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Disables the log: the bodies are recorded."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    upstream = ScriptedUpstream(f"http://127.0.0.1:{server.server_port}", [], [], [])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield upstream
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(body: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(message)}
    return {**envelope(body, "chat.completion"), "choices": [choice], "usage": usage(body)}


def events(body: dict[str, Any], message: dict[str, Any]) -> Iterator[str]:
    calls = [{"index": index, **one} for index, one in enumerate(message.get("tool_calls", []))]
    delta = {**message, **({"tool_calls": calls} if calls else {})}
    for part, reason in ((delta, None), ({}, finish_reason(message))):
        choice = {"index": 0, "delta": part, "finish_reason": reason}
        yield json.dumps({**envelope(body, "chat.completion.chunk"), "choices": [choice]})
    yield json.dumps({**envelope(body, "chat.completion.chunk"), "choices": [], "usage": usage(body)})
    yield "[DONE]"


def finish_reason(message: dict[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def envelope(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{next(NUMBERS)}", "object": kind, "created": 1_700_000_000, "model": body["model"]}


def usage(body: dict[str, Any]) -> dict[str, Any]:
    prompt = len(json.dumps(body["messages"])) // 4
    return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}


NUMBERS = itertools.count()


def problems_of(messages: list[dict[str, Any]]) -> Iterator[str]:
    """What a strict provider would refuse: calls without results, results without calls, more breakpoints than four."""
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"message {number} answers no open call"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            yield f"message {number} follows unanswered calls"
        open_calls = {one["id"] for one in message.get("tool_calls") or []}
        if not message.get("content") and not open_calls:
            yield f"message {number} is empty"
    if open_calls:
        yield "the last calls are unanswered"
    if json.dumps(messages).count('"cache_control"') > 4:
        yield "more than four breakpoints"
