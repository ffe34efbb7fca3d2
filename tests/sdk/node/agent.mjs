// What the tests of agents have in common: scripted upstreams that call a tool at every turn, and what arrives at them.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HARNESS = fileURLToPath(new URL('../../harness', import.meta.url));

/** The number of calls after which a scripted upstream answers in words. */
export const TURNS = 40;
export const EVERY_TURN = '[context.mask]\nkeep = { turns = 3 }\npace = "every_turn"\n';
const PLACEHOLDER = '[OMITTED_OBSERVATION';

/** A scripted upstream of the Python suites, which refuses what the API's public rules forbid. */
export const scriptedUpstream = (name) => ['SMALL_LLM_PYTHON', 'python', [join(HARNESS, `${name}.py`), String(TURNS)]];

/** What a tool returns: long enough to be masked. */
export const output = (step) => `gauge ${step}: ${'high water at noon, low water at six; '.repeat(30)}`;

/**
 * Runs the agent directly and through Tidegate, and asserts that it got the same answers and that every request was legal. Returns
 * the answers, what each run sent, and how many results were masked in each request.
 */
export async function bothWays(sides, run) {
  const direct = await run(sides.direct);
  const sent = await recorded(sides);
  const through = await run(sides.through);
  const forwarded = await recorded(sides);
  assert.deepEqual(through, direct, "the answers through Tidegate are not the upstream's own");
  assert.deepEqual([...sent.problems, ...forwarded.problems], []);
  assert.equal(forwarded.requests.length, sent.requests.length);
  const masked = forwarded.requests.map((request) => JSON.stringify(request).split(PLACEHOLDER).length - 1);
  return { answers: direct, sent: sent.requests, forwarded: forwarded.requests, masked };
}

/** Takes from the upstream what has arrived since this was last asked. */
const recorded = async (sides) => (await fetch(`${sides.direct}/recorded`)).json();

/** With `EVERY_TURN`, all but the three newest results of each request are masked. */
export const allButThree = Array.from({ length: TURNS + 1 }, (_, turn) => Math.max(0, turn - 3));

/** The requests without the texts of results, which are all that may differ. */
export const withoutResults = (requests) =>
  JSON.parse(JSON.stringify(requests), function strip(key, value) {
    const isResult = this.type === 'tool_result' || /_call_output$/.test(this.type ?? '');
    return isResult && (key === 'content' || key === 'output') ? undefined : value;
  });
