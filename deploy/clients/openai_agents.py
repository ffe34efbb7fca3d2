"""openai-agents, which speaks responses. Needs OPENAI_API_KEY, and OPENAI_BASE_URL=http://127.0.0.1:8080/v1."""

from agents import Agent, RunConfig, Runner, function_tool


@function_tool
def gauge(step: int) -> str:
    """Reads a tide gauge."""
    return f"gauge {step}: " + "high water at noon, low water at six; " * 30


agent = Agent(name="harbour", model="gpt-5", instructions="You look after a harbour.", tools=[gauge])
# Traces would go to api.openai.com, past Tidegate.
quiet = RunConfig(tracing_disabled=True)
print(Runner.run_sync(agent, "Why does berth 7 flood?", max_turns=60, run_config=quiet).final_output)
