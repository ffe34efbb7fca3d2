// openai-node failures: upstream errors, retries, timeouts, broken streams, clients that disconnect.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import OpenAI, { APIConnectionTimeoutError, APIUserAbortError } from 'openai';
import { clientOf, connectionsTo, same, startSides, until, scripted } from './servers.mjs';

const ASK = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two three four five six' }] };
// An abandoned call must end at the upstream at once. This tolerates a busy machine, but is shorter than a timeout.
const LEAVING_DEADLINE_MS = 2_000;

let sides;
before(async () => (sides = await startSides()));
after(() => sides?.stop());

const failing = (status, times, headers = {}) =>
  scripted({ status, times, key: randomUUID(), headers: { 'retry-after-ms': '1', ...headers } });

async function failureOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail('the call should have failed');
}

for (const status of [400, 401, 403, 404, 409, 422, 429, 500, 503]) {
  test(`status ${status} keeps its headers and message`, async () => {
    const body = { error: { message: 'No.', type: 'a_type', param: 'messages', code: 'a_code', more: 1 } };
    const headers = { 'retry-after': '17', 'x-request-id': 'req_of_the_upstream' };
    const seen = await same(sides, async (client) => {
      const error = await failureOf(client.chat.completions.create(ASK, scripted({ status, headers, body })));
      assert.ok(error instanceof OpenAI.APIError);
      const { message, code, param, type, requestID, error: details } = error;
      return {
        kind: error.constructor.name,
        message,
        code,
        param,
        type,
        requestID,
        details,
        status: error.status,
        retryAfter: error.headers.get('retry-after'),
      };
    });
    assert.deepEqual(
      [seen.status, seen.code, seen.requestID, seen.retryAfter],
      [status, 'a_code', 'req_of_the_upstream', '17'],
    );
  });
}

for (const status of [408, 429, 500]) {
  test(`two failures with ${status} and a success are three attempts`, async () => {
    const [failure, answer] = await same(sides, async (client) => {
      const options = failing(status, 2);
      const failure = await failureOf(client.chat.completions.create(ASK, options));
      // One failure is used up, so exactly one retry is needed. With a proxy that retries, none would be.
      return [failure.status, await client.chat.completions.create(ASK, { ...options, maxRetries: 1 })];
    });
    assert.equal(failure, status);
    assert.equal(answer.choices.length, 1);
  });
}

test('more failures than retries are an error', async () => {
  const status = await same(sides, async (client) => {
    const headers = failing(500, 3);
    const failure = await failureOf(client.chat.completions.create(ASK, { ...headers, maxRetries: 2 }));
    // Three attempts have used up the three failures. One attempt more or fewer at the upstream would fail here.
    await client.chat.completions.create(ASK, headers);
    return failure.status;
  });
  assert.equal(status, 500);
});

test('422 is not retried', async () => {
  await same(sides, async (client) => {
    const headers = failing(422, 1);
    const failure = await failureOf(client.chat.completions.create(ASK, { ...headers, maxRetries: 2 }));
    assert.equal(failure.status, 422);
    return client.chat.completions.create(ASK, headers);
  });
});

test('a stream aborted half-way ends the upstream call', () =>
  endsTheUpstreamCall(async (client, connected) => {
    const stream = await client.chat.completions.create({ ...ASK, stream: true }, scripted({ stall_after_events: 3 }));
    const words = [];
    for await (const chunk of stream) {
      words.push(chunk.choices[0].delta.content);
      await connected;
      if (words.length === 3) stream.controller.abort();
    }
    assert.deepEqual(words, ['', 'You ', 'said: ']);
  }));

test('a call aborted before the first byte ends the upstream call', () =>
  endsTheUpstreamCall(async (client, connected) => {
    const controller = new AbortController();
    const options = { ...scripted({ stall: 'before_first_byte' }), signal: controller.signal };
    const call = failureOf(client.chat.completions.create(ASK, options));
    await connected;
    controller.abort();
    assert.ok((await call) instanceof APIUserAbortError);
  }));

test('a call that times out ends the upstream call', () =>
  endsTheUpstreamCall(async (client) => {
    const options = { ...scripted({ stall: 'before_first_byte' }), timeout: 300 };
    const failure = await failureOf(client.chat.completions.create(ASK, options));
    assert.ok(failure instanceof APIConnectionTimeoutError);
  }));

test('a stream that breaks is an error', async () => {
  const whole = await clientOf(sides.direct)
    .chat.completions.create({ ...ASK, stream: true })
    .asResponse();
  const events = (await whole.text()).split('\n\n').slice(0, 4);
  const limit = Buffer.byteLength(`${events.join('\n\n')}\n\n`);

  const read = async (side) => {
    const options = scripted({ break_after_bytes: limit });
    const stream = await clientOf(side).chat.completions.create({ ...ASK, stream: true }, options);
    const chunks = [];
    const readAll = async () => {
      for await (const chunk of stream) chunks.push(chunk);
    };
    return [chunks, await failureOf(readAll())];
  };
  const [direct] = await read(sides.direct);
  const [through, failure] = await read(sides.through);
  assert.equal(through.length, 4);
  assert.deepEqual(through, direct);
  // Directly it is a broken connection. Tidegate sends an error event, for which the SDK throws its own error.
  assert.ok(failure instanceof OpenAI.APIError, String(failure));
  assert.ok(failure.error.message);
});

/** On each side, runs `abandon`, which gives up its only call, and waits until the connection of that call is closed. */
async function endsTheUpstreamCall(abandon) {
  for (const side of ['direct', 'through']) {
    // Separate servers, because kept-alive connections of other tests cannot be distinguished from this call's.
    const own = await startSides();
    try {
      const connected = until('a connection', async () => (await connectionsTo(own.direct))[0]);
      await Promise.all([connected, abandon(clientOf(own[side]), connected)]);
      // Compares addresses and not counts: Node's fetch opens a new connection as soon as it has dropped one.
      const gone = async () => !(await connectionsTo(own.direct)).includes(await connected);
      await until('the upstream to be left', gone, LEAVING_DEADLINE_MS);
    } finally {
      await own.stop();
    }
  }
}
