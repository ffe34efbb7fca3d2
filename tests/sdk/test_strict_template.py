"""llama.cpp with a chat template that wants user and assistant to alternate, as Gemma's does: it accepts every edited request."""

import pathlib

import openai
import pytest

from harness import servers
from harness.sdk import client_of
from harness.servers import Server

# The messages are SmolLM2's own format, and the order is Gemma's.
TEMPLATE = """\
{%- if messages[0]['role'] == 'system' -%}{%- set talk = messages[1:] -%}{%- else -%}{%- set talk = messages -%}{%- endif -%}
{%- if messages[0]['role'] == 'system' -%}{{ '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}{%- endif -%}
{%- for message in talk -%}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif -%}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""

SETTINGS = """
[models."smollm2"]
window = 4096
[context]
strategy = "{strategy}"
{budget}
[context.observations]
user_pattern = "^Observation:"
[context.mask]
keep = {{ turns = 2 }}
pace = "every_turn"
[context.window]
head_min = 1
tail_min = 2
[context.fold]
mode = "inline"
when = {{ turns = 6 }}
keep = {{ turns = 2 }}
max_tokens = 200
"""


def settings(strategy: str) -> str:
    # Only the window needs a budget that the conversation outgrows; the others edit at their own pace.
    budget = "[context.budget]\nmax_input = 600" if strategy == "window" else ""
    return SETTINGS.format(strategy=strategy, budget=budget)


TURNS = 12


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory):
    with servers.small_llm(tmp_path_factory.mktemp("llm"), TEMPLATE) as server:
        yield server


def conversation() -> list[dict[str, str]]:
    messages = [{"role": "system", "content": "You are a harbour pilot."}]
    for turn in range(TURNS):
        kind = "Observation:" if turn % 3 else "Question:"
        messages.append({"role": "user", "content": f"{kind} {'berth ' * 30}{turn}"})
        messages.append({"role": "assistant", "content": f"Action {turn}: {'sound ' * 6}"})
    return messages


def ask(client: openai.OpenAI, messages: list[dict[str, str]]):
    return client.chat.completions.with_raw_response.create(model="smollm2", messages=messages, max_tokens=1)


def edited_requests(proxy: Server) -> int:
    """Sends a growing conversation. Each request is accepted. Returns how many of them were edited."""
    edited = 0
    with client_of(proxy, default_headers={"x-conversation-id": "pilot"}) as client:
        for end in range(2, 2 * TURNS + 1, 2):
            answer = ask(client, conversation()[:end])
            assert answer.status_code == 200
            edited += answer.headers["x-tidegate-edits"] != "masked=0,folded=0,dropped=0"
    return edited


@pytest.mark.parametrize("strategy", ["masking", "summarization", "hybrid", "window"])
def test_the_template_accepts_every_edited_request(llm: Server, tmp_path: pathlib.Path, strategy: str):
    with servers.tidegate(llm, tmp_path, settings(strategy)) as proxy:
        assert edited_requests(proxy) >= TURNS // 3


def test_the_template_refuses_messages_out_of_order(llm: Server, tmp_path: pathlib.Path):
    question = {"role": "user", "content": "How deep is it?"}
    with client_of(llm) as client:
        with pytest.raises(openai.BadRequestError, match="must alternate"):
            ask(client, [question, question])
        with pytest.raises(openai.BadRequestError, match="must alternate"):
            ask(client, [{"role": "assistant", "content": "Deep."}, question])
    # A marker of its own behind the first question.
    apart = settings("window") + 'placement = "message"\n'
    with servers.tidegate(llm, tmp_path, apart) as proxy, pytest.raises(openai.BadRequestError, match="must alternate"):
        edited_requests(proxy)
