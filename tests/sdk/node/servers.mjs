// Starts an upstream and Tidegate as child processes on free loopback ports, and SDK clients for both.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 10_000;

export const API_KEY = 'sk-test-0123456789';

/** The mock upstream, whose answers a test can script. */
const MOCK = ['MOCK_UPSTREAM_BIN', 'mock-upstream', ['--listen', '127.0.0.1:0']];

/** A real small language model, served by llama.cpp from the Python suites' packages. */
export const SMALL_LLM = ['SMALL_LLM_PYTHON', 'python', [join(ROOT, 'tests', 'harness', 'llm_server.py')]];

// What the upstream behind Tidegate speaks, and how it compresses. The client's own one speaks HTTP/1 and compresses alike.
const KIND = process.env.TIDEGATE_TEST_UPSTREAM ?? 'http1';
const CODING = process.env.TIDEGATE_TEST_CODING ? ['--coding', process.env.TIDEGATE_TEST_CODING] : [];

const mockOf = (kind, directory) => [...MOCK.slice(0, 2),
  [...MOCK[2], '--kind', kind, ...(kind.startsWith('tls') ? ['--ca', join(directory, 'ca.pem')] : []), ...CODING]];

/**
 * Starts an upstream and Tidegate in front of it; `stop()` ends them. `admin` is the origin of the admin address, `config` the path of
 * the configuration, and `restart()` restarts Tidegate on the same addresses.
 */
export async function startSides(upstream = MOCK, { text = '', env = {} } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'tidegate-node-'));
  const started = [];
  const stop = async () => {
    for (const server of started.reverse()) await server.stop();
    await rm(directory, { recursive: true });
  };
  const listening = async (program, of) => {
    const server = await start(...program, of);
    started.push(server);
    return until('the upstream to listen', () => {
      server.checkAlive();
      return server.output().match(/listening on (https?:\/\/\S+)/)?.[1];
    });
  };
  try {
    const isMock = upstream === MOCK;
    const direct = await listening(isMock ? mockOf('http1', directory) : upstream, directory);
    let behind = direct;
    if (isMock && KIND !== 'http1') {
      behind = await listening(mockOf(KIND, directory), directory);
      if (KIND === 'h2c') text += '\n[upstreams.default]\nprotocol = "http2"\n';
      if (KIND.startsWith('tls')) env = { SSL_CERT_FILE: join(directory, 'ca.pem'), ...env };
    }

    const [listen, admin] = [await freeAddress(), await freeAddress()];
    const config = join(directory, 'proxy.toml');
    await writeFile(config, text);
    const flags = ['serve', '--config', config, '--listen', listen, '--admin', admin, '--upstream', behind];
    const begin = async () => {
      const tidegate = await start('TIDEGATE_BIN', 'tidegate', flags, directory, env);
      started.push(tidegate);
      await until('Tidegate to be ready', async () => {
        tidegate.checkAlive();
        const answer = await fetch(`http://${admin}/readyz`).catch(() => undefined);
        return answer?.status === 200;
      });
    };
    await begin();
    const restart = async (between = async () => {}) => {
      await started.pop().stop();
      await between();
      await begin();
    };
    return { direct, through: `http://${listen}`, admin: `http://${admin}`, config, restart, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export function clientOf(origin, options = {}) {
  return new OpenAI({ baseURL: `${origin}/v1`, apiKey: API_KEY, timeout: 60_000, maxRetries: 0, ...options });
}

/** Runs the scenario directly and through Tidegate. Asserts that the results are equal, and returns one. */
export async function same(sides, scenario, options) {
  const direct = await scenario(clientOf(sides.direct, options));
  const through = await scenario(clientOf(sides.through, options));
  assert.deepEqual(through, direct, "the answer through Tidegate is not the upstream's own");
  return direct;
}

/** Call options that script the answer of the mock upstream. */
export function scripted(fields) {
  return { headers: { 'x-mock': JSON.stringify(fields) } };
}

/** Calls `look` until it returns something true, or fails after `deadline` milliseconds. */
export async function until(what, look, deadline = START_DEADLINE_MS) {
  const end = Date.now() + deadline;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${deadline} ms for ${what}`);
    await wait(10);
  }
}

/** The client addresses of all established TCP connections to the server, according to the kernel. */
export async function connectionsTo(origin) {
  const port = Number(new URL(origin).port).toString(16).toUpperCase().padStart(4, '0');
  const rows = (await readFile('/proc/net/tcp', 'utf8')).trim().split('\n').slice(1);
  const columns = rows.map((row) => row.trim().split(/\s+/));
  return columns.filter(([, local, , state]) => local.endsWith(`:${port}`) && state === '01').map(([, , peer]) => peer);
}

async function start(variable, name, flags, directory, more = {}) {
  const path = process.env[variable] || join(process.env.CARGO_TARGET_DIR || join(ROOT, 'target'), 'debug', name);
  await access(path).catch(() => {
    throw new Error(`\`${path}\` is missing; hint: \`tests/run node\` builds it`);
  });
  const ours = /^(TIDEGATE_|AGENT_CONTEXT_|CONTEXT_|OPENAI_)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !ours.test(key)));
  const child = spawn(path, flags, { cwd: directory, env: { ...env, ...more }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const exited = once(child, 'exit');
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  return {
    output: () => output,
    checkAlive() {
      if (ended())
        throw new Error(`\`${name}\` ended with ${child.exitCode ?? child.signalCode}; its output:\n${output}`);
    },
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_DEADLINE_MS);
      await exited;
      clearTimeout(timer);
      if (child.signalCode === 'SIGKILL') {
        throw new Error(`\`${name}\` was still running ${STOP_DEADLINE_MS} ms after SIGTERM; its output:\n${output}`);
      }
    },
  };
}

async function freeAddress() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return `127.0.0.1:${port}`;
}
