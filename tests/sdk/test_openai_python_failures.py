"""openai-python failures: upstream errors, retries, timeouts, broken streams, clients that disconnect."""

import asyncio
import json

import openai
import pytest

from harness.mock import failing, open_connections, scripted
from harness.process import poll
from harness.sdk import async_client_of, client_of, plain, same, same_async

ASK = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "one two three four five six seven"}]}
# An abandoned call must end at the upstream at once. This tolerates a busy machine, but is shorter than a timeout.
LEAVING_DEADLINE = 2.0


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (409, openai.ConflictError),
        (413, openai.APIStatusError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
        (529, openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_keeps_its_status_headers_and_message(sides, status, error, stream):
    body = {"error": {"message": "No, ünlikely.", "type": "a_type", "param": "messages", "code": "a_code", "more": 1}}
    headers = {"retry-after": "17", "x-ratelimit-remaining-requests": "0", "x-request-id": "req_of_the_upstream"}

    def ask(client):
        with pytest.raises(error) as raised:
            client.chat.completions.create(
                **ASK, stream=stream, extra_headers=scripted(status=status, headers=headers, body=body)
            )
        seen = raised.value
        kept = {name: seen.response.headers[name] for name in headers}
        return type(seen).__name__, str(seen), seen.status_code, seen.code, seen.request_id, kept, seen.response.text

    *_, code, request_id, kept, text = same(sides, ask)
    assert (code, request_id, kept) == ("a_code", "req_of_the_upstream", headers)
    assert json.loads(text) == body


def test_an_error_that_is_not_json(sides):
    def ask(client):
        headers = scripted(status=502, headers={"content-type": "text/html"}, body="<h1>Bad gateway</h1>")
        with pytest.raises(openai.InternalServerError) as raised:
            client.chat.completions.create(**ASK, extra_headers=headers)
        return str(raised.value), raised.value.response.text, raised.value.response.headers["content-type"]

    assert same(sides, ask)[1] == "<h1>Bad gateway</h1>"


def test_an_unknown_path(sides):
    def ask(client):
        with pytest.raises(openai.NotFoundError) as raised:
            client.get("/nothing/here", cast_to=object)
        return str(raised.value)

    assert "Invalid URL (GET /v1/nothing/here)" in same(sides, ask)


def test_a_redirect_is_passed_on_and_not_followed(sides):
    def ask(client):
        headers = scripted(status=307, headers={"location": "/v1/models"}, body="")
        with pytest.raises(openai.APIStatusError) as raised:
            client.get("/moved", cast_to=object, options={"headers": headers, "follow_redirects": False})
        return raised.value.status_code, raised.value.response.headers["location"]

    assert same(sides, ask) == [307, "/v1/models"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_two_failures_and_a_success_are_three_attempts(sides, status):
    def ask(client):
        answer = client.chat.completions.with_raw_response.create(**ASK, extra_headers=failing(status, 2))
        return answer.retries_taken, answer.parse()

    retries, answer = same(sides, ask, max_retries=2)
    assert retries == 2
    assert answer["choices"]


def test_two_failures_and_a_success_from_the_async_client(sides):
    async def ask(client):
        answer = await client.chat.completions.with_raw_response.create(**ASK, extra_headers=failing(500, 2))
        return answer.retries_taken, answer.parse()

    assert same_async(sides, ask, max_retries=2)[0] == 2


def test_a_failing_stream_is_retried(sides):
    def ask(client):
        answer = client.chat.completions.with_raw_response.create(**ASK, stream=True, extra_headers=failing(503, 1))
        return answer.retries_taken, list(answer.parse())

    assert same(sides, ask, max_retries=2)[0] == 1


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_an_error_that_is_not_retried_reaches_the_upstream_once(sides, status):
    def ask(client):
        headers = failing(status, 1)
        with pytest.raises(openai.APIStatusError):
            client.chat.completions.create(**ASK, extra_headers=headers)
        # The upstream fails only the first request with these headers, so this one must be the second.
        return client.chat.completions.create(**ASK, extra_headers=headers)

    assert same(sides, ask, max_retries=2)["choices"]


def test_the_upstream_forbids_a_retry(sides):
    def ask(client):
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(**ASK, extra_headers=failing(500, 1, headers={"x-should-retry": "false"}))
        return "raised"

    same(sides, ask, max_retries=2)


def test_a_timeout_before_the_first_byte_ends_the_upstream_call(fresh_sides):
    for side in (fresh_sides.direct, fresh_sides.through):
        with client_of(side, timeout=0.3) as client:
            with pytest.raises(openai.APITimeoutError):
                client.chat.completions.create(**ASK, extra_headers=scripted(stall="before_first_byte"))
            upstream_call_has_ended(fresh_sides)


@pytest.mark.parametrize("path", ["/chat/completions", "/embeddings"])
def test_a_cancellation_before_the_first_byte_ends_the_upstream_call(fresh_sides, path):
    async def ask(side):
        async with async_client_of(side) as client:
            options = {"headers": scripted(stall="before_first_byte")}
            call = asyncio.create_task(client.post(path, cast_to=object, body=ASK, options=options))
            await asyncio.to_thread(upstream_is_busy, fresh_sides)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await asyncio.to_thread(upstream_call_has_ended, fresh_sides)

    for side in (fresh_sides.direct, fresh_sides.through):
        asyncio.run(ask(side))


def test_leaving_mid_stream_ends_the_upstream_call(fresh_sides):
    for side in (fresh_sides.direct, fresh_sides.through):
        with client_of(side) as client:
            stream = client.chat.completions.create(**ASK, stream=True, extra_headers=scripted(stall_after_events=3))
            chunks = iter(stream)
            words = [next(chunks).choices[0].delta.content for _ in range(3)]
            assert words == ["", "You ", "said: "]
            stream.close()
            upstream_call_has_ended(fresh_sides)


def test_an_event_arrives_before_the_next_is_sent(sides):
    def ask(client):
        stream = client.chat.completions.create(**ASK, stream=True, extra_headers=scripted(stall_after_events=1))
        with stream:
            return next(iter(stream))

    assert same(sides, ask)["choices"][0]["delta"]["role"] == "assistant"


def test_a_stream_that_breaks_between_two_events_raises(sides):
    limit = sum(len(event) for event in stream_events(sides)[:4])

    direct, cause = read_until_it_breaks(sides.direct, limit)
    assert isinstance(cause, openai.APIConnectionError)
    through, cause = read_until_it_breaks(sides.through, limit)
    assert through == direct
    assert len(through) == 4
    if is_compressed(sides):
        # Nothing can be added to a compressed stream, so the connection breaks here as well.
        assert isinstance(cause, openai.APIConnectionError)
        return
    # Directly it is a broken connection. Tidegate sends an error event, for which the SDK raises its own exception.
    assert isinstance(cause, openai.APIError) and not isinstance(cause, openai.APIConnectionError)
    assert {"message", "type", "param", "code"} <= cause.body.keys()


@pytest.mark.parametrize("missing_bytes", [1, 7, 40])
def test_a_stream_that_breaks_within_an_event_raises(sides, missing_bytes):
    limit = len(stream_events(sides)[0]) + missing_bytes

    direct, _ = read_until_it_breaks(sides.direct, limit)
    through, _ = read_until_it_breaks(sides.through, limit)
    assert through == direct
    assert len(through) == 1


def is_compressed(sides):
    with client_of(sides.direct) as client:
        return "content-encoding" in client.chat.completions.with_raw_response.create(**ASK, stream=True).headers


def stream_events(sides):
    """The bytes of each event of the stream, with its blank line."""
    with client_of(sides.direct) as client:
        body = client.chat.completions.with_raw_response.create(**ASK, stream=True).http_response.read()
    return [event + b"\n\n" for event in body.split(b"\n\n")]


def read_until_it_breaks(side, limit):
    chunks = []
    with client_of(side) as client:
        stream = client.chat.completions.create(**ASK, stream=True, extra_headers=scripted(break_after_bytes=limit))
        with pytest.raises((openai.APIError, json.JSONDecodeError)) as raised:
            for chunk in stream:
                chunks.append(plain(chunk))
    return chunks, raised.value


def upstream_is_busy(sides):
    poll(lambda: open_connections(sides.direct) > 0, "a connection to the upstream", 5.0)


def upstream_call_has_ended(sides):
    """The connection of an abandoned call cannot be reused, so it must be closed."""
    poll(lambda: open_connections(sides.direct) == 0, "the upstream's connection to close", LEAVING_DEADLINE)
