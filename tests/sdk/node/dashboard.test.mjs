// The dashboard of the real binary with real traffic, in a real browser.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, violations, watchedPage } from './browser.mjs';
import { startSides, until } from './servers.mjs';
import { CONFIG, HOSTILE, Traffic } from './traffic.mjs';

const ASSETS = fileURLToPath(new URL('../../../crates/admin/assets', import.meta.url));
const UPLOT = fileURLToPath(new URL('node_modules/uplot', import.meta.url));

let sides, traffic, browser, known;

before(async () => {
  sides = await startSides(undefined, { text: CONFIG });
  traffic = new Traffic(sides);
  await traffic.agent('build-7', 8);
  await traffic.agent('plateau', 6, { output: () => 'the same result, again and again and again and again' });
  await traffic.chat('harbour-talk', 6, 'The ship is Ada.');
  await traffic.ask('too-long', { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'word '.repeat(200) }] }, { refused: true });
  await traffic.agent('hostile', 5, {
    model: HOSTILE,
    tool: 'do_it',
    output: (turn) => `${HOSTILE}\n`.repeat(10 + turn),
    headers: { 'x-request-id': 'a-1' },
  });
  known = Object.fromEntries((await traffic.counted()).map((one) => [one.name, one]));
  await fetch(`${sides.admin}/api/conversations/${known.hostile.id}/memory`, {
    method: 'PUT',
    headers: { 'content-type': 'text/plain' },
    body: HOSTILE,
  });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await sides?.stop();
});

const api = async (path) => (await fetch(sides.admin + path)).json();
const view = (page, name) => page.locator(`section[data-view="${name}"]`);
const figure = (page, name) => page.locator(`article[data-figure="${name}"] .figure`);

async function open(fragment, options) {
  const { page, troubles } = await watchedPage(browser, sides.admin, options);
  await page.goto(`${sides.admin}/${fragment}`);
  await page.locator('h1#title').waitFor();
  return { page, troubles };
}

test('the overview has every figure with its plot, by route and by model', async () => {
  const { page, troubles } = await open('#/');
  await until('the history to have everything', async () => (await api('/api/overview')).totals.requests >= traffic.sent);
  await until('the page to have it', async () => Number((await figure(page, 'requests').innerText()).replace(/\D/g, '')) >= traffic.sent);
  const { totals } = await api('/api/overview');
  const figures = await page.locator('article[data-figure]').evaluateAll((all) => all.map((one) => one.dataset.figure));
  assert.deepEqual(
    [...figures].sort(),
    ['avoided', 'billed', 'cached', 'completion', 'degraded', 'edits', 'errors', 'folds', 'latency', 'refusals', 'requests', 'tokens', 'upstream'],
  );
  assert.equal(await figure(page, 'refusals').innerText(), String(totals.refusals));
  assert.equal(await figure(page, 'folds').innerText(), String(totals.folds));
  assert.ok(totals.folds > 0 && totals.refusals > 0 && totals.masked > 0, JSON.stringify(totals));
  assert.match(await figure(page, 'billed').innerText(), /^\$\d/);
  assert.match(await page.locator('article[data-figure="billed"]').innerText(), /without a known price/);
  const plots = await page.locator('article[data-figure] canvas').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
  assert.ok(plots.length === 13 && plots.every((height) => height > 60), String(plots));
  // The first screen answers what an operator asks, savings first.
  const answers = await page.locator('[data-answer]').evaluateAll((all) => all.map((one) => [one.dataset.answer, one.innerText, one.getBoundingClientRect().bottom]));
  assert.deepEqual(answers.map(([name]) => name), ['saved', 'failing', 'slow', 'now']);
  assert.ok(answers.every(([, , bottom]) => bottom < 900), String(answers));
  assert.match(answers[0][1], /Saved \$\d+\.\d+ net, \d+\.\d % of \$/);
  assert.match(answers[1][1], /1 request refused\./);
  assert.match(answers[3][1], /^.*\s*0 requests in flight, \d+ in the last minute, \d+ in the last 15 minutes with /s);
  assert.match(answers[2][1], /Answers begin after .+ Tidegate adds /);
  assert.ok(totals.left_out > 0 && totals.left_out < totals.masked + totals.folded, 'a message that stays masked is not counted again');
  assert.equal(await figure(page, 'edits').innerText(), String(totals.left_out));
  for (const caption of ['Figures by route', 'Figures by model', 'Conversations that were active last'])
    assert.ok((await page.locator(`table:has(caption:text-is("${caption}")) thead th`).count()) <= 8, caption);
  const names = (what) => page.locator(`table:has(caption:text-is("Figures by ${what}")) tr[data-name]`).evaluateAll((all) => all.map((one) => one.dataset.name));
  assert.deepEqual(await names('route'), ['agents', 'chats', 'small']);
  assert.ok((await names('model')).includes('gpt-4o'));
  assert.match(await page.locator('[data-tally="refusals"]').innerText(), /context_budget_exceeded/);

  await page.locator('tr[data-name="chats"] button').click();
  await until('only this route to count', async () => (await figure(page, 'requests').innerText()) === '6');
  assert.equal(await page.locator('#filter-route').inputValue(), 'chats');
  await page.locator('[data-range="24h"]').click();
  await until('the longer range to have it too', async () => (await figure(page, 'requests').innerText()) === '6');
  assert.equal(await page.locator('[data-range="24h"]').getAttribute('aria-pressed'), 'true');
  assert.deepEqual(troubles, []);
});

test('the overview is live and can be paused', async () => {
  const { page, troubles } = await open('#/');
  const shown = async () => Number((await figure(page, 'requests').innerText()).replace(/\D/g, ''));
  await until('the page to have everything', async () => (await shown()) >= traffic.sent);
  const before = await shown();
  await traffic.agent('live', 2);
  await until('the new requests to show', async () => (await shown()) === before + 2);
  assert.equal(await page.locator('.live').innerText(), 'Live');

  await page.locator('#pause').click();
  await traffic.agent('live', 4, { from: 3 });
  await until('the server to know them', async () => (await api('/api/overview')).totals.requests >= before + 4);
  // A tick has been sent by now: the other page of this test has received one.
  const other = await open('#/');
  await until('another page to show them', async () => Number((await figure(other.page, 'requests').innerText()).replace(/\D/g, '')) === before + 4);
  assert.equal(await shown(), before + 2, 'a paused page stays as it is');
  assert.equal(await page.locator('.live').innerText(), 'Paused');
  await page.locator('#pause').click();
  await until('the page to catch up', async () => (await shown()) === before + 4);
  assert.deepEqual([...troubles, ...other.troubles], []);
  known = Object.fromEntries((await traffic.counted()).map((one) => [one.name, one]));
});

test('conversations are listed, searched and filtered, without a trace in the address', async () => {
  const { page, troubles } = await open('#/conversations');
  const names = () => page.locator('tr[data-id] th').allInnerTexts();
  await until('the list', async () => (await names()).length >= 6);
  const row = page.locator(`tr[data-id="${known['build-7'].id}"]`);
  assert.match(await row.innerText(), /agents\s+gpt-4o\s+masking\s+8/);
  assert.match(await page.locator(`tr[data-id="${known.plateau.id}"]`).innerText(), /stop hint/);
  assert.match(await page.locator(`tr[data-id="${known['too-long'].id}"]`).innerText(), /1 refused/);

  await page.locator('#search').fill('HARBOUR gpt-5');
  await until('the one that matches', async () => (await names()).join() === 'harbour-talk');
  assert.equal(page.url(), `${sides.admin}/#/conversations`);
  await page.locator('#search').fill('nothing like it');
  await page.locator('[data-empty="filtered"] button').click();
  await until('all of them again', async () => (await names()).length >= 6);
  await page.locator('#filter-strategy').selectOption('summarization');
  await until('those under a strategy', async () => (await names()).join() === 'harbour-talk');
  await page.locator('#filter-strategy').selectOption('');
  await page.locator('#filter-hint').check();
  await until('those with a hint', async () => (await names()).join() === 'plateau');
  await page.locator('#filter-hint').uncheck();

  await traffic.agent('newcomer', 1);
  await until('a new one to appear by itself', async () => (await names())[0] === 'newcomer');
  assert.deepEqual(troubles, []);
  known = Object.fromEntries((await traffic.counted()).map((one) => [one.name, one]));
});

test('conversations are sorted by column and filtered by what went wrong', async () => {
  const { page, troubles } = await open('#/conversations');
  const names = () => page.locator('tr[data-id] th').allInnerTexts();
  await until('the list', async () => (await names()).length >= 6);
  assert.ok((await page.locator('thead th').count()) <= 8);
  await page.locator('th[data-sort="turns"] button').click();
  await until('the longest first', async () => (await names())[0] === 'build-7');
  assert.equal(await page.locator('th[aria-sort="descending"]').innerText(), 'Turns');
  await page.locator('th[data-sort="last"] button').click();
  await page.locator('#filter-trouble').selectOption('refusals');
  await until('the refused one', async () => (await names()).join() === 'too-long');
  await page.locator('#filter-trouble').selectOption('errors');
  await page.locator('[data-empty="filtered"] button').click();
  await page.locator('#filter-active').selectOption('3600000');
  await until('all of the last hour', async () => (await names()).length >= 6);
  assert.equal(page.url(), `${sides.admin}/#/conversations`);
  await page.locator('#filter-active').selectOption('');
  assert.deepEqual(troubles, []);
});

test('a conversation reads as one, with its edits collapsed in place', async () => {
  const { page, troubles } = await open(`#/conversations/${known['build-7'].id}`);
  const said = page.locator('.transcript .said-by');
  await until('the transcript', async () => (await said.count()) === 17);
  assert.match(await said.nth(1).innerText(), /^user #1\s+Find out why berth 7 floods\.$/);
  assert.match(await said.nth(2).innerText(), /assistant[\s\S]*I read gauge 1\.[\s\S]*calls read_gauge[\s\S]*"berth":1/);
  const masked = page.locator('.said-by[data-action="mask"]');
  assert.equal(await masked.count(), 5);
  assert.ok(!(await masked.first().innerText()).includes('gauge 1 reads'), 'what is masked is collapsed');
  await masked.first().locator('summary').first().click();
  assert.match(await masked.first().innerText(), /gauge 1 reads 3\.30/);
  assert.match(await said.last().innerText(), /assistant[\s\S]*Noted\./, 'the last answer is there');

  await page.goto(`${sides.admin}/#/conversations/${known['harbour-talk'].id}`);
  await page.locator('.transcript [data-summary]').waitFor();
  const kinds = await page.locator('.transcript > *').evaluateAll((all) => all.map((one) => one.className));
  assert.deepEqual(kinds.slice(0, 3), ['said-by system', 'said-by summary-here', 'folded-run'], 'the summary stands where the messages stood');
  await page.locator('.folded-run > summary').click();
  assert.match(await page.locator('.folded-run').innerText(), /raise berth 0 by 2 centimetres/);
  assert.deepEqual(troubles, []);
});

test('the strip of turns works by pointer and by keyboard', async () => {
  const { page, troubles } = await open(`#/conversations/${known['build-7'].id}`);
  const columns = page.locator('a[data-turn]');
  await until('the strip', async () => (await columns.count()) === 8);
  assert.match(await columns.last().getAttribute('aria-label'), /^Turn 8: [\d,]+ tokens sent, [\d,]+ forwarded, 80\.0 % cached, 5 masked$/);
  for (const part of ['kept', 'cached', 'masked']) assert.ok((await columns.last().locator(`rect.${part}`).count()) > 0, part);
  assert.equal(await columns.first().locator('rect.masked').count(), 0, 'the first turn has nothing to mask');
  await columns.nth(6).hover();
  assert.match(await page.locator('.tip').innerText(), /^Turn 7/);

  await columns.last().focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.turn), '2');
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await view(page, 'turn').waitFor();
  assert.equal(page.url(), `${sides.admin}/#/conversations/${known['build-7'].id}/turns/8`);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'title', 'the focus is at the heading of the new view');
  assert.deepEqual(troubles, []);
});

test('a turn shows its plan with reasons, its budget and its diff', async () => {
  const { page, troubles } = await open(`#/conversations/${known['build-7'].id}/turns/8`);
  await page.locator('tr[data-index]').first().waitFor();
  const detail = await api(`/api/conversations/${known['build-7'].id}/turns/8`);
  assert.equal(await page.locator('tr[data-index]').count(), detail.messages_total);
  const masked = page.locator('tr[data-action="mask"]');
  assert.equal(await masked.count(), 5);
  assert.match(await masked.first().innerText(), /read_gauge[\s\S]*older than mask\.keep = \{ turns = 2 \}/);
  assert.match(await page.locator('.cause').innerText(), /every_turn: an observation has left the window/);
  const budget = await page.locator('table.sum').innerText();
  const count = (number) => number.toLocaleString('en-US');
  const { window, output, overhead, input } = detail.explanation.budget;
  for (const figure of [window, output, overhead, input, detail.turn.tokens_after]) assert.ok(budget.includes(count(figure)), `${figure} in ${budget}`);

  const change = page.locator('article.change').first();
  assert.match(await change.locator('h3').innerText(), /^messages\[3\]: masked/);
  assert.match(await change.locator('[data-op="+"]').innerText(), /OMITTED_OBSERVATION/);
  assert.ok((await change.locator('[data-op="-"]').count()) > 20);
  assert.ok(!(await change.innerText()).includes('\\n'), 'line breaks are line breaks');
  await page.getByRole('link', { name: /Previous turn/ }).click();
  await until('the turn before', async () => (await page.locator('h1#title').innerText()) === 'Turn 7 of 8');
  assert.deepEqual(troubles, []);
});

test('a summary is shown as it was forwarded', async () => {
  const { page, troubles } = await open(`#/conversations/${known['harbour-talk'].id}/turns/6`);
  await page.locator('article.change[data-kind="changed"]').filter({ hasText: 'a summary that stands for' }).first().waitFor();
  assert.match(await page.locator('.plan, section').first().innerText(), /Summary used in this turn[\s\S]*berth/);
  assert.ok((await page.locator('tr[data-action="fold"]').count()) > 0);
  assert.match(await page.locator('article.change[data-kind="changed"]').filter({ hasText: 'a summary that stands for' }).first().innerText(), /a summary that stands for/);
  assert.deepEqual(troubles, []);
});

test('a refused turn shows the reason', async () => {
  const { page, troubles } = await open(`#/conversations/${known['too-long'].id}/turns/1`);
  await page.locator('.verdict[data-ending="refused"]').waitFor();
  assert.match(await page.locator('[data-missing]').innerText(), /not recorded/);
  assert.match(await page.locator('.cause.failed').innerText(), /context_budget_exceeded: [\d,]+ tokens do not fit the input budget of 60/);
  assert.deepEqual(troubles, []);
});

test('markup in a conversation is shown as text', async () => {
  const { page, troubles } = await open('#/conversations');
  const id = known.hostile.id;
  for (const fragment of ['#/', '#/conversations', `#/conversations/${id}`, `#/conversations/${id}/turns/5`]) {
    await page.goto(`${sides.admin}/${fragment}`);
    await until(`the markup to be seen as text at ${fragment}`, async () => {
      // The overview shows models only by their names in the model table.
      const text = await page.locator('main').innerText();
      return fragment === '#/' ? /Overview/.test(text) : text.includes('onerror="window.broken=1"') || text.includes('onerror=\\"window.broken=1\\"');
    });
    assert.equal(await page.locator('main img, main script, main iframe').count(), 0, fragment);
  }
  assert.match(await page.locator('main').innerText(), /<\/script>/);
  await page.goto(`${sides.admin}/#/try`);
  await page.locator('#request').fill(JSON.stringify({ model: HOSTILE, messages: [{ role: 'user', content: HOSTILE }] }));
  await page.locator('.verdict[data-ending]').waitFor();
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.ok(!page.url().includes('broken'));
  assert.deepEqual(troubles, []);
});

test('a request can be tried under any route and policy', async () => {
  const { page, troubles } = await open('#/try');
  await page.locator('#example').click();
  await page.locator('.verdict[data-ending="edited"]').waitFor();
  const masked = () => page.locator('tr[data-action="mask"]').count();
  const before = await masked();
  assert.ok(before > 0);
  await page.locator('#strategy').selectOption('passthrough');
  await until('nothing to be masked', async () => (await masked()) === 0);
  await page.locator('#strategy').selectOption('');
  await until('the route to count again', async () => (await masked()) === before);

  await page.locator('#policy-details summary').click();
  const policy = await page.locator('#policy').inputValue();
  assert.match(policy, /\[context\.mask\]\n(.*\n)*keep = \{ turns = 2 \}/);
  await page.locator('#policy').fill(policy.replace('keep = { turns = 2 }', 'keep = { turns = 0 }'));
  await until('the mistake to be named', async () => /policy:\d+: `context\.mask\.keep` is `\{ turns = 0 \}`/.test(await page.locator('#policy-error').innerText()));
  await page.locator('#policy').fill(policy.replace('keep = { turns = 2 }', 'keep = { turns = 13 }'));
  await until('fewer to be masked', async () => (await masked()) > 0 && (await masked()) < before);
  await page.locator('#reset-policy').click();
  await until('the policy to be the route’s own', async () => (await masked()) === before);

  const file = { name: 'request.json', mimeType: 'application/json', buffer: Buffer.from('{"model":"gpt-5","messages":[{"role":"user","content":"dropped in"}]}') };
  await page.locator('#file').setInputFiles(file);
  await until('the file to be explained', async () => /chats/.test(await page.locator('.settings').innerText()));
  const dropped = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['{"model":"gpt-4o","messages":[{"role":"user","content":"dropped"}]}'], 'dropped.json', { type: 'application/json' }));
    return transfer;
  });
  await page.locator('#request').dispatchEvent('drop', { dataTransfer: dropped });
  await until('what was dropped to be there', async () => (await page.locator('#request').inputValue()).includes('"dropped"'));
  await page.locator('#request').fill('{"messages": 5');
  await until('the JSON error to be shown', async () => /JSON/.test(await page.locator('#request-error').innerText()));
  await page.locator('#request').fill('{"messages": 5}');
  await until('the request error to be shown', async () => /not an array/.test(await page.locator('#request-error').innerText()));
  // The browser itself logs responses with an error status, which are expected here.
  assert.deepEqual(troubles.filter((one) => !/status of 400/.test(one)), []);
});

test('the configuration shows the source of each value and the result of the last reload', async () => {
  const { page, troubles } = await open('#/configuration');
  const value = (key) => page.locator(`[data-part="route"] tr[data-key="${key}"]`);
  await page.locator('#route').selectOption('agents');
  await value('context.mask.keep').waitFor();
  assert.match(await value('context.mask.keep').innerText(), /\{ turns = 2 \}[\s\S]*proxy\.toml:5/);
  assert.equal(await value('context.mask.keep').getAttribute('data-origin'), 'file');
  assert.equal(await value('context.observe').getAttribute('data-origin'), 'default');
  assert.equal(await page.locator('[data-part="process"] tr[data-key="upstreams.default.url"]').getAttribute('data-origin'), 'flag');
  await page.locator('#only-set').check();
  await until('defaults to go', async () => (await value('context.observe').count()) === 0);
  await page.locator('#filter').fill('mask');
  await until('only masks to stay', async () => (await page.locator('[data-part="process"] tr[data-key]').count()) === 0);
  assert.match(await page.locator('[data-part="reload"]').innerText(), /loaded at start/);

  await writeFile(sides.config, CONFIG.replace('turns = 2', 'turns = 0'));
  await until('the change to be rejected', async () => (await api('/api/config')).reload.outcome === 'rejected');
  await page.reload();
  await until('that to be shown', async () => /rejected[\s\S]*`context\.mask\.keep` is `\{ turns = 0 \}`/.test(await page.locator('[data-part="reload"]').innerText()));
  await writeFile(sides.config, `${CONFIG}\n`);
  await until('the next one to be taken', async () => (await api('/api/config')).reload.outcome === 'reloaded');
  assert.deepEqual(troubles, []);
});

test('the configuration lists the windows that upstreams have named', async () => {
  const list = { object: 'list', data: [{ id: 'harbour-1', object: 'model', context_length: 32768 }] };
  const mock = JSON.stringify({ status: 200, headers: { 'content-type': 'application/json' }, body: list });
  const { page, troubles } = await open('#/configuration');
  const windows = page.locator('[data-part="windows"]');
  await until('none to be there', async () => /No upstream has named/.test(await windows.innerText()));
  assert.equal((await fetch(`${sides.through}/v1/models`, { headers: { 'x-mock': mock } })).status, 200);
  await until('it to be learnt', async () => (await api('/api/windows')).windows.length === 1);
  await page.reload();
  await until('it to show', async () => /harbour-1\s+32,768/.test(await windows.innerText()));
  assert.deepEqual(await violations(page, 'the windows'), []);
  assert.deepEqual(troubles, []);
});

test('a conversation is exported and deleted', async () => {
  await traffic.agent('to-go', 2);
  const { id } = (await traffic.counted()).find((one) => one.name === 'to-go');
  const { page, troubles } = await open(`#/conversations/${id}`);
  await page.locator('#delete').waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#export').click()]);
  assert.match(await readFile(await download.path(), 'utf8'), /"id":"to-go"/);
  await page.locator('#delete').click();
  assert.deepEqual(await violations(page, 'the question before'), []);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('dialog[open]').count(), 0);
  await page.locator('#delete').click();
  await page.locator('#confirm-delete').click();
  await view(page, 'conversations').waitFor();
  assert.equal((await fetch(`${sides.admin}/api/conversations/${id}`)).status, 404);
  await page.goto(`${sides.admin}/#/conversations/${id}`);
  await page.locator('[data-problem]').waitFor();
  assert.match(await page.locator('h1#title').innerText(), /does not exist/);
  traffic.sent -= 2;
  assert.deepEqual(troubles.filter((one) => !/status of 404/.test(one)), []);
});

test('a lost connection is shown and restored', async () => {
  const { page } = await open('#/conversations');
  await page.locator('tr[data-id]').first().waitFor();
  await sides.restart(async () => {
    await until('the page to say so', async () => /Connection lost/.test(await page.locator('#banner').innerText()));
  });
  await until('the page to be well again', async () => (await page.locator('#banner').innerText()) === '');
  await until('what was stored to be there', async () => (await page.locator('tr[data-id]').count()) > 5);
});

test('the overview survives a restart, which its plots mark', async () => {
  const { page, troubles } = await open('#/');
  await until('the figures of before', async () => Number((await figure(page, 'requests').innerText()).replace(/\D/g, '')) >= traffic.sent);
  const { process } = await api('/api/overview');
  const plot = page.locator('article[data-figure="requests"] .canvas');
  // The plot has steps of ten seconds, and the process may have started in the last one.
  await until('the mark', async () => Number(await plot.getAttribute('data-started')) === process.started, 30_000);
  assert.deepEqual(troubles, []);
});

test('uPlot is the file of its package, with its licence', async () => {
  for (const name of ['uPlot.iife.min.js', 'uPlot.min.css', 'LICENSE']) {
    const theirs = await readFile(join(UPLOT, name === 'LICENSE' ? name : join('dist', name)));
    assert.ok(theirs.equals(await readFile(join(ASSETS, 'vendor/uplot', name))), name);
  }
});
