// Try it: explains a pasted request. The plan updates while typing; nothing is stored or forwarded.
import { attempt, call, get, retryWhileUnreachable, query } from '../api.js';
import { element, field, keepFocus, setOptions, setText } from '../dom.js';
import { plural } from '../format.js';
import { example } from './example.js';
import { planOf } from './plan.js';

const PAGE = 200;
const IDLE = 'Enter a request to see its plan.';
const STRATEGIES = ['passthrough', 'masking', 'summarization', 'hybrid', 'window'];

export const tryIt = ({ signal }) => {
  let routes = [], wait = 0, lastCall = 0, original = '', matched = null;

  const text = element('textarea', { id: 'request', rows: 14, spellcheck: 'false', autocomplete: 'off', 'aria-describedby': 'request-error request-hint', placeholder: '{ "model": "gpt-4o", "messages": [ … ] }' });
  const error = element('p', { id: 'request-error', class: 'error', role: 'alert' });
  const file = element('input', { type: 'file', id: 'file', accept: '.json,application/json', on: { change: () => load(file.files[0]) } });
  const route = element('select', { id: 'route', on: { change: () => { prefill(); schedule(); } } });
  const strategy = element('select', { id: 'strategy', on: { change: () => schedule() } });
  const policy = element('textarea', { id: 'policy', rows: 12, spellcheck: 'false', autocomplete: 'off', 'aria-describedby': 'policy-state policy-error' });
  const policyError = element('p', { id: 'policy-error', class: 'error', role: 'alert' });
  const policyState = element('p', { class: 'note', id: 'policy-state' });
  const reset = element('button', { type: 'button', id: 'reset-policy', on: { click: () => { policy.value = original; showPolicy(); schedule(); } } }, 'Reset');
  const status = element('p', { class: 'note', role: 'status' });
  const place = element('div', { class: 'answer' });
  setOptions(route, [['', 'first match']]);
  setOptions(strategy, [['', 'from the route'], ...STRATEGIES.map(name => [name, name])]);

  const section = element('section', { data: { view: 'try' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' }, element('h1', { id: 'title', tabindex: -1 }, 'Try it'),
      element('p', { class: 'sub' }, 'Shows what the proxy would do with a request. Nothing is stored or forwarded.')),
    element('div', { class: 'split wide-left' },
      element('div', { class: 'panel' },
        field('Request', text, error),
        element('p', { class: 'note', id: 'request-hint' }, 'The body of a chat completion, as JSON: paste it, drop a file onto the field, or choose one.'),
        element('div', { class: 'controls' }, element('button', { type: 'button', id: 'example', on: { click: () => { text.value = example(); schedule(0); } } }, 'Load example'), field('File', file))),
      element('div', { class: 'panel' },
        element('div', { class: 'controls' }, field('Route', route), field('Strategy', strategy)),
        element('details', { id: 'policy-details' }, element('summary', {}, 'Policy'),
          field('Policy to use instead of the route’s own, in TOML', policy, policyError), element('div', { class: 'controls' }, reset, policyState)))),
    status, place);

  // Otherwise a file dropped beside the field would replace the page.
  section.addEventListener('dragover', event => { event.preventDefault(); text.classList.add('drop'); });
  section.addEventListener('dragleave', () => text.classList.remove('drop'));
  section.addEventListener('drop', event => {
    event.preventDefault();
    text.classList.remove('drop');
    if (event.dataTransfer.files.length > 0) load(event.dataTransfer.files[0]);
  });
  text.addEventListener('input', () => schedule());
  policy.addEventListener('input', () => { showPolicy(); schedule(); });
  signal.addEventListener('abort', () => clearTimeout(wait), { once: true });

  const load = chosen => attempt(signal, async () => {
    if (!chosen) return;
    text.value = await chosen.text();
    schedule(0);
  }, () => showError(error, text, 'Cannot read this file.'));

  const changed = () => policy.value.trim() !== original.trim();
  const showPolicy = () => {
    reset.disabled = !changed();
    setText(policyState, changed() ? 'Changed: this policy is used instead of the route’s own.' : 'As configured.');
  };
  const prefill = () => {
    const untouched = !changed();
    // Without a selected route, use the one that the last request matched.
    const name = route.value || matched;
    original = (routes.find(candidate => candidate.name === name) ?? routes[0])?.policy ?? '';
    if (untouched) policy.value = original;
    showPolicy();
  };

  const showError = (place, control, message) => {
    setText(place, message);
    control.setAttribute('aria-invalid', 'true');
  };
  const clearErrors = () => {
    for (const [place, control] of [[error, text], [policyError, policy]]) {
      setText(place, '');
      control.removeAttribute('aria-invalid');
    }
  };

  const schedule = (delay = 250, offset = 0) => {
    clearTimeout(wait);
    wait = setTimeout(() => explain(offset), delay);
  };

  const explain = offset => {
    // Only the latest response counts; earlier ones may arrive after it.
    const thisCall = lastCall += 1;
    clearErrors();
    if (text.value.trim() === '') {
      place.replaceChildren();
      setText(status, IDLE);
      return;
    }
    try {
      JSON.parse(text.value);
    } catch (invalid) {
      place.classList.add('stale');
      showError(error, text, `Invalid JSON: ${invalid.message}`);
      return;
    }
    // The request is sent as typed: parsing and serializing it would change numbers, spaces and escapes, and with them the token count.
    const rest = JSON.stringify({ route: route.value || null, strategy: strategy.value || null, policy: changed() ? policy.value : null });
    const body = `{"request":${text.value},${rest.slice(1)}`;
    attempt(signal, async () => {
      const page = await retryWhileUnreachable(signal, () => call('POST', `/api/explain${query({ offset, limit: PAGE })}`, { body, signal }));
      if (thisCall !== lastCall) return;
      matched = page.explanation.route;
      prefill();
      place.classList.remove('stale');
      keepFocus(place, () => place.replaceChildren(planOf(page, next => schedule(0, next))), '.pager button:enabled');
      setText(status, `The plan for ${plural(page.messages_total, 'message')}:`);
    }, refused => {
      if (thisCall !== lastCall) return;
      place.classList.add('stale');
      const isPolicyError = changed() && /^policy\b/m.test(refused.message);
      if (isPolicyError) section.querySelector('#policy-details').open = true;
      showError(isPolicyError ? policyError : error, isPolicyError ? policy : text, refused.message);
    });
  };

  attempt(signal, async () => {
    ({ routes } = await retryWhileUnreachable(signal, () => get('/api/config', {}, signal)));
    setOptions(route, [['', 'first match'], ...routes.map(({ name }) => [name, name])]);
    prefill();
  }, refused => setText(status, refused.message));
  showPolicy();
  setText(status, IDLE);
  return { section, title: 'Try it' };
};
