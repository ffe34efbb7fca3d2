// openai-node, other calls than chat completions: they pass unchanged in both directions. Also headers.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { AzureOpenAI, toFile } from 'openai';
import { API_KEY, clientOf, same, startSides, scripted } from './servers.mjs';

const ASK = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'When is high water?' }] };

let sides;
before(async () => (sides = await startSides()));
after(() => sides?.stop());

test('models', async () => {
  const models = await same(sides, async (client) => (await client.models.list()).data);
  assert.ok(models.some(({ id }) => id === 'gpt-4o-mini'));
});

test('embeddings', async () => {
  const answer = await same(sides, (client) =>
    client.embeddings.create({ model: 'text-embedding-3-small', input: ['ebb', 'flow'] }),
  );
  assert.equal(answer.data.length, 2);
});

test('a file can be uploaded and downloaded', async () => {
  const content = randomBytes(1_000_000);
  const [file] = await same(sides, async (client) => {
    const file = await client.files.create({ file: await toFile(content, 'tides.bin'), purpose: 'user_data' });
    const download = Buffer.from(await (await client.files.content(file.id)).arrayBuffer());
    return [file, createHash('sha256').update(download).digest('hex')];
  });
  assert.deepEqual([file.bytes, file.filename], [content.length, 'tides.bin']);
});

test('the bytes of a form', async () => {
  const content = randomBytes(1_000_000);
  const [length, occurs] = await same(sides, async (client) => {
    const form = { file: await toFile(content, 'tides.bin'), purpose: 'user_data' };
    const echo = await (await client.files.create(form, scripted({ echo: true })).asResponse()).json();
    const body = Buffer.from(echo.body_base64, 'base64');
    return [echo.body_bytes, body.includes(content)];
  });
  assert.ok(length > content.length);
  assert.ok(occurs);
});

test('the Azure client', async () => {
  const ask = async (origin) => {
    const client = new AzureOpenAI({
      endpoint: origin,
      deployment: 'pilot',
      apiVersion: '2024-10-21',
      apiKey: API_KEY,
      maxRetries: 0,
    });
    const answer = await client.chat.completions.create(ASK);
    const echo = await (await client.chat.completions.create(ASK, scripted({ echo: true })).asResponse()).json();
    return [answer, echo.target, echo.body];
  };
  const direct = await ask(sides.direct);
  assert.deepEqual(await ask(sides.through), direct);
  assert.equal(direct[1], '/openai/deployments/pilot/chat/completions?api-version=2024-10-21');
});

test('the upstream receives what the client sent', async () => {
  const options = { organization: 'org-tides', project: 'proj-ebb', defaultHeaders: { 'x-of-the-client': 'a, b' } };
  const seen = await same(
    sides,
    async (client) => {
      const echo = await (await client.chat.completions.create(ASK, scripted({ echo: true })).asResponse()).json();
      const names = ['authorization', 'openai-organization', 'openai-project', 'x-of-the-client', 'user-agent'];
      const headers = echo.headers.map(([name, value]) => [name.toLowerCase(), value]);
      return { ...echo, version: undefined, headers: headers.filter(([name]) => names.includes(name)).sort() };
    },
    options,
  );
  assert.equal(seen.headers.length, 5);
  assert.deepEqual(JSON.parse(seen.body), ASK);
});

test('the request id', async () => {
  const options = { headers: { 'x-client-request-id': 'abc-123' } };
  const id = await same(sides, async (client) => (await client.chat.completions.create(ASK, options))._request_id);
  assert.equal(id, 'abc-123');
});

test('a request id is added if the upstream has none', async () => {
  const body = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [] };
  const answer = await clientOf(sides.through).chat.completions.create(ASK, scripted({ status: 200, body }));
  assert.ok(answer._request_id);
});
