// The report of `tidegate replay`, opened from a file in a browser without network access.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { launch, watchedPage } from './browser.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TARGET = process.env.CARGO_TARGET_DIR || join(ROOT, 'target');
const TIDEGATE = process.env.TIDEGATE_BIN || join(TARGET, 'debug', 'tidegate');

/** A conversation can have any name, including this one. */
const HOSTILE = `</script><script>window.broken = 1</script><img src=x onerror="window.broken = 1">`;

let directory, browser;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tidegate-report-'));
  const runs = [run(HOSTILE, 30), run('short', 4), run('long', 60)];
  await writeFile(join(directory, 'runs.jsonl'), runs.map((one) => JSON.stringify(one)).join('\n'));
  const flags = ['replay', 'runs.jsonl', '--price', '0.1,0.5', '--html', 'report.html', '--recommend'];
  await promisify(execFile)(TIDEGATE, flags, { cwd: directory });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await rm(directory, { recursive: true });
});

/** An agent's run with tool outputs of very different lengths. */
function run(id, turns) {
  const messages = [
    { role: 'system', content: 'You look after a harbour. '.repeat(300) },
    { role: 'user', content: 'Find out why berth 7 floods.' },
  ];
  for (let turn = 0; turn < turns; turn++) {
    const call = { id: `c${turn}`, type: 'function', function: { name: 'read_gauge', arguments: `{"berth":${turn}}` } };
    messages.push({ role: 'assistant', content: `I read gauge ${turn}.`, tool_calls: [call] });
    messages.push({ role: 'tool', tool_call_id: `c${turn}`, content: `gauge ${turn} reads 3.30\n`.repeat(20 + ((turn * 37) % 90)) });
  }
  messages.push({ role: 'assistant', content: 'It no longer does.' });
  return { id, model: 'gpt-4o', messages };
}

/** The page, with its errors and requests. */
async function open(colorScheme) {
  const folder = pathToFileURL(directory).href;
  const options = { colorScheme, offline: true, viewport: { width: 1240, height: 900 } };
  const { page, troubles } = await watchedPage(browser, folder, options);
  await page.goto(`${folder}/report.html`);
  return { page, troubles };
}

for (const colorScheme of ['light', 'dark']) {
  test(`every plot is drawn without errors or network requests (${colorScheme})`, async () => {
    const { page, troubles } = await open(colorScheme);
    for (const plot of ['#size', '#cost']) {
      assert.equal(await page.locator(`${plot} svg path`).count(), 9, plot);
    }
    assert.equal(await page.locator('#window svg path').count(), 5);
    assert.equal(await page.locator('#window svg circle').count(), 25);
    const boxes = await page.locator('.plots svg').evaluateAll((all) => all.map((svg) => svg.getBoundingClientRect().height));
    assert.ok(boxes.every((height) => height > 100), String(boxes));
    assert.equal(await page.locator('.strip').count(), 9);
    assert.equal(await page.locator('.strip').first().locator('g').count(), 61, 'a column for each request of the dearest one');
    assert.ok((await page.locator('.strip rect[fill="var(--masked)"]').count()) > 20);
    assert.match(await page.locator('section.price:visible').innerText(), /masking:break_even[\s\S]*Recommended/);
    // The page is not wider than its window.
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    assert.deepEqual(troubles, []);
  });
}

test('the cards and the recommendation agree, lines differ without colour, and strips have axes', async () => {
  const { page, troubles } = await open('light');
  const price = page.locator('section.price:visible');
  const card = await price.locator('.cards div').nth(1).innerText();
  const best = await price.locator('.recommended b').innerText();
  assert.match(card, /^recommended/);
  assert.ok(card.includes(`${best}:`), `${card} and ${best}`);
  assert.match(await page.locator('header').innerText(), /3 conversations · \d+ requests/);
  const dashes = await page.locator('#cost svg path').evaluateAll((all) => all.map((path) => path.getAttribute('stroke-dasharray')));
  assert.equal(new Set(dashes).size, dashes.length, String(dashes));
  assert.match(await page.locator('.strip').first().innerText(), /left out ↑[\s\S]*sent ↓[\s\S]*1[\s\S]*61 requests/);
  for (const width of [375, 1280, 1920]) {
    await page.setViewportSize({ width, height: 900 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px`);
  }
  assert.deepEqual(troubles, []);
});

test('prices, conversations and lines can be selected, and the pointer shows values', async () => {
  const { page, troubles } = await open('light');
  const shape = () => page.locator('#cost svg path').evaluateAll((paths) => paths.map((path) => path.getAttribute('d')).join());
  const before = await shape();
  await page.click('nav button[data-price="1"]');
  assert.notEqual(await shape(), before);
  assert.match(await page.locator('section.price:visible h2').innerText(), /×0\.5/);

  await page.locator('#size .legend button', { hasText: 'masking:every_turn' }).click();
  assert.equal(await page.locator('#size svg path').count(), 8);

  await page.locator('#size svg').hover();
  assert.match(await page.locator('#tip').innerText(), /^request \d+\n[\s\S]*raw/);
  await page.locator('#conversation').selectOption({ label: 'short' });
  assert.equal(await page.locator('.strip').first().locator('g').count(), 5);
  assert.deepEqual(troubles, []);
});

test('markup in a name is shown as text', async () => {
  const { page, troubles } = await open('light');
  await page.locator('#conversation').selectOption({ label: HOSTILE });
  assert.equal(await page.locator('.strip').first().locator('g').count(), 31);
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(troubles, []);
});
