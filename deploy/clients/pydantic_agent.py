"""pydantic-ai, which speaks responses to OpenAI. Needs OPENAI_API_KEY, and OPENAI_BASE_URL=http://127.0.0.1:8080/v1."""

from pydantic_ai import Agent

agent = Agent("openai:gpt-5", instructions="You look after a harbour.")


@agent.tool_plain
def gauge(step: int) -> str:
    """Reads a tide gauge."""
    return f"gauge {step}: " + "high water at noon, low water at six; " * 30


print(agent.run_sync("Why does berth 7 flood?").output)
