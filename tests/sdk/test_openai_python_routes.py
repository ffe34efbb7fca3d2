"""openai-python, other calls than chat completions: they pass unchanged in both directions. Also headers."""

import base64
import hashlib
import io
import random
from urllib.parse import urlsplit

from openai import AzureOpenAI, OpenAI

from harness.mock import ECHO, scripted
from harness.sdk import API_KEY, TIMEOUT, client_of, plain, same, same_async

ASK = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "When is high water?"}]}
# Headers of the connection, which a proxy replaces.
OF_THE_CONNECTION = {"connection", "keep-alive", "te", "transfer-encoding", "upgrade", "proxy-connection"}
# Headers that a proxy may add for logs and traces.
OF_A_PROXY = {"via", "forwarded", "x-forwarded-for", "x-forwarded-proto", "traceparent", "x-request-id"}


def test_models(sides):
    models = same(sides, lambda client: client.models.list().data)
    assert "gpt-4o-mini" in [model["id"] for model in models]
    assert same(sides, lambda client: client.models.retrieve("gpt-5"))["id"] == "gpt-5"


def test_a_model_name_that_needs_escaping(sides):
    def ask(client):
        answer = client.models.with_raw_response.retrieve("org/a model:ünïcode", extra_headers=ECHO)
        return received(answer.http_response.json())

    assert same(sides, ask)["target"].startswith("/v1/models/org%2Fa%20model")


def test_embeddings(sides):
    def ask(client):
        packed = client.embeddings.create(model="text-embedding-3-small", input=["ebb", "flow"])
        spelt = client.embeddings.create(model="text-embedding-3-small", input="ebb", encoding_format="float")
        return packed, spelt

    packed, spelt = same(sides, ask)
    assert packed["data"][0]["embedding"] == spelt["data"][0]["embedding"]


def test_a_file_can_be_uploaded_and_downloaded(sides):
    content = random.Random(1).randbytes(1_000_000)

    def ask(client):
        file = client.files.create(file=("tides.bin", io.BytesIO(content)), purpose="user_data")
        download = client.files.content(file.id)
        return file, hashlib.sha256(download.content).hexdigest(), download.response.headers["content-type"]

    file, _, _ = same(sides, ask)
    assert (file["bytes"], file["filename"]) == (len(content), "tides.bin")


def test_the_bytes_of_a_form(sides):
    content = random.Random(2).randbytes(1_000_000)

    def ask(client):
        file = ("tides.bin", io.BytesIO(content))
        answer = client.files.with_raw_response.create(file=file, purpose="user_data", extra_headers=ECHO)
        echo = answer.http_response.json()
        body = base64.b64decode(echo["body_base64"])
        # The SDK generates a boundary for each form; everything else must be the same.
        boundary = received(echo)["headers"]["content-type"].partition("boundary=")[2].encode()
        return echo["body_bytes"], body.count(content), body.replace(content, b"").replace(boundary, b"")

    assert same(sides, ask)[1] == 1


def test_the_bytes_of_a_binary_body(sides):
    content = random.Random(2).randbytes(1_000_000)

    def ask(client):
        options = {"headers": {**ECHO, "content-type": "application/octet-stream"}}
        return received(client.post("/uploads/1/parts", cast_to=object, content=content, options=options))

    assert base64.b64decode(same(sides, ask)["body_base64"]) == content


def test_a_streamed_download(sides):
    def ask(client):
        with client.files.with_streaming_response.content("file-3000000") as response:
            digest = hashlib.sha256()
            for block in response.iter_bytes():
                digest.update(block)
        return response.headers.get("content-length"), digest.hexdigest()

    assert same(sides, ask)[0] in ("3000000", None)


def test_a_transcription(sides):
    async def ask(client):
        return await client.audio.transcriptions.create(file=("a.wav", b"RIFF" + bytes(50_000)), model="whisper-1")

    assert same_async(sides, ask)["text"] == "50004 bytes of speech"


def azure_options(side):
    return {
        "azure_endpoint": side.origin,
        "azure_deployment": "pilot",
        "api_version": "2024-10-21",
        "api_key": API_KEY,
        "timeout": TIMEOUT,
        "max_retries": 0,
    }


def test_the_azure_client(sides):
    def ask(side):
        with AzureOpenAI(**azure_options(side)) as client:
            answer = client.chat.completions.create(**ASK)
            chunks = list(client.chat.completions.create(**ASK, stream=True))
            embedding = client.embeddings.create(model="pilot", input="ebb")
            echo = client.chat.completions.with_raw_response.create(**ASK, extra_headers=ECHO)
        return plain([answer, chunks, embedding, received(echo.http_response.json())])

    direct, through = ask(sides.direct), ask(sides.through)
    assert through == direct
    assert direct[-1]["target"] == "/openai/deployments/pilot/chat/completions?api-version=2024-10-21"
    assert direct[-1]["headers"]["api-key"] == API_KEY


def test_the_upstream_receives_what_the_client_sent(sides):
    def ask(client: OpenAI):
        headers = {**ECHO, "x-of-the-client": "a value, with a comma", "x-empty": "", "X-MiXeD": "case"}
        answer = client.chat.completions.with_raw_response.create(
            **ASK,
            extra_headers=headers,
            extra_body={"of_tomorrow": {"z": 1, "a": 1.50, "big": 123456789012345678901234567890}},
            extra_query={"q": "a b/c?&é"},
        )
        return received(answer.http_response.json())

    seen = same(sides, ask, organization="org-tides", project="proj-ebb", default_headers={"x-default": "yes"})
    expected = {
        "authorization": f"Bearer {API_KEY}",
        "openai-organization": "org-tides",
        "openai-project": "proj-ebb",
        "x-default": "yes",
        "x-mixed": "case",
        "x-empty": "",
    }
    assert expected.items() <= seen["headers"].items()
    assert '"big":123456789012345678901234567890' in seen["body"]


def test_the_upstream_sees_its_own_authority(sides):
    with client_of(sides.through) as client:
        answer = client.chat.completions.with_raw_response.create(**ASK, extra_headers=ECHO).http_response.json()
    hosts = [value for name, value in answer["headers"] if name.lower() in ("host", ":authority")]
    assert hosts == [urlsplit(sides.upstream).netloc]


def test_the_client_receives_the_upstreams_headers(sides):
    ours = {"openai-processing-ms": "12", "x-ratelimit-limit-tokens": "1000", "openai-version": "2020-10-01"}

    def ask(client):
        answer = client.chat.completions.with_raw_response.create(**ASK, extra_headers=scripted(headers=ours))
        # A proxy adds `date` if the upstream sends none.
        names = answer.headers.keys() - OF_THE_CONNECTION - {"date"}
        return {name: answer.headers[name] for name in sorted(names) if not name.startswith("x-tidegate-")}

    seen = same(sides, ask)
    assert ours.items() <= seen.items()


def test_the_request_id(sides):
    def ask(client):
        return client.chat.completions.create(**ASK, extra_headers={"x-client-request-id": "abc-123"})._request_id

    assert same(sides, ask) == "abc-123"


def test_a_request_id_is_added_if_the_upstream_has_none(sides):
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    with client_of(sides.through) as client:
        answer = client.chat.completions.create(**ASK, extra_headers=scripted(status=200, body=body))
    assert answer._request_id


def received(echo):
    """The request that the mock received, without its version and without headers of the connection or of a proxy."""
    pairs = [(name.lower(), value) for name, value in echo["headers"]]
    ignored = OF_THE_CONNECTION | OF_A_PROXY | {"host", ":authority", "x-mock"}
    headers = {name: value for name, value in pairs if name not in ignored}
    assert len(headers) == len([name for name, _ in pairs if name not in ignored]), f"a header came twice: {pairs}"
    return {**echo, "headers": headers, "version": None}
