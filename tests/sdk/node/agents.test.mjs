// Agents on top of the SDKs, as the snippets of deploy/clients have them: both speak responses by default.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { EVERY_TURN, TURNS, allButThree, bothWays, scriptedUpstream, withoutResults } from './agent.mjs';
import { API_KEY, startSides } from './servers.mjs';

const SNIPPETS = fileURLToPath(new URL('../../../deploy/clients', import.meta.url));
// A program finds its packages from where it is.
const PACKAGES = fileURLToPath(new URL('node_modules', import.meta.url));

let sides, directory;

before(async () => {
  await mkdir(join(PACKAGES, '.cache'), { recursive: true });
  directory = await mkdtemp(join(PACKAGES, '.cache', 'clients-'));
  sides = await startSides(scriptedUpstream('responses_upstream'), { text: EVERY_TURN });
});

after(async () => {
  await sides?.stop();
  await rm(directory, { recursive: true });
});

/** Runs a snippet as a program of its own, pointed at this origin by its environment alone, and returns what it prints. */
async function runSnippet(name, origin) {
  await copyFile(join(SNIPPETS, name), join(directory, name));
  const env = { PATH: process.env.PATH, HOME: directory, OPENAI_API_KEY: API_KEY, OPENAI_BASE_URL: `${origin}/v1` };
  const { stdout } = await promisify(execFile)(process.execPath, [name], { cwd: directory, env, timeout: 120_000 });
  return stdout.trim();
}

for (const [what, name] of [['the Vercel AI SDK', 'ai_sdk.mjs'], ['openai-agents', 'openai_agents.mjs']]) {
  test(`${what} is managed and gets the same answer`, async () => {
    const { answers, sent, forwarded, masked } = await bothWays(sides, (origin) => runSnippet(name, origin));
    assert.equal(answers, 'Berth 7 is dry.');
    assert.equal(sent.length, TURNS + 1);
    assert.deepEqual(masked, allButThree);
    assert.deepEqual(withoutResults(forwarded), withoutResults(sent));
  });
}
