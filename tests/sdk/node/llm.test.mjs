// openai-node with a real small LLM behind Tidegate.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SMALL_LLM, clientOf, same, startSides } from './servers.mjs';

const ASK = {
  model: 'smollm2',
  messages: [
    { role: 'system', content: 'You are a harbour pilot.' },
    { role: 'user', content: 'Name three things that move with the tide.' },
  ],
  temperature: 0,
  seed: 7,
  max_tokens: 24,
};

let sides;
before(async () => {
  sides = await startSides(SMALL_LLM);
  // The first of two equal prompts is read, and the second is cached. After this one, all are cached.
  await clientOf(sides.direct).chat.completions.create(ASK);
});
after(() => sides?.stop());

test('the same text', async () => {
  const text = await same(sides, async (client) => {
    const answer = await client.chat.completions.create(ASK);
    return [answer.choices[0].message, answer.choices[0].finish_reason, answer.usage.completion_tokens];
  });
  assert.ok(text[0].content.length > 0);
});

test('the same stream, and usage at its end', async () => {
  const ask = { ...ASK, stream: true, stream_options: { include_usage: true } };
  const said = await same(sides, async (client) => {
    const deltas = [];
    let usage;
    for await (const chunk of await client.chat.completions.create(ask)) {
      deltas.push(...chunk.choices.map((choice) => choice.delta));
      usage = chunk.usage ?? usage;
    }
    return { deltas, completion: usage.completion_tokens };
  });
  assert.ok(said.deltas.length > 5 && said.completion > 5);
});

test('structured output', async () => {
  const schema = {
    type: 'object',
    properties: { harbour: { type: 'string', maxLength: 20 }, depth: { type: 'integer', minimum: 0, maximum: 99 } },
    required: ['harbour', 'depth'],
    additionalProperties: false,
  };
  const format = { type: 'json_schema', json_schema: { name: 'berth', schema, strict: true } };
  const content = await same(sides, async (client) => {
    const answer = await client.chat.completions.create({ ...ASK, max_tokens: 80, response_format: format });
    return answer.choices[0].message.content;
  });
  assert.deepEqual(Object.keys(JSON.parse(content)).sort(), ['depth', 'harbour']);
});

test("the server's refusal is passed on", async () => {
  const messages = [{ role: 'user', content: 'tide '.repeat(5000) }];
  const refusal = await same(sides, async (client) => {
    const error = await client.chat.completions.create({ ...ASK, messages }).catch((error) => error);
    return [error.status, error.type, error.message];
  });
  assert.deepEqual(refusal.slice(0, 2), [400, 'exceed_context_size_error']);
});
