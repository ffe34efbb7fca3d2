// Debian's Chromium without network access, and pages that record errors and requests.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM_BIN || '/usr/bin/chromium', args: FLAGS });
}

/** A page and its troubles: console messages, errors, dialogs, and requests to other origins than `origin`. */
export async function watchedPage(browser, origin, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const troubles = [];
  page.on('console', (message) => troubles.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => troubles.push(String(error)));
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith('data:')) troubles.push(`asks for ${request.url()}`);
  });
  return { page, troubles };
}

/** The violations that axe-core finds on a page, one per line. */
export async function violations(page, name) {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // Evaluated through the debugger, because the page's policy blocks scripts.
  const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ['violations'] }); })()`);
  return found.violations.map((one) => `${name}: ${one.id} ${one.nodes[0].target}`);
}
