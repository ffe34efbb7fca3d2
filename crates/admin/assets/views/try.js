// Try it: what would happen to a request that is pasted here. The plan follows what is typed; nothing is stored or forwarded.
import { attempt, call, get, persist, query } from '../api.js';
import { element, field, keepFocus, offer, say } from '../dom.js';
import { plural } from '../format.js';
import { example } from './example.js';
import { planOf } from './plan.js';

const PAGE = 200;
const IDLE = 'The plan appears here as soon as there is a request.';
const STRATEGIES = ['passthrough', 'masking', 'summarization', 'hybrid', 'window'];

export const tryIt = ({ signal }) => {
  let routes = [], wait = 0, last = 0, original = '', matched = null;

  const text = element('textarea', { id: 'request', rows: 14, spellcheck: 'false', autocomplete: 'off', 'aria-describedby': 'request-error request-hint', placeholder: '{ "model": "gpt-4o", "messages": [ … ] }' });
  const error = element('p', { id: 'request-error', class: 'error', role: 'alert' });
  const file = element('input', { type: 'file', id: 'file', accept: '.json,application/json', on: { change: () => load(file.files[0]) } });
  const route = element('select', { id: 'route', on: { change: () => { prefill(); ask(); } } });
  const strategy = element('select', { id: 'strategy', on: { change: () => ask() } });
  const policy = element('textarea', { id: 'policy', rows: 12, spellcheck: 'false', autocomplete: 'off', 'aria-describedby': 'policy-state policy-error' });
  const policyError = element('p', { id: 'policy-error', class: 'error', role: 'alert' });
  const policyState = element('p', { class: 'note', id: 'policy-state' });
  const reset = element('button', { type: 'button', id: 'reset-policy', on: { click: () => { policy.value = original; showPolicy(); ask(); } } }, 'Reset');
  const status = element('p', { class: 'note', role: 'status' });
  const place = element('div', { class: 'answer' });
  offer(route, [['', 'the one that matches']]);
  offer(strategy, [['', 'the route’s own'], ...STRATEGIES.map(name => [name, name])]);

  const section = element('section', { data: { view: 'try' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' }, element('h1', { id: 'title', tabindex: -1 }, 'Try it'),
      element('p', { class: 'sub' }, 'What would happen to a request. Nothing is stored, and nothing is forwarded.')),
    element('div', { class: 'split wide-left' },
      element('div', { class: 'panel' },
        field('Request', text, error),
        element('p', { class: 'note', id: 'request-hint' }, 'The body of a chat completion, as JSON: paste it, drop a file onto the field, or choose one.'),
        element('div', { class: 'controls' }, element('button', { type: 'button', id: 'example', on: { click: () => { text.value = example(); ask(0); } } }, 'Load an example'), field('File', file))),
      element('div', { class: 'panel' },
        element('div', { class: 'controls' }, field('Route', route), field('Strategy', strategy)),
        element('details', { id: 'policy-details' }, element('summary', {}, 'Policy'),
          field('Policy in place of the route’s own, as TOML', policy, policyError), element('div', { class: 'controls' }, reset, policyState)))),
    status, place);

  // A file that is dropped beside the field would otherwise replace the page.
  section.addEventListener('dragover', event => { event.preventDefault(); text.classList.add('drop'); });
  section.addEventListener('dragleave', () => text.classList.remove('drop'));
  section.addEventListener('drop', event => {
    event.preventDefault();
    text.classList.remove('drop');
    if (event.dataTransfer.files.length > 0) load(event.dataTransfer.files[0]);
  });
  text.addEventListener('input', () => ask());
  policy.addEventListener('input', () => { showPolicy(); ask(); });
  signal.addEventListener('abort', () => clearTimeout(wait), { once: true });

  const load = chosen => attempt(signal, async () => {
    if (!chosen) return;
    text.value = await chosen.text();
    ask(0);
  }, () => refuse(error, text, 'This file cannot be read.'));

  const changed = () => policy.value.trim() !== original.trim();
  const showPolicy = () => {
    reset.disabled = !changed();
    say(policyState, changed() ? 'Changed: this policy is used instead of the route’s own.' : 'As configured.');
  };
  const prefill = () => {
    const untouched = !changed();
    // Without a chosen route it is the one that the last request matched.
    const name = route.value || matched;
    original = (routes.find(one => one.name === name) ?? routes[0])?.policy ?? '';
    if (untouched) policy.value = original;
    showPolicy();
  };

  const refuse = (where, control, message) => {
    say(where, message);
    control.setAttribute('aria-invalid', 'true');
  };
  const clear = () => {
    for (const [where, control] of [[error, text], [policyError, policy]]) {
      say(where, '');
      control.removeAttribute('aria-invalid');
    }
  };

  const ask = (delay = 250, offset = 0) => {
    clearTimeout(wait);
    wait = setTimeout(() => explain(offset), delay);
  };

  const explain = offset => {
    // Only the answer to the last question counts; older ones may arrive later.
    const mine = last += 1;
    clear();
    if (text.value.trim() === '') {
      place.replaceChildren();
      say(status, IDLE);
      return;
    }
    try {
      JSON.parse(text.value);
    } catch (wrong) {
      place.classList.add('stale');
      refuse(error, text, `This is not JSON: ${wrong.message}`);
      return;
    }
    // The request goes in as it was typed: a round trip through a parser would change numbers, spaces and escapes, and with them the count.
    const rest = JSON.stringify({ route: route.value || null, strategy: strategy.value || null, policy: changed() ? policy.value : null });
    const body = `{"request":${text.value},${rest.slice(1)}`;
    attempt(signal, async () => {
      const answer = await persist(signal, () => call('POST', `/api/explain${query({ offset, limit: PAGE })}`, { body, signal }));
      if (mine !== last) return;
      matched = answer.explanation.route;
      prefill();
      place.classList.remove('stale');
      keepFocus(place, () => place.replaceChildren(planOf(answer, page => ask(0, page))), '.pager button:enabled');
      say(status, `The plan for ${plural(answer.messages_total, 'message')}:`);
    }, refused => {
      if (mine !== last) return;
      place.classList.add('stale');
      const ofPolicy = changed() && /^policy\b/m.test(refused.message);
      if (ofPolicy) section.querySelector('#policy-details').open = true;
      refuse(ofPolicy ? policyError : error, ofPolicy ? policy : text, refused.message);
    });
  };

  attempt(signal, async () => {
    ({ routes } = await persist(signal, () => get('/api/config', {}, signal)));
    offer(route, [['', 'the one that matches'], ...routes.map(({ name }) => [name, name])]);
    prefill();
  }, refused => say(status, refused.message));
  showPolicy();
  say(status, IDLE);
  return { section, title: 'Try it' };
};
