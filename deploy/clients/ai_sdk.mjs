// Vercel AI SDK, whose `openai()` speaks responses. Needs OPENAI_API_KEY, and OPENAI_BASE_URL=http://127.0.0.1:8080/v1.
import { openai } from '@ai-sdk/openai';
import { generateText, stepCountIs, tool } from 'ai';
import { z } from 'zod';

const gauge = tool({
  description: 'Reads a tide gauge.',
  inputSchema: z.object({ step: z.number() }),
  execute: async ({ step }) => `gauge ${step}: ${'high water at noon, low water at six; '.repeat(30)}`,
});
const { text } = await generateText({
  model: openai('gpt-5'),
  // Without `store: false`, the SDK only refers to the model's items, and nothing of such a conversation can be folded.
  providerOptions: { openai: { store: false } },
  system: 'You look after a harbour.',
  prompt: 'Why does berth 7 flood?',
  tools: { gauge },
  stopWhen: stepCountIs(60),
});
console.log(text);
