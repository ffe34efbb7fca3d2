// The overview: what this process has done, over a range of time, live.
import { attempt, get, persist } from '../api.js';
import { badge, element, field, offer, say, scrollBox } from '../dom.js';
import { count, fullTime, micros, money, percent, saving, share, span, timeOf } from '../format.js';
import { follow, isPaused } from '../live.js';
import { gather, stepOf, take } from '../series.js';
import { table } from '../table.js';
import { cards } from './cards.js';
import { nothingYet, problem } from './notice.js';

const RANGES = [['15m', '15 min', '15 minutes'], ['1h', '1 h', 'hour'], ['6h', '6 h', '6 hours'], ['24h', '24 h', '24 hours']];
const LENGTHS = { '15m': 15, '1h': 60, '6h': 360, '24h': 1440 };
// Within the range since it started, nothing at all has come yet.
const isYoung = ({ now, process }) => now - process.started <= LENGTHS[chosen.range] * 60_000;
const wordsOf = range => RANGES.find(([name]) => name === range)[2];

// What was chosen last, so that coming back from a conversation shows the same.
const chosen = { range: '15m', route: '', model: '' };

export const overview = ({ signal }) => {
  const seen = { route: new Set(), model: new Set() };
  let series = null, asked = 0, open = false;

  const ranges = RANGES.map(([value, text]) => element('button', { type: 'button', 'data-range': value, on: { click: () => choose({ range: value }) } }, text));
  const route = element('select', { id: 'filter-route', on: { change: () => choose({ route: route.value }) } });
  const model = element('select', { id: 'filter-model', on: { change: () => choose({ model: model.value }) } });
  const state = element('span', { class: 'live' });
  const toggle = element('button', { type: 'button', id: 'pause', on: { click: () => { (isPaused() ? stream.resume : stream.pause)(); showState(); } } });
  const process = element('p', { class: 'process' });
  const notice = element('div');
  const figures = cards(signal);
  const routes = breakdown('route', name => choose({ route: name }));
  const models = breakdown('model', name => choose({ model: name }));
  const reasons = tally('Degradations by reason', 'Nothing was degraded.', 'reason', 'degraded');
  const codes = tally('Refusals by code', 'Nothing was refused.', 'code', 'refusals');
  const content = element('div', { hidden: true },
    figures.node,
    element('div', { class: 'panel dense' }, element('h2', {}, 'By route'), routes.node),
    element('div', { class: 'panel dense' }, element('h2', {}, 'By model'), models.node),
    element('div', { class: 'pair' }, reasons.node, codes.node));

  const section = element('section', { data: { view: 'overview' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' },
      element('h1', { id: 'title', tabindex: -1 }, 'Overview'),
      element('p', { class: 'sub' }, 'The figures are of this process, since it started.')),
    element('div', { class: 'controls' },
      element('div', { class: 'field', role: 'group', 'aria-label': 'Range' }, element('span', { class: 'label', 'aria-hidden': 'true' }, 'Range'), element('div', { class: 'choice' }, ranges)),
      field('Route', route), field('Model', model),
      element('div', { class: 'field' }, element('span', { class: 'label' }, state), toggle)),
    process, notice, content);

  const showState = () => {
    say(state, isPaused() ? 'Paused' : open ? 'Live' : 'Connecting');
    state.classList.toggle('paused', isPaused() || !open);
    say(toggle, isPaused() ? 'Resume' : 'Pause');
  };

  const showChoice = () => {
    for (const button of ranges) button.setAttribute('aria-pressed', String(button.dataset.range === chosen.range));
    for (const [select, name, all] of [[route, 'route', 'all routes'], [model, 'model', 'all models']]) {
      offer(select, [['', all], ...[...seen[name]].sort().map(one => [one, one])]);
      if (chosen[name] !== '' && !seen[name].has(chosen[name])) offer(select, [['', all], [chosen[name], chosen[name]]]);
      select.value = chosen[name];
    }
  };

  const show = answer => {
    for (const { name } of answer.routes) seen.route.add(name);
    for (const { name } of answer.models) seen.model.add(name);
    showChoice();
    showProcess(process, answer);
    const quiet = answer.totals.requests === 0 && answer.totals.refusals === 0;
    const filtered = chosen.route !== '' || chosen.model !== '';
    content.hidden = quiet;
    const why = quiet ? (filtered ? 'filtered' : 'none') : '';
    if (notice.dataset.why !== why) {
      notice.dataset.why = why;
      notice.replaceChildren(...(why === 'none' ? [nothingYet(isYoung(answer) ? 'No request yet.' : `No request in the last ${wordsOf(chosen.range)}.`)] : why === 'filtered' ? [nothingMatches()] : []));
    }
    if (quiet) return;
    const step = stepOf(chosen.range);
    figures.update(answer.totals, gather(series, step), { step: span(step), range: wordsOf(chosen.range) });
    routes.update(answer.routes);
    models.update(answer.models);
    reasons.update(answer.degraded);
    codes.update(answer.refusals);
  };

  const nothingMatches = () => element('div', { class: 'empty' },
    element('p', {}, `No request of this route and model in the last ${wordsOf(chosen.range)}.`),
    element('button', { type: 'button', on: { click: () => choose({ route: '', model: '' }) } }, 'Clear the filters'));

  const read = () => {
    const turn = asked += 1;
    return attempt(signal, async () => {
      const answer = await persist(signal, () => get('/api/overview', chosen, signal));
      // The choice may have changed while this was on its way.
      if (turn !== asked) return;
      series = answer.series;
      show(answer);
    }, error => { notice.dataset.why = 'error'; notice.replaceChildren(problem(error, read)); });
  };

  const choose = change => {
    Object.assign(chosen, change);
    series = null;
    notice.dataset.why = '';
    showChoice();
    stream.aim({ ...chosen });
    read();
  };

  const stream = follow(signal, { ...chosen }, {
    tick: event => {
      if (series === null) return;
      take(series, event.point);
      show(event);
    },
    again: read,
    change: is => { open = is; showState(); },
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

const breakdown = (what, choose) => {
  const number = (label, of, title = null) => ({ label, of, title, kind: 'number' });
  const made = table({
    caption: `Figures by ${what}`, key: row => row.name, attributes: row => ({ data: { name: row.name } }),
    columns: [
      { label: what, head: true, sign: row => row.name, of: row => element('button', { type: 'button', class: 'as-link', title: `Show only this ${what}`, on: { click: () => choose(row.name) } }, row.name) },
      number('requests', row => count(row.requests)),
      number('sent', row => count(row.tokens_before), 'prompt tokens as sent by clients'),
      number('forwarded', row => count(row.tokens_after), 'prompt tokens as forwarded'),
      number('saved', row => saving(row.tokens_before, row.tokens_after).replace(' saved', '')),
      number('cached', row => percent(row.cached_tokens, row.prompt_tokens), "share of the prompt that was a cache hit, by the provider's count"),
      number('completion', row => count(row.completion_tokens), 'completion tokens'),
      number('billed', row => money(row.cost_usd)),
      { label: 'avoided', kind: 'number', title: 'as sent, less billed, less summaries', sign: row => row.avoided_usd, of: row => element('span', { class: row.avoided_usd < 0 ? 'more' : row.avoided_usd > 0 ? 'less' : '' }, money(row.avoided_usd)) },
      number('masked', row => count(row.masked), 'messages'), number('folded', row => count(row.folded), 'messages'), number('dropped', row => count(row.dropped), 'messages'),
      number('summaries', row => count(row.folds), 'summaries made'),
      number('p50', row => micros(row.overhead_p50_us), 'added latency'), number('p99', row => micros(row.overhead_p99_us), 'added latency'),
      number('degraded', row => count(row.degraded)), number('refused', row => count(row.refusals)),
    ],
  });
  return { node: scrollBox(`Figures by ${what}`, made.node), update: made.update };
};

const tally = (title, none, word, hook) => {
  const made = table({
    caption: title, key: row => row.name,
    columns: [
      { label: word, head: true, of: row => row.name },
      { label: 'count', kind: 'number', of: row => count(row.count) },
      { label: 'share', kind: 'number', of: row => share(row.part) },
    ],
  });
  const empty = element('p', { class: 'note' }, none);
  const node = element('div', { class: 'panel', data: { tally: hook } }, element('h2', {}, title), empty, made.node);
  const update = rows => {
    empty.hidden = rows.length > 0;
    made.node.hidden = rows.length === 0;
    const all = rows.reduce((sum, row) => sum + row.count, 0);
    made.update(rows.map(row => ({ ...row, part: all > 0 ? row.count / all : null })));
  };
  return { node, update };
};
