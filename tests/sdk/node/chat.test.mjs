// openai-node, chat completions: every kind of call gives the same result through Tidegate.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { same, startSides } from './servers.mjs';

const MESSAGES = [
  { role: 'system', content: 'You are a harbour pilot.' },
  { role: 'user', content: 'When is high water?' },
];
const ASK = { model: 'gpt-4o-mini', messages: MESSAGES };
const TOOLS = ['tide', 'wind'].map((name) => ({
  type: 'function',
  function: {
    name,
    parameters: { type: 'object', properties: { harbour: { type: 'string' } }, required: ['harbour'] },
  },
}));
const Tide = z.object({ harbour: z.string(), height: z.number(), kind: z.enum(['high', 'low']) });

let sides;
before(async () => (sides = await startSides()));
after(() => sides?.stop());

async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

test('a plain call', async () => {
  const answer = await same(sides, (client) => client.chat.completions.create(ASK));
  assert.equal(answer.choices[0].message.content, 'You said: When is high water?');
});

test('a stream, chunk by chunk', async () => {
  const chunks = await same(sides, async (client) =>
    all(await client.chat.completions.create({ ...ASK, stream: true })),
  );
  const text = chunks.map((chunk) => chunk.choices[0].delta.content ?? '').join('');
  assert.equal(text, 'You said: When is high water?');
});

test('a stream with usage', async () => {
  const ask = { ...ASK, stream: true, stream_options: { include_usage: true } };
  const chunks = await same(sides, async (client) => all(await client.chat.completions.create(ask)));
  assert.ok(chunks.at(-1).usage.total_tokens > 0);
});

test('the bytes of a stream', async () => {
  const body = await same(sides, async (client) => {
    const response = await client.chat.completions.create({ ...ASK, stream: true }).asResponse();
    return [response.status, response.headers.get('content-type'), await response.text()];
  });
  assert.ok(body[2].endsWith('data: [DONE]\n\n'));
});

test('the stream helper', async () => {
  const final = await same(sides, async (client) => {
    const runner = client.chat.completions.stream(ASK);
    const pieces = [];
    runner.on('content', (piece) => pieces.push(piece));
    return { completion: await runner.finalChatCompletion(), pieces };
  });
  assert.ok(final.pieces.length > 1);
});

test('a tool call and its result', async () => {
  const [first, second] = await same(sides, async (client) => {
    const asked = await client.chat.completions.create({ ...ASK, tools: TOOLS, tool_choice: 'required' });
    const { message } = asked.choices[0];
    const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '3.2 m' };
    const messages = [...MESSAGES, message, result];
    return [asked, await client.chat.completions.create({ ...ASK, messages, tools: TOOLS })];
  });
  assert.equal(first.choices[0].finish_reason, 'tool_calls');
  assert.equal(second.choices[0].message.content, 'The tool said: 3.2 m');
});

test('a streamed tool call', async () => {
  const ask = { ...ASK, tools: TOOLS, tool_choice: 'required' };
  const message = await same(sides, (client) => client.chat.completions.stream(ask).finalMessage());
  assert.equal(message.tool_calls[0].function.name, 'tide');
});

test('the tool runner', async () => {
  const answer = await same(sides, async (client) => {
    const asked = [];
    const runner = client.chat.completions.runTools({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'What is the weather at sea?' }],
      tools: [
        zodFunction({
          name: 'weather',
          parameters: z.object({ place: z.string() }),
          function: ({ place }) => {
            asked.push(place);
            return 'calm';
          },
        }),
      ],
    });
    return { final: await runner.finalContent(), asked, messages: runner.messages };
  });
  assert.equal(answer.final, 'The tool said: calm');
  assert.equal(answer.asked.length, 1);
});

test('structured output', async () => {
  const ask = { ...ASK, response_format: zodResponseFormat(Tide, 'tide') };
  const answer = await same(sides, (client) => client.chat.completions.parse(ask));
  assert.deepEqual(Tide.parse(answer.choices[0].message.parsed), answer.choices[0].message.parsed);
});

test('structured output, streamed', async () => {
  const ask = { ...ASK, response_format: zodResponseFormat(Tide, 'tide') };
  const answer = await same(sides, (client) => client.chat.completions.stream(ask).finalChatCompletion());
  Tide.parse(answer.choices[0].message.parsed);
});

test('unicode', async () => {
  const content = 'naïve 東京 🌊 \u0000 \u2028 \\ " / e\u0301 עברית';
  const answer = await same(sides, (client) =>
    client.chat.completions.create({ ...ASK, messages: [{ role: 'user', content }] }),
  );
  assert.equal(answer.choices[0].message.content, `You said: ${content}`);
});

test('fifty calls at once', async () => {
  const answers = await same(sides, (client) => {
    const asks = Array.from({ length: 50 }, (_, number) => [{ role: 'user', content: `question ${number}` }]);
    return Promise.all(
      asks.map(async (messages, number) => {
        const answer = await client.chat.completions.create({ ...ASK, messages, stream: number % 2 === 0 });
        return number % 2 === 0 ? all(answer) : answer;
      }),
    );
  });
  assert.equal(answers.length, 50);
});
