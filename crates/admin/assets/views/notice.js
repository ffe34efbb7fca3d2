// What a view says when it has nothing to show: because nothing happened yet, or because the server refused.
import { element } from '../dom.js';

/** Nothing has gone through the proxy yet: says what to do. */
export const nothingYet = lead => element('div', { class: 'empty', data: { empty: 'none' } },
  element('h2', {}, lead),
  element('p', {}, 'Point the base URL of an OpenAI SDK at the proxy (the address is ', element('code', {}, 'server.listen'), ' in the configuration):'),
  element('pre', { tabindex: 0, 'aria-label': 'Command' }, 'OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python my_agent.py'),
  element('p', {}, 'or watch a recorded agent run in front of a simulated provider:'),
  element('pre', { tabindex: 0, 'aria-label': 'Command' }, 'tidegate demo'));

/** What the server said, with a button that asks again. */
export const problem = (error, again = null, ...ways) => element('div', { class: 'empty problem', role: 'alert', data: { problem: error.code ?? error.status ?? '' } },
  element('p', { class: 'message' }, error.message),
  element('p', { class: 'ways' }, again && element('button', { type: 'button', on: { click: again } }, 'Try again'), ...ways));
