// @anthropic-ai/sdk: an agent's conversation is managed, and the client sees no difference.

import Anthropic from '@anthropic-ai/sdk';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EVERY_TURN, TURNS, allButThree, bothWays, output, scriptedUpstream, withoutResults } from './agent.mjs';
import { startSides } from './servers.mjs';

const TOOLS = [
  { name: 'gauge', description: 'Reads a tide gauge.', input_schema: { type: 'object', properties: { step: { type: 'integer' }, where: { type: 'string' } } } },
];

let sides;

before(async () => {
  sides = await startSides(scriptedUpstream('anthropic_upstream'), { text: EVERY_TURN });
});

after(() => sides?.stop());

const clientOf = (origin) => new Anthropic({ baseURL: origin, apiKey: 'sk-ant-test', maxRetries: 0, timeout: 60_000 });

/** Lets the agent work until it answers. The last result has a cache marker, which moves at every turn. */
async function runAgent(client, streams) {
  const messages = [{ role: 'user', content: 'Why does berth 7 flood?' }];
  const answers = [];
  for (;;) {
    const request = { model: 'claude-opus-5', max_tokens: 4000, system: 'You look after a harbour.', tools: TOOLS, thinking: { type: 'adaptive' }, messages };
    const answer = streams ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
    answers.push(JSON.parse(JSON.stringify(answer)));
    if (answer.stop_reason !== 'tool_use') return answers;
    messages.push({ role: 'assistant', content: answer.content });
    for (const { content } of messages) for (const block of Array.isArray(content) ? content : []) delete block.cache_control;
    const results = answer.content.filter((block) => block.type === 'tool_use')
      .map((block) => ({ type: 'tool_result', tool_use_id: block.id, content: output(block.input.step), cache_control: { type: 'ephemeral' } }));
    messages.push({ role: 'user', content: results });
  }
}

for (const streams of [false, true]) {
  test(`an agent with thinking and tools gets the same answers ${streams ? 'as streams' : 'as JSON'}`, async () => {
    const { answers, sent, forwarded, masked } = await bothWays(sides, (origin) => runAgent(clientOf(origin), streams));
    assert.equal(answers.length, TURNS + 1);
    assert.deepEqual(masked, allButThree);
    assert.deepEqual(withoutResults(forwarded), withoutResults(sent));
    assert.equal(answers[0].content[0].type, 'thinking');
    assert.equal(answers.at(-1).content[0].text, 'Berth 7 is dry.');
  });
}

test('the events of a stream are the upstream’s own', async () => {
  const request = { model: 'claude-opus-5', max_tokens: 64, messages: [{ role: 'user', content: 'hello' }] };
  const { answers } = await bothWays(sides, async (origin) => {
    const events = [];
    for await (const event of await clientOf(origin).messages.create({ ...request, stream: true })) events.push(event);
    return events;
  });
  assert.deepEqual([answers[0].type, answers.at(-1).type], ['message_start', 'message_stop']);
});
