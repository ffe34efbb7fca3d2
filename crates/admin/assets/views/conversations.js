// The list of conversations: search, filters, pages; it reads itself again when requests go by.
import { conversationLink } from '../address.js';
import { attempt, get, persist } from '../api.js';
import { badge, check, disable, element, field, offer, say, unseen } from '../dom.js';
import { ago, avoided, count, money, percent, plural, saving, shortened, timeOf } from '../format.js';
import { follow, oneAtATime } from '../live.js';
import { table } from '../table.js';
import { nothingYet, problem } from './notice.js';

const PAGE = 50;
// Under a filter the server looks through all conversations: not with every request that goes by.
const REST = 8000;
const STRATEGIES = ['passthrough', 'masking', 'summarization', 'hybrid', 'window'];

// What was asked last, so that coming back from a conversation shows the same list. It never goes into the address.
const asked = { search: '', route: '', model: '', strategy: '', hint: false, pages: [0] };

export const conversations = ({ signal }) => {
  let turn = 0, wait = 0, shown = [], next = null;

  const again = () => { asked.pages = [0]; read(); };
  const choose = name => element('select', { id: `filter-${name}`, on: { change: event => { asked[name] = event.target.value; again(); } } });
  const search = element('input', { type: 'search', id: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'name, id, tenant, route, model' });
  search.value = asked.search;
  search.addEventListener('input', () => {
    clearTimeout(wait);
    wait = setTimeout(() => { asked.search = search.value.trim(); again(); }, 250);
  });
  signal.addEventListener('abort', () => clearTimeout(wait), { once: true });
  const [route, model, strategy] = ['route', 'model', 'strategy'].map(choose);
  const hint = element('input', { type: 'checkbox', id: 'filter-hint', on: { change: () => { asked.hint = hint.checked; again(); } } });
  hint.checked = asked.hint;
  const known = { route: new Set(), model: new Set(), strategy: new Set(STRATEGIES) };

  const list = rows();
  const notice = element('div');
  const range = element('p', { class: 'range', role: 'status' });
  const earlier = element('button', { type: 'button', id: 'previous', on: { click: () => { asked.pages.pop(); read(); } } }, 'Previous');
  const later = element('button', { type: 'button', id: 'next', on: { click: () => { asked.pages.push(next); read(); } } }, 'Next');
  const pager = element('div', { class: 'pager' }, earlier, later, range);

  const section = element('section', { data: { view: 'conversations' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' }, element('h1', { id: 'title', tabindex: -1 }, 'Conversations')),
    element('div', { class: 'controls', role: 'search', 'aria-label': 'Conversations' },
      element('div', { class: 'grow' }, field('Search', search)),
      field('Route', route), field('Model', model), field('Strategy', strategy),
      check('only with a stop hint', hint)),
    notice, element('div', { class: 'panel flush' }, list.node), pager);
  list.node.parentNode.hidden = pager.hidden = true;

  const showChoices = () => {
    for (const [select, name, all] of [[route, 'route', 'all routes'], [model, 'model', 'all models'], [strategy, 'strategy', 'all strategies']]) {
      if (asked[name] !== '') known[name].add(asked[name]);
      offer(select, [['', all], ...[...known[name]].sort().map(one => [one, one])]);
      select.value = asked[name];
    }
  };

  const filtered = () => asked.search !== '' || asked.route !== '' || asked.model !== '' || asked.strategy !== '' || asked.hint;
  const clear = () => {
    Object.assign(asked, { search: '', route: '', model: '', strategy: '', hint: false });
    search.value = '';
    hint.checked = false;
    search.focus();
    again();
  };

  const tell = why => {
    if (notice.dataset.why === why) return;
    notice.dataset.why = why;
    notice.replaceChildren(...(why === 'none' ? [nothingYet('No conversation yet.')] : why === 'filtered' ? [
      element('div', { class: 'empty', data: { empty: 'filtered' } }, element('p', {}, 'No conversation matches.'),
        element('button', { type: 'button', on: { click: clear } }, 'Clear the search'))] : []));
  };

  const show = answer => {
    shown = answer.conversations;
    next = answer.next;
    for (const one of shown) for (const name of Object.keys(known)) known[name].add(one[name]);
    showChoices();
    list.update(shown);
    const empty = shown.length === 0;
    list.node.parentNode.hidden = empty;
    tell(empty ? (filtered() || asked.pages.length > 1 ? 'filtered' : 'none') : '');
    later.disabled = later.disabled && next === null;
    disable(earlier, asked.pages.length < 2, later);
    disable(later, next === null, earlier);
    pager.hidden = empty && asked.pages.length < 2;
    const first = answer.total === null ? null : answer.offset + 1;
    say(range, empty ? '' : first === null ? `${plural(shown.length, 'match', 'matches')} on this page` : `${count(first)} to ${count(answer.offset + shown.length)} of ${count(answer.total)}`);
  };

  const read = () => {
    const mine = turn += 1;
    const { search: words, route, model, strategy } = asked;
    const parameters = { offset: asked.pages.at(-1), limit: PAGE, search: words, route, model, strategy, hint: asked.hint ? 1 : null };
    return attempt(signal, async () => {
      const answer = await persist(signal, () => get('/api/conversations', parameters, signal));
      if (mine === turn) show(answer);
    }, error => { notice.dataset.why = 'error'; notice.replaceChildren(problem(error, read)); });
  };

  // Names for the filters that are not on this page of the list. Nothing is lost without them, so a refusal is not shown.
  attempt(signal, async () => {
    const [{ routes }, { routes: seen, models }] = await Promise.all([get('/api/config', {}, signal), get('/api/overview', { range: '24h' }, signal)]);
    for (const { name } of [...routes, ...seen]) known.route.add(name);
    for (const { name } of models) known.model.add(name);
    showChoices();
  }, () => {});
  let looked = 0;
  const refresh = oneAtATime(() => { looked = Date.now(); return read(); });
  follow(signal, { range: '15m' }, {
    tick: ({ point }) => {
      if (point.requests > 0 && (!filtered() || Date.now() - looked > REST)) refresh();
      // The times get older even if nothing happens.
      else list.update(shown);
    },
    again: refresh,
  });
  showChoices();
  read();
  return { section, title: 'Conversations' };
};

const rows = () => table({
  caption: 'Conversations, the latest first', key: row => row.id, cards: true,
  attributes: row => ({ data: { id: row.id } }),
  columns: [
    { label: 'Name', head: true, kind: 'name', sign: row => row.name, of: row => element('a', { href: conversationLink(row.id), title: row.name }, row.name) },
    { label: 'Route', of: row => row.route },
    { label: 'Model', kind: 'word', of: row => row.model },
    { label: 'Strategy', of: row => row.strategy },
    { label: 'Turns', kind: 'number', of: row => count(row.turns) },
    { label: 'Sent → forwarded', kind: 'number', sign: row => `${row.tokens_before} ${row.tokens_after}`, of: row => [shortened(row.tokens_before), ' → ', shortened(row.tokens_after)] },
    { label: 'Saved', kind: 'gauge', sign: row => `${row.tokens_before} ${row.tokens_after}`, of: row => [gauge(row), saving(row.tokens_before, row.tokens_after).replace(' saved', '')] },
    { label: 'Billed', kind: 'number', of: row => money(row.cost_usd) },
    { label: 'Avoided', kind: 'number', title: 'what the requests would have cost as sent, less what was billed', sign: row => avoided(row), of: row => worth(avoided(row)) },
    { label: 'Last seen', sign: row => ago(row.last), of: row => timeOf(row.last, ago(row.last)) },
    { label: 'Notes', kind: 'notes', sign: row => `${row.stop_hint} ${row.refusals} ${row.degraded}`, of: notes },
  ],
});

/** Money that was saved, or lost, in its colour. */
export const worth = dollars => element('span', { class: dollars < 0 ? 'more' : dollars > 0 ? 'less' : '' }, money(dollars));

const gauge = ({ tokens_before: before, tokens_after: after }) => {
  const level = element('i', { class: after > before ? 'more' : '' });
  level.style.width = `${before > 0 ? Math.min(100, Math.abs(before - after) / before * 100) : 0}%`;
  return element('span', { class: 'gauge-bar', title: percent(before - after, before), 'aria-hidden': 'true' }, level);
};

/** What to look at: a stop hint, refusals, degradations. */
export const notes = ({ stop_hint: hint, refusals, degraded }) => {
  const badges = [
    hint === null ? null : badge(`stop hint: ${hint}`, 'warn', `nothing new for ${plural(hint, 'turn')}`),
    refusals > 0 ? badge(`${count(refusals)} refused`, 'bad') : null,
    degraded > 0 ? badge(`${count(degraded)} degraded`, 'warn') : null,
  ].filter(one => one !== null);
  return badges.length > 0 ? badges : [unseen('none')];
};
