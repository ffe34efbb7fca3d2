// Notices for views without data: nothing has happened yet, or the server returned an error.
import { element } from '../dom.js';

/** Shown before the first request: explains how to send one. */
export const nothingYet = lead => element('div', { class: 'empty', data: { empty: 'none' } },
  element('h2', {}, lead),
  element('p', {}, 'Point the base URL of an OpenAI SDK at the proxy (its address is ', element('code', {}, 'server.listen'), ' in the configuration):'),
  element('pre', { tabindex: 0, 'aria-label': 'Command' }, 'OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python my_agent.py'),
  element('p', {}, 'or watch a recorded agent run in front of a simulated provider:'),
  element('pre', { tabindex: 0, 'aria-label': 'Command' }, 'tidegate demo'));

/** An error from the server, with a button to retry. */
export const problem = (error, retry = null, ...links) => element('div', { class: 'empty problem', role: 'alert', data: { problem: error.code ?? error.status ?? '' } },
  element('p', { class: 'message' }, error.message),
  element('p', { class: 'ways' }, retry && element('button', { type: 'button', on: { click: retry } }, 'Try again'), ...links));
