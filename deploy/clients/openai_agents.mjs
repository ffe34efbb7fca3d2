// openai-agents, which speaks responses. Needs OPENAI_API_KEY, and OPENAI_BASE_URL=http://127.0.0.1:8080/v1.
import { Agent, run, setTracingDisabled, tool } from '@openai/agents';
import { z } from 'zod';

// Traces would go to api.openai.com, past Tidegate.
setTracingDisabled(true);
const gauge = tool({
  name: 'gauge',
  description: 'Reads a tide gauge.',
  parameters: z.object({ step: z.number() }),
  execute: async ({ step }) => `gauge ${step}: ${'high water at noon, low water at six; '.repeat(30)}`,
});
const agent = new Agent({ name: 'harbour', model: 'gpt-5', instructions: 'You look after a harbour.', tools: [gauge] });
const { finalOutput } = await run(agent, 'Why does berth 7 flood?', { maxTurns: 60 });
console.log(finalOutput);
