// The list of conversations with search, filters and pages. It reloads when there are new requests.
import { conversationLink } from '../address.js';
import { attempt, get, retryWhileUnreachable } from '../api.js';
import { badge, check, element, field, screenReaderOnly, setDisabled, setOptions, setText } from '../dom.js';
import { ago, avoided, count, exactMoney, money, percent, plural, saving, shortened, timeOf } from '../format.js';
import { follow, oneAtATime } from '../live.js';
import { table } from '../table.js';
import { nothingYet, problem } from './notice.js';
import { openingOf, openings } from './opening.js';

const PAGE = 50;
// A filtered list makes the server scan all conversations, so it is not reloaded with every request.
const MIN_RELOAD_MS = 8000;
const STRATEGIES = ['passthrough', 'masking', 'summarization', 'hybrid', 'window'];

// Module state, so that coming back from a conversation shows the same list. It never goes into the URL.
const NO_FILTER = { search: '', route: '', model: '', strategy: '', trouble: '', active: '', hint: false };
const NEWEST = { sort: 'last', direction: 'desc' };
const filters = { ...NO_FILTER, ...NEWEST, pages: [0] };
export const TROUBLES = [['', 'any or none'], ['any', 'anything wrong'], ['errors', 'upstream errors'], ['refusals', 'refused'], ['degraded', 'degraded']];
const ACTIVE = [['', 'any time'], ['3600000', 'last hour'], ['86400000', 'last day'], ['604800000', 'last week']];

export const conversations = ({ signal }) => {
  let lastRead = 0, wait = 0, shown = [], next = null;

  const restart = () => { filters.pages = [0]; read(); };
  const choose = name => element('select', { id: `filter-${name}`, on: { change: event => { filters[name] = event.target.value; restart(); } } });
  const search = element('input', { type: 'search', id: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'name, id, tenant, route, model' });
  search.value = filters.search;
  search.addEventListener('input', () => {
    clearTimeout(wait);
    wait = setTimeout(() => { filters.search = search.value.trim(); restart(); }, 250);
  });
  signal.addEventListener('abort', () => clearTimeout(wait), { once: true });
  const [route, model, strategy, trouble, active] = ['route', 'model', 'strategy', 'trouble', 'active'].map(choose);
  setOptions(trouble, TROUBLES);
  setOptions(active, ACTIVE);
  [trouble.value, active.value] = [filters.trouble, filters.active];
  const hint = element('input', { type: 'checkbox', id: 'filter-hint', on: { change: () => { filters.hint = hint.checked; restart(); } } });
  hint.checked = filters.hint;
  const known = { route: new Set(), model: new Set(), strategy: new Set(STRATEGIES) };

  const titles = openings(signal, () => list.update(shown));
  const list = rows(titles, { current: () => filters, choose: (sort, direction) => { Object.assign(filters, { sort, direction }); restart(); } });
  const notice = element('div');
  const range = element('p', { class: 'range', role: 'status' });
  const earlier = element('button', { type: 'button', id: 'previous', on: { click: () => { filters.pages.pop(); read(); } } }, 'Previous');
  const later = element('button', { type: 'button', id: 'next', on: { click: () => { filters.pages.push(next); read(); } } }, 'Next');
  const pager = element('div', { class: 'pager' }, earlier, later, range);

  const section = element('section', { data: { view: 'conversations' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' }, element('h1', { id: 'title', tabindex: -1 }, 'Conversations')),
    element('div', { class: 'controls', role: 'search', 'aria-label': 'Conversations' },
      element('div', { class: 'grow' }, field('Search', search)),
      field('Route', route), field('Model', model), field('Strategy', strategy), field('Trouble', trouble), field('Active', active),
      check('only with a stop hint', hint)),
    notice, element('div', { class: 'panel flush' }, list.node), pager);
  list.node.parentNode.hidden = pager.hidden = true;

  const showChoices = () => {
    for (const [select, name, all] of [[route, 'route', 'all routes'], [model, 'model', 'all models'], [strategy, 'strategy', 'all strategies']]) {
      if (filters[name] !== '') known[name].add(filters[name]);
      setOptions(select, [['', all], ...[...known[name]].sort().map(value => [value, value])]);
      select.value = filters[name];
    }
  };

  const isFiltered = () => filters.sort !== 'last' || filters.direction !== 'desc' || Object.entries(NO_FILTER).some(([name, none]) => filters[name] !== none);
  const clear = () => {
    Object.assign(filters, NO_FILTER);
    [search.value, trouble.value, active.value] = ['', '', ''];
    hint.checked = false;
    search.focus();
    restart();
  };

  const showNotice = why => {
    if (notice.dataset.why === why) return;
    notice.dataset.why = why;
    notice.replaceChildren(...(why === 'none' ? [nothingYet('No conversations yet.')] : why === 'filtered' ? [
      element('div', { class: 'empty', data: { empty: 'filtered' } }, element('p', {}, 'No conversation matches.'),
        element('button', { type: 'button', on: { click: clear } }, 'Clear search'))] : []));
  };

  const show = page => {
    shown = page.conversations;
    next = page.next;
    for (const summary of shown) for (const name of Object.keys(known)) known[name].add(summary[name]);
    showChoices();
    list.update(shown);
    titles.read(shown);
    const empty = shown.length === 0;
    list.node.parentNode.hidden = empty;
    showNotice(empty ? (isFiltered() || filters.pages.length > 1 ? 'filtered' : 'none') : '');
    later.disabled = later.disabled && next === null;
    setDisabled(earlier, filters.pages.length < 2, later);
    setDisabled(later, next === null, earlier);
    pager.hidden = empty && filters.pages.length < 2;
    const first = page.total === null ? null : page.offset + 1;
    setText(range, empty ? '' : first === null ? `${plural(shown.length, 'match', 'matches')} on this page` : `${count(first)} to ${count(page.offset + shown.length)} of ${count(page.total)}`);
  };

  const read = () => {
    const thisRead = lastRead += 1;
    const { search: words, route, model, strategy, trouble, active, sort, direction } = filters;
    const since = active === '' ? null : Date.now() - Number(active);
    const parameters = { offset: filters.pages.at(-1), limit: PAGE, search: words, route, model, strategy, trouble, since, sort: sort === 'last' ? null : sort, order: direction === 'desc' ? null : direction, hint: filters.hint ? 1 : null };
    return attempt(signal, async () => {
      const page = await retryWhileUnreachable(signal, () => get('/api/conversations', parameters, signal));
      if (thisRead === lastRead) show(page);
    }, error => { notice.dataset.why = 'error'; notice.replaceChildren(problem(error, read)); });
  };

  // Filter choices that are not on this page of the list. The view works without them, so errors are not shown.
  attempt(signal, async () => {
    const [{ routes }, { routes: seen, models }] = await Promise.all([get('/api/config', {}, signal), get('/api/overview', { range: '24h' }, signal)]);
    for (const { name } of [...routes, ...seen]) known.route.add(name);
    for (const { name } of models) known.model.add(name);
    showChoices();
  }, () => {});
  let reloadedAt = 0;
  const refresh = oneAtATime(() => { reloadedAt = Date.now(); return read(); });
  follow(signal, { range: '15m' }, {
    tick: ({ point }) => {
      if (point.requests > 0 && (!isFiltered() || Date.now() - reloadedAt > MIN_RELOAD_MS)) refresh();
      // Relative times change even without new requests.
      else list.update(shown);
    },
    reconnected: refresh,
  });
  showChoices();
  read();
  return { section, title: 'Conversations' };
};

const model = row => [row.route, ' ', row.model, ' ', element('span', { class: 'note' }, row.strategy)];
const wouldTitle = row => `${count(row.observed)} of ${plural(row.turns, 'turn')} only observed: this is what all plans together would have done`;
const planned = row => (row.observed > 0 ? row.tokens_planned : row.tokens_after);
/** What was saved of the tokens; where plans were only observed, what would have been if all had been applied. */
export const savedOf = row => element('span', { title: row.observed > 0 ? wouldTitle(row) : 'of the prompt tokens' },
  saving(row.tokens_before, planned(row)).replace(' saved', row.observed > 0 ? ' (would)' : ''));
/** The same of the cost. */
export const avoidedOf = row => (row.observed > 0 && row.planned_cost_usd !== null && row.unedited_cost_usd !== null
  ? element('span', { title: wouldTitle(row) }, `${money(row.unedited_cost_usd - row.planned_cost_usd)} (would)`)
  : gainOrLoss(avoided(row)));
export const savedSign = row => [row.observed, row.turns, row.tokens_before, row.tokens_after, row.tokens_planned, row.cost_usd, row.planned_cost_usd, row.unedited_cost_usd].join();

const rows = (titles, order) => table({
  caption: 'Conversations', key: row => row.id, cards: true, order,
  attributes: row => ({ data: { id: row.id } }),
  columns: [
    { label: 'Name', head: true, kind: 'name', sort: 'name', ascending: true, sign: row => `${row.name} ${titles.of(row)}`, of: row => [element('a', { href: conversationLink(row.id), title: row.name }, row.name), openingOf(titles.of(row))] },
    { label: 'Route, model, strategy', kind: 'word', sort: 'route', ascending: true, sign: row => `${row.route} ${row.model} ${row.strategy}`, of: model },
    { label: 'Turns', kind: 'number', sort: 'turns', of: row => count(row.turns) },
    { label: 'Sent → forwarded', kind: 'number', sort: 'sent', sign: savedSign, of: row => [shortened(row.tokens_before), ' → ', shortened(planned(row)), row.observed > 0 ? ' (would)' : null] },
    { label: 'Saved', kind: 'gauge', sort: 'saved', sign: savedSign, of: row => [gauge({ tokens_before: row.tokens_before, tokens_after: planned(row) }), savedOf(row)] },
    { label: 'Billed', kind: 'number', sort: 'billed', of: row => money(row.cost_usd) },
    { label: 'Avoided', kind: 'number', sort: 'avoided', title: 'cost as sent minus cost billed', sign: savedSign, of: avoidedOf },
    { label: 'Last seen', kind: 'notes', sort: 'last', sign: row => `${ago(row.last)} ${row.stop_hint} ${row.refusals} ${row.errors} ${row.degraded}`, of: row => [timeOf(row.last, ago(row.last)), ' ', notes(row)].flat() },
  ],
});

/** An amount saved or lost, coloured accordingly. */
export const gainOrLoss = dollars => element('span', { class: dollars < 0 ? 'more' : dollars > 0 ? 'less' : '', title: exactMoney(dollars) }, money(dollars));

const gauge = ({ tokens_before: before, tokens_after: after }) => {
  const level = element('i', { class: after > before ? 'more' : '' });
  level.style.width = `${before > 0 ? Math.min(100, Math.abs(before - after) / before * 100) : 0}%`;
  return element('span', { class: 'gauge-bar', title: percent(before - after, before), 'aria-hidden': 'true' }, level);
};

/** Badges for a stop hint, refusals and degradations. */
export const notes = ({ stop_hint: hint, refusals, errors, degraded }) => {
  const badges = [
    hint === null ? null : badge(`stop hint: ${hint}`, 'warn', `no progress for ${plural(hint, 'turn')}`),
    refusals > 0 ? badge(`${count(refusals)} refused`, 'bad') : null,
    errors > 0 ? badge(plural(errors, 'error'), 'bad', 'of the upstream') : null,
    degraded > 0 ? badge(`${count(degraded)} degraded`, 'warn') : null,
  ].filter(entry => entry !== null);
  return badges.length > 0 ? badges : [screenReaderOnly('none')];
};
