"""LangChain, which speaks chat completions. Needs OPENAI_API_KEY."""

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def gauge(step: int) -> str:
    """Reads a tide gauge."""
    return f"gauge {step}: " + "high water at noon, low water at six; " * 30


model = ChatOpenAI(model="gpt-5", base_url="http://127.0.0.1:8080/v1").bind_tools([gauge])
messages = [SystemMessage("You look after a harbour."), HumanMessage("Why does berth 7 flood?")]
while (answer := model.invoke(messages)).tool_calls:
    messages += [answer, *(gauge.invoke(call) for call in answer.tool_calls)]
print(answer.content)
