// What the dashboard says of plans that were only observed, of refusals, of unknown windows, and of conversations without a name.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, violations, watchedPage } from './browser.mjs';
import { startSides, until } from './servers.mjs';
import { Traffic } from './traffic.mjs';

const CONFIG = `
[context.mask]
keep = { turns = 2 }
pace = "every_turn"

[[routes]]
name = "watched"
match = { headers = { x-mode = "watch" } }
[routes.context]
observe = true

[[routes]]
name = "capped"
match = { models = ["gpt-4o-mini"] }
[routes.context.limits]
max_turns = 2

[[routes]]
name = "agents"
`;
const WATCH = { headers: { 'x-mode': 'watch' } };

let sides, traffic, browser, known;

before(async () => {
  sides = await startSides(undefined, { text: CONFIG });
  traffic = new Traffic(sides);
  await traffic.agent('mixed', 5, WATCH);
  await traffic.agent('mixed', 10, { from: 6 });
  await traffic.agent('watched', 6, WATCH);
  await traffic.agent('capped', 2, { model: 'gpt-4o-mini' });
  await traffic.agent('capped', 4, { model: 'gpt-4o-mini', from: 4, refused: true });
  await traffic.agent('local', 4, { model: 'my-own-model' });
  // Neither is named, so each is recognised by its content.
  await traffic.ask(undefined, { model: 'gpt-4o', messages: [{ role: 'user', content: 'Which berth is the deepest?' }] });
  known = Object.fromEntries((await traffic.counted()).map((one) => [one.name, one]));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await sides?.stop();
});

const api = async (path) => (await fetch(sides.admin + path)).json();
const unnamed = () => Object.values(known).find((one) => one.name.startsWith('auto-'));

async function open(fragment) {
  const { page, troubles } = await watchedPage(browser, sides.admin);
  await page.goto(`${sides.admin}/${fragment}`);
  await page.locator('h1#title').waitFor();
  return { page, troubles };
}

test('what plans would have done is told of all turns, not of the observed ones alone', async () => {
  const { turns, conversation } = await api(`/api/conversations/${known.mixed.id}?turns_limit=50`);
  assert.deepEqual([conversation.observed, turns.length], [5, 10]);
  const sum = (figure) => turns.reduce((all, turn) => all + figure(turn), 0);
  // A record says of an observed turn what was planned, and of another what was forwarded.
  assert.equal(conversation.tokens_planned, sum((turn) => turn.tokens_after));
  const planned = sum((turn) => turn.planned_cost_usd ?? turn.cost_usd);
  assert.ok(Math.abs(conversation.planned_cost_usd - planned) < 1e-8, `${conversation.planned_cost_usd} ${planned}`);

  const { page, troubles } = await open('#/conversations');
  const saved = (1 - conversation.tokens_planned / conversation.tokens_before) * 100;
  const row = page.locator(`tr[data-id="${known.mixed.id}"]`);
  await row.waitFor();
  assert.ok((await row.innerText()).includes(`${saved.toFixed(1)} % (would)`), await row.innerText());
  assert.match(await row.locator('[title*="only observed"]').first().getAttribute('title'), /^5 of 10 turns only observed/);
  await page.goto(`${sides.admin}/#/conversations/${known.mixed.id}`);
  const facts = page.locator('dl.facts').first();
  await until('the figures', async () => /With all plans applied/i.test(await facts.innerText()));
  assert.match(await facts.innerText(), /5 of 10 turns only observed; would have avoided/);
  assert.deepEqual(troubles, []);
});

test('one observed request does not turn the whole headline into what would have been', async () => {
  const { page, troubles } = await open('#/');
  const answer = page.locator('[data-answer="saved"]');
  await until('the headline', async () => /net/.test(await answer.innerText()));
  assert.match(await answer.innerText(), /^(What did it save\?\s+)?(Saved|Cost) \$[\d.]+ .*observed requests would have saved \$[\d.]+ more\.$/s);
  await page.locator('tr[data-name="watched"] button').click();
  await until('the headline of the observed route', async () => /Would have saved \$[\d.]+ net/.test(await answer.innerText()));
  assert.match(await answer.innerText(), /Nothing was edited\./);
  const recent = page.locator(`tr[data-recent="${known.watched.id}"]`);
  assert.match(await recent.innerText(), /\(would\)/);
  assert.deepEqual(troubles, []);
});

test('a message that stays masked is one message left out', async () => {
  const { page, troubles } = await open('#/');
  await page.locator('tr[data-name="agents"] button').click();
  const { totals } = await api('/api/overview?route=agents');
  // Turn 10 of `mixed` has masked 7 results, all of them within these five turns; turn 4 of `local` has masked one.
  const turns = [...(await api(`/api/conversations/${known.mixed.id}?turns_limit=50`)).turns, ...(await api(`/api/conversations/${known.local.id}`)).turns];
  const applied = turns.filter((turn) => !turn.observed).map((turn) => turn.masked);
  const masked = new Set([...applied.slice(0, 5).flat().map((index) => `mixed ${index}`), ...applied.slice(5).flat().map((index) => `local ${index}`)]);
  assert.ok(masked.size > 5 && totals.masked > masked.size, JSON.stringify(totals));
  // What had been masked in observed turns was never left out, but is no news to the plan.
  assert.ok(totals.left_out > 0 && totals.left_out <= masked.size, `${totals.left_out} ${masked.size}`);
  await until('the figure', async () => (await page.locator('article[data-figure="edits"] .figure').innerText()) === String(totals.left_out));
  assert.deepEqual(troubles, []);
});

test('a refused turn names its true reason', async () => {
  const { page, troubles } = await open(`#/conversations/${known.capped.id}/turns/3`);
  const cause = page.locator('.cause.failed');
  await cause.waitFor();
  assert.match(await cause.innerText(), /refused it with max_turns_exceeded: the conversation has as many turns as `context\.limits\.max_turns` allows/);
  assert.deepEqual(troubles, []);
});

test('a model whose window is unknown is over no budget', async () => {
  const { page, troubles } = await open(`#/conversations/${known.local.id}/turns/4`);
  const budget = page.locator('table.sum');
  await budget.waitFor();
  assert.match(await budget.innerText(), /unknown, so nothing limits the request/);
  assert.doesNotMatch(await budget.innerText(), /over/);
  await page.goto(`${sides.admin}/#/conversations/${known.local.id}`);
  await until('the legend', async () => /no budget: the window is unknown/.test(await page.locator('.strip .legend').innerText()));
  assert.equal(await page.locator('.columns path.budget').count(), 0);
  assert.deepEqual(troubles, []);
});

test('lists are sorted in both directions, and turns are filtered by what went wrong', async () => {
  const { page, troubles } = await open('#/conversations');
  const names = () => page.locator('tr[data-id] th a').allInnerTexts();
  await until('the list', async () => (await names()).length === 5);
  const header = (name) => page.locator(`th[data-sort="${name}"]`);
  await header('name').locator('button').click();
  await until('the names from A', async () => (await names()).slice(1).join() === 'capped,local,mixed,watched');
  assert.equal(await header('name').getAttribute('aria-sort'), 'ascending');
  await header('name').locator('button').click();
  await until('the names from Z', async () => (await names())[0] === 'watched');
  await header('route').locator('button').click();
  await until('the routes from A', async () => (await names()).at(-1) === 'watched');
  await header('turns').locator('button').click();
  await until('the longest first', async () => (await names())[0] === 'mixed');
  await header('turns').locator('button').click();
  await until('the shortest first', async () => (await names()).at(-1) === 'mixed');

  await page.goto(`${sides.admin}/#/conversations/${known.capped.id}`);
  const turns = () => page.locator('tr[data-number] th').allInnerTexts();
  await until('all turns, newest first', async () => (await turns()).join() === 'Turn 3,Turn 2,Turn 1');
  await header('turn').locator('button').click();
  await until('the oldest first', async () => (await turns()).join() === 'Turn 1,Turn 2,Turn 3');
  await page.locator('#turn-trouble').selectOption('refusals');
  await until('the refused one', async () => (await turns()).join() === 'Turn 3');
  assert.deepEqual(await violations(page, 'a conversation'), []);
  assert.deepEqual(troubles, []);
});

test('a conversation without a name shows its first message wherever it is listed', async () => {
  const { page, troubles } = await open('#/');
  const { id } = unnamed();
  const said = (place) => until(`the message at ${place}`, async () => (await page.locator('.opening').allInnerTexts()).includes('Which berth is the deepest?'));
  await said('the overview');
  for (const place of [`#/conversations`, `#/conversations/${id}`, `#/conversations/${id}/turns/1`]) {
    await page.goto(`${sides.admin}/${place}`);
    await said(place);
  }
  assert.deepEqual(troubles, []);
});

test('amounts too small to read are about nothing, on either side', async () => {
  const { page } = await open('#/');
  const shown = await page.evaluate(async () => {
    const { money } = await import('/assets/format.js');
    return [0, 0.00004, -0.00004, -0.0002].map(money);
  });
  assert.deepEqual(shown, ['$0.00', 'about $0', 'about $0', '−$0.0002']);
});
