// openai-node, responses: an agent's conversation is managed, and the client sees no difference.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EVERY_TURN, TURNS, allButThree, bothWays, output, scriptedUpstream, withoutResults } from './agent.mjs';
import { clientOf, startSides } from './servers.mjs';

const MODEL = 'gpt-5';
const TOOLS = [
  { type: 'function', name: 'gauge', description: 'Reads a tide gauge.', strict: false, parameters: { type: 'object', properties: { step: { type: 'integer' } } } },
];

let sides;

before(async () => {
  sides = await startSides(scriptedUpstream('responses_upstream'), { text: EVERY_TURN });
});

after(() => sides?.stop());

const ask = (client, streams, request) => {
  const whole = { model: MODEL, tools: TOOLS, ...request };
  return streams ? client.responses.stream(whole).finalResponse() : client.responses.create(whole);
};

const resultsOf = (response) => response.output.filter((item) => item.type === 'function_call')
  .map(({ call_id, arguments: given }) => ({ type: 'function_call_output', call_id, output: output(JSON.parse(given).step) }));

/** Lets the agent work until it answers. Nothing is stored, so everything is sent again. */
async function runAgent(client, streams) {
  const input = [{ role: 'user', content: 'Why does berth 7 flood?' }];
  const answers = [];
  for (;;) {
    const response = await ask(client, streams, { input, instructions: 'You look after a harbour.', store: false });
    answers.push(JSON.parse(JSON.stringify(response)));
    const results = resultsOf(response);
    if (results.length === 0) return answers;
    input.push(...response.output, ...results);
  }
}

for (const streams of [false, true]) {
  test(`an agent with reasoning and tools gets the same answers ${streams ? 'as streams' : 'as JSON'}`, async () => {
    const { answers, sent, forwarded, masked } = await bothWays(sides, (origin) => runAgent(clientOf(origin), streams));
    assert.equal(answers.length, TURNS + 1);
    assert.deepEqual(masked, allButThree);
    assert.deepEqual(withoutResults(forwarded), withoutResults(sent));
    assert.equal(answers.at(-1).output_text, 'Berth 7 is dry.');
  });
}

test('a history of the provider’s is left alone', async () => {
  const { answers, sent, forwarded } = await bothWays(sides, async (origin) => {
    const answers = [];
    for (let previous, input = 'Why does berth 7 flood?'; input.length > 0; ) {
      const { data, response } = await clientOf(origin).responses.create({ model: MODEL, tools: TOOLS, input, previous_response_id: previous }).withResponse();
      answers.push(JSON.parse(JSON.stringify(data)));
      if (origin === sides.through) assert.equal(response.headers.get('x-tidegate-history'), previous === undefined ? null : 'upstream');
      [previous, input] = [data.id, resultsOf(data)];
    }
    return answers;
  });
  assert.equal(answers.length, TURNS + 1);
  assert.deepEqual(forwarded, sent);
});
