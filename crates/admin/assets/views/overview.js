// The overview: live figures over a time range.
import { attempt, get, retryWhileUnreachable } from '../api.js';
import { badge, element, field, setOptions, setText, scrollBox } from '../dom.js';
import { count, exactMoney, fullTime, isOnlyObserved, money, percent, plural, saving, share, shortened, span, timeOf } from '../format.js';
import { follow, isPaused, oneAtATime } from '../live.js';
import { addPoint, resample, sinceMinute, stepOf, withoutPast } from '../series.js';
import { table } from '../table.js';
import { cards } from './cards.js';
import { recent } from './recent.js';
import { nothingYet, problem } from './notice.js';

const RANGES = [['15m', '15 min', '15 minutes'], ['1h', '1 h', 'hour'], ['6h', '6 h', '6 hours'], ['24h', '24 h', '24 hours']];
const LENGTHS = { '15m': 15, '1h': 60, '6h': 360, '24h': 1440 };
// Whether the process started within the range, so that it has had no requests at all.
const startedWithinRange = ({ now, process }) => now - process.started <= LENGTHS[chosen.range] * 60_000;
const rangeText = range => RANGES.find(([name]) => name === range)[2];

// Module state, so that coming back from a conversation shows the same overview.
const chosen = { range: '15m', route: '', model: '' };

export const overview = ({ signal }) => {
  const seen = { route: new Set(), model: new Set() };
  let series = null, othersChanged = 0, lastRead = 0, open = false;

  const ranges = RANGES.map(([value, text]) => element('button', { type: 'button', 'data-range': value, on: { click: () => choose({ range: value }) } }, text));
  const route = element('select', { id: 'filter-route', on: { change: () => choose({ route: route.value }) } });
  const model = element('select', { id: 'filter-model', on: { change: () => choose({ model: model.value }) } });
  const state = element('span', { class: 'live' });
  const toggle = element('button', { type: 'button', id: 'pause', on: { click: () => { (isPaused() ? stream.resume : stream.pause)(); showState(); } } });
  const process = element('p', { class: 'process' });
  const sub = element('p', { class: 'sub' }, 'Figures of the last day.');
  const notice = element('div');
  const latest = recent(signal);
  const routes = breakdown('route', name => choose({ route: name }));
  const models = breakdown('model', name => choose({ model: name }));
  const reasons = reasonTable('Degradations by reason', 'No degradations.', 'reason', 'degraded');
  const codes = reasonTable('Refusals by code', 'No refusals.', 'code', 'refusals');
  const statuses = reasonTable('Upstream answers by status', 'No answers.', 'status', 'statuses');
  const figures = cards(signal, { failing: element('div', { class: 'trio' }, statuses.node, codes.node, reasons.node), now: latest.node });
  const content = element('div', { hidden: true },
    figures.node,
    element('div', { class: 'panel' }, element('h2', {}, 'By route'), routes.node),
    element('div', { class: 'panel' }, element('h2', {}, 'By model'), models.node));

  const section = element('section', { data: { view: 'overview' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' },
      element('h1', { id: 'title', tabindex: -1 }, 'Overview'),
      sub),
    element('div', { class: 'controls' },
      element('div', { class: 'field', role: 'group', 'aria-label': 'Range' }, element('span', { class: 'label', 'aria-hidden': 'true' }, 'Range'), element('div', { class: 'choice' }, ranges)),
      field('Route', route), field('Model', model),
      element('div', { class: 'field' }, element('span', { class: 'label' }, state), toggle)),
    process, notice, content);

  const showState = () => {
    setText(state, isPaused() ? 'Paused' : open ? 'Live' : 'Connecting');
    state.classList.toggle('paused', isPaused() || !open);
    setText(toggle, isPaused() ? 'Resume' : 'Pause');
  };

  const showChoice = () => {
    for (const button of ranges) button.setAttribute('aria-pressed', String(button.dataset.range === chosen.range));
    for (const [select, name, all] of [[route, 'route', 'all routes'], [model, 'model', 'all models']]) {
      setOptions(select, [['', all], ...[...seen[name]].sort().map(value => [value, value])]);
      if (chosen[name] !== '' && !seen[name].has(chosen[name])) setOptions(select, [['', all], [chosen[name], chosen[name]]]);
      select.value = chosen[name];
    }
  };

  const show = page => {
    for (const { name } of page.routes) seen.route.add(name);
    for (const { name } of page.models) seen.model.add(name);
    showChoice();
    showProcess(process, page);
    setText(sub, page.process.shares_figures ? 'Figures of the last day, of all processes that share the store.' : 'Figures of the last day.');
    const quiet = page.totals.requests === 0 && page.totals.refusals === 0;
    const filtered = chosen.route !== '' || chosen.model !== '';
    content.hidden = quiet;
    const why = quiet ? (filtered ? 'filtered' : 'none') : '';
    if (notice.dataset.why !== why) {
      notice.dataset.why = why;
      notice.replaceChildren(...(why === 'none' ? [nothingYet(startedWithinRange(page) ? 'No requests yet.' : `No requests in the last ${rangeText(chosen.range)}.`)] : why === 'filtered' ? [nothingMatches()] : []));
    }
    if (quiet) return;
    const step = stepOf(chosen.range);
    const rescued = page.outcomes.find(({ name }) => name === 'rescued')?.count ?? 0;
    figures.update(page.totals, withoutPast(resample(series, step), page.process.started - step), { step: span(step), range: rangeText(chosen.range), started: page.process.started, rescued, inFlight: page.process.in_flight, lastMinute: sinceMinute(series, page.now) });
    routes.update(page.routes);
    models.update(page.models.map(row => ({ ...row, names: row.name === 'other' ? latest.unknown(seen.model) : [] })));
    statuses.update(page.statuses);
    reasons.update(page.degraded);
    codes.update(page.refusals);
  };

  const nothingMatches = () => element('div', { class: 'empty' },
    element('p', {}, `No requests for this route and model in the last ${rangeText(chosen.range)}.`),
    element('button', { type: 'button', on: { click: () => choose({ route: '', model: '' }) } }, 'Clear filters'));

  const read = () => {
    const thisRead = lastRead += 1;
    return attempt(signal, async () => {
      const page = await retryWhileUnreachable(signal, () => get('/api/overview', chosen, signal));
      // The filters may have changed while this was loading.
      if (thisRead !== lastRead) return;
      series = page.series;
      othersChanged = page.others_changed;
      show(page);
      readLatest();
    }, error => { notice.dataset.why = 'error'; notice.replaceChildren(problem(error, read)); });
  };

  // The view works without the list, so errors are not shown.
  const readLatest = oneAtATime(() => attempt(signal, async () => latest.update((await get('/api/conversations', { limit: 50 }, signal)).conversations), () => {}));

  const choose = change => {
    Object.assign(chosen, change);
    series = null;
    notice.dataset.why = '';
    showChoice();
    stream.setParameters({ ...chosen });
    read();
  };

  const stream = follow(signal, { ...chosen }, {
    tick: event => {
      if (series === null) return;
      addPoint(series, event.point);
      show(event);
      if (event.point.requests > 0) readLatest();
      // Other processes have told of minutes that are past.
      if (event.others_changed !== othersChanged) {
        othersChanged = event.others_changed;
        read();
      }
    },
    reconnected: read,
    change: isOpen => { open = isOpen; showState(); },
  });
  showChoice();
  showState();
  read();
  return { section, title: 'Overview' };
};

const showProcess = (place, { process, now }) => {
  const parts = [
    `Tidegate ${process.version}`, `up since ${fullTime(process.started)} (${span(now - process.started)})`, `store ${process.store}`,
    process.records_messages ? 'records messages' : 'does not record messages',
  ].join(' · ');
  const sign = `${parts}|${process.store_degraded}|${process.draining}`;
  if (place.dataset.sign === sign) return;
  place.dataset.sign = sign;
  place.replaceChildren(
    `Tidegate ${process.version} · up since `, timeOf(process.started), ` (${span(now - process.started)}) · store `, element('code', {}, process.store),
    process.records_messages ? '' : ' · messages are not recorded ',
    process.store_degraded === null ? '' : badge(`store degraded: ${process.store_degraded}`, 'bad'),
    process.draining ? badge('draining', 'warn') : '');
};

const breakdown = (dimension, choose) => {
  const number = (label, of, title = null) => ({ label, of, title, kind: 'number' });
  const rows = table({
    caption: `Figures by ${dimension}`, key: row => row.name, attributes: row => ({ data: { name: row.name } }),
    columns: [
      { label: dimension, head: true, sign: row => `${row.name} ${row.names ?? ''}`, of: row => [element('button', { type: 'button', class: 'as-link', title: `Show only this ${dimension}`, on: { click: () => choose(row.name) } }, row.name), row.names?.length > 0 ? element('span', { class: 'note' }, ` ${row.names.join(', ')}`) : null] },
      number('requests', row => count(row.requests)),
      { label: 'sent → forwarded', kind: 'number', title: 'prompt tokens', sign: row => `${row.tokens_before} ${row.tokens_after}`, of: row => [shortened(row.tokens_before), ' → ', shortened(row.tokens_after)] },
      number('saved', row => (isOnlyObserved(row) ? saving(row.tokens_before, row.would_tokens_after).replace(' saved', ' (would)') : saving(row.tokens_before, row.tokens_after).replace(' saved', '')), 'of the prompt tokens'),
      number('cached', row => percent(row.cached_tokens, row.prompt_tokens), 'cached share of the prompt, as counted by the provider'),
      number('billed', row => money(row.cost_usd)),
      { label: 'avoided', kind: 'number', title: 'cost as sent minus cost billed and summaries', sign: row => `${row.avoided_usd} ${row.would_avoid_usd} ${isOnlyObserved(row)}`, of: row => amount(row) },
      { label: 'failed', kind: 'number', title: 'upstream errors, refusals and degradations', sign: row => `${row.errors} ${row.refusals} ${row.degraded}`, of: row => trouble(row) },
    ],
  });
  return { node: scrollBox(`Figures by ${dimension}`, rows.node), update: rows.update };
};

const amount = row => (isOnlyObserved(row)
  ? element('span', { title: 'would have been avoided; nothing was edited' }, `${money(row.would_avoid_usd)} (would)`)
  : element('span', { class: row.avoided_usd < 0 ? 'more' : row.avoided_usd > 0 ? 'less' : '', title: exactMoney(row.avoided_usd) }, money(row.avoided_usd)));

const trouble = ({ errors, refusals, degraded }) => element('span', { class: errors + refusals > 0 ? 'more' : '', title: `${plural(errors, 'upstream error')}, ${plural(refusals, 'refusal')}, ${count(degraded)} degraded` }, count(errors + refusals + degraded));

const reasonTable = (title, none, label, hook) => {
  const rows = table({
    caption: title, key: row => row.name,
    columns: [
      { label, head: true, of: row => row.name },
      { label: 'count', kind: 'number', of: row => count(row.count) },
      { label: 'share', kind: 'number', of: row => share(row.part) },
    ],
  });
  const empty = element('p', { class: 'note' }, none);
  const node = element('div', { class: 'panel', data: { tally: hook } }, element('h2', {}, title), empty, rows.node);
  const update = entries => {
    empty.hidden = entries.length > 0;
    rows.node.hidden = entries.length === 0;
    const all = entries.reduce((sum, row) => sum + row.count, 0);
    rows.update(entries.map(row => ({ ...row, part: all > 0 ? row.count / all : null })));
  };
  return { node, update };
};
