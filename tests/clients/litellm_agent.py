"""An agent on litellm, which injects cache breakpoints. Run as a script: BASE_URL MODEL TURNS."""

import sys

import litellm

TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads a log.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
# The last message and the system message: what litellm's documentation recommends.
POINTS = [{"location": "message", "role": "system"}, {"location": "message", "index": -1}]


def main(base_url: str, model: str, turns: int) -> None:
    messages = [
        {"role": "system", "content": "You are a harbour pilot. " * 20},
        {"role": "user", "content": "Find the ship that is late."},
    ]
    for _ in range(turns):
        answer = litellm.completion(
            model=model,
            messages=messages,
            tools=[TOOL],
            api_base=base_url,
            api_key="key",
            cache_control_injection_points=POINTS,
        )
        message = answer.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": log(len(messages))})
    print(messages[-1]["content"])


def log(number: int) -> str:
    return "\n".join(f"{number:04}-{line:03} buoy {line * 37 % 91} passed at knot {line % 13}" for line in range(150))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
