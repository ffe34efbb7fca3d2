// One conversation: its figures, the strip of its turns, the turns as a table, what is pinned and what was summarized.
import { backToList, turnLink } from '../address.js';
import { attempt, call, get, persist } from '../api.js';
import { badge, disable, element, say, scrollBox } from '../dom.js';
import { avoided, count, micros, money, percent, plural, saving, short, timeOf } from '../format.js';
import { follow, oneAtATime } from '../live.js';
import { table } from '../table.js';
import { notes, worth } from './conversations.js';
import { problem } from './notice.js';
import { forwardedOf, strip } from './strip.js';
import { folds } from './summary.js';

const PAGE = 500;

export const conversation = ({ signal, parameters: [id] }) => {
  const path = `/api/conversations/${id}`;
  // Null means the last page, where new turns appear.
  let offset = null, mine = 0;

  const heading = element('h1', { id: 'title', tabindex: -1 }, 'Conversation');
  const about = element('p', { class: 'sub' });
  const figures = element('dl', { class: 'facts' });
  const notice = element('div');
  const columns = strip(id, signal);
  const turns = turnTable(id);
  const summaries = folds();
  const memory = element('div', { class: 'panel', hidden: true });
  const range = element('p', { class: 'range' });
  const page = (text, name, to) => element('button', { type: 'button', id: name, on: { click: () => { offset = to(); read(); } } }, text);
  let at = 0, total = 0;
  const earlier = page('Earlier turns', 'previous', () => Math.max(0, at - PAGE));
  const later = page('Later turns', 'next', () => (at + PAGE >= total ? null : at + PAGE));
  const pager = element('div', { class: 'pager' }, earlier, later, range);
  const dialog = deletion(id, () => heading.textContent);
  const actions = element('div', { class: 'actions', hidden: true },
    element('a', { class: 'button', href: `${path}/export`, download: `conversation-${id}.ndjson`, id: 'export' }, 'Export'),
    element('button', { type: 'button', class: 'danger', id: 'delete', on: { click: dialog.open } }, 'Delete…'));
  const content = element('div', { hidden: true }, figures,
    element('div', { class: 'panel' }, element('h2', {}, 'Turn by turn'), columns.node),
    element('div', { class: 'panel' }, element('h2', {}, 'Turns'), pager, scrollBox('Turns', turns.node, { tall: true })),
    memory, element('div', { class: 'panel' }, element('h2', {}, 'Summaries'), summaries.node));

  const section = element('section', { data: { view: 'conversation' }, 'aria-labelledby': 'title' },
    element('p', { class: 'crumbs' }, backToList()),
    element('div', { class: 'heading' }, element('div', {}, heading, about), actions),
    notice, content, dialog.node);

  const show = answer => {
    const { conversation: one } = answer;
    [at, total] = [answer.turns_offset, answer.turns_total];
    say(heading, one.name);
    const sign = JSON.stringify(one);
    if (figures.dataset.sign !== sign) {
      figures.dataset.sign = sign;
      about.replaceChildren(`${one.route} · ${one.model} · ${one.strategy} · tenant `, element('code', {}, one.tenant), ' · id ', element('code', {}, one.id));
      figures.replaceChildren(...facts(one));
    }
    // Shown before it is filled: the strip measures its room.
    actions.hidden = content.hidden = false;
    columns.update(answer.turns, at);
    turns.update(answer.turns.map((turn, place) => ({ ...turn, number: at + place + 1 })).reverse());
    summaries.update(answer.summaries);
    memory.hidden = answer.memory === null;
    if (answer.memory !== null) memory.replaceChildren(element('h2', {}, 'Pinned memory'), element('pre', { class: 'wrap' }, answer.memory));
    pager.hidden = total <= PAGE;
    const end = at + answer.turns.length >= total;
    later.disabled = later.disabled && end;
    disable(earlier, at === 0, later);
    disable(later, end, earlier);
    say(range, `turns ${count(at + 1)} to ${count(at + answer.turns.length)} of ${count(total)}`);
    notice.replaceChildren();
  };

  const lastPage = all => Math.max(0, Math.floor((all - 1) / PAGE) * PAGE);
  const read = () => {
    const turn = mine += 1;
    return attempt(signal, async () => {
      const ask = from => persist(signal, () => get(path, { turns_offset: from, turns_limit: PAGE }, signal));
      let answer = await ask(offset ?? lastPage(total));
      // Which page is the last one is only known from an answer.
      if (offset === null && lastPage(answer.turns_total) !== answer.turns_offset) answer = await ask(lastPage(answer.turns_total));
      if (turn === mine) show(answer);
    }, error => {
      const gone = error.status === 404;
      if (gone) say(heading, 'This conversation does not exist');
      actions.hidden = content.hidden = true;
      notice.replaceChildren(problem(error, gone ? null : read, backToList()));
    });
  };

  const refresh = oneAtATime(read);
  follow(signal, { range: '15m' }, { tick: ({ point }) => { if (point.requests > 0 && offset === null) refresh(); }, again: refresh });
  read();
  return { section, title: `Conversation ${id.slice(0, 8)}` };
};

const facts = one => [
  ['Turns', count(one.turns)],
  ['Tokens sent → forwarded', element('span', { title: `${count(one.tokens_before)} → ${count(one.tokens_after)}` }, `${short(one.tokens_before)} → ${short(one.tokens_after)}`), saving(one.tokens_before, one.tokens_after)],
  ['Billed', money(one.cost_usd), one.unedited_cost_usd === null ? null : `${money(one.unedited_cost_usd)} unedited`],
  ['Avoided', worth(avoided(one)), 'before what summaries cost'],
  ['Cached share', percent(one.cached_tokens, one.prompt_tokens), `${short(one.cached_tokens)} of ${short(one.prompt_tokens)} tokens`],
  ['Completion tokens', count(one.completion_tokens)],
  ['Last seen', timeOf(one.last), ['first ', timeOf(one.first)]],
  ['Notes', one.stop_hint === null && one.refusals === 0 && one.degraded === 0 ? 'none' : notes(one), one.stop_hint === null ? null : `nothing new for ${plural(one.stop_hint, 'turn')}`],
].map(([name, value, more]) => element('div', {}, element('dt', {}, name), element('dd', {}, value), more ? element('dd', { class: 'note' }, more) : null));

export const outcomeBadge = turn => {
  if (turn.overflow_rejected || turn.outcome === 'refused') return badge(`${turn.status} refused`, 'bad');
  if (turn.outcome === 'broken') return badge(`${turn.status} broken`, 'bad', 'the answer broke off');
  if (turn.outcome === 'client_gone') return badge(`${turn.status} client gone`, 'warn', 'the client left before the answer ended');
  return badge(`${turn.status} ${turn.outcome}`, turn.status >= 400 ? 'bad' : 'good');
};

const turnTable = id => {
  const number = (label, of, title = null) => ({ label, of, title, kind: 'number' });
  return table({
    caption: 'Turns, the newest first', key: row => row.number, attributes: row => ({ data: { number: row.number } }),
    columns: [
      { label: 'Turn', head: true, sign: row => row.number, of: row => element('a', { href: turnLink(id, row.number) }, `Turn ${row.number}`) },
      { label: 'Time', sign: row => row.at, of: row => timeOf(row.at) },
      number('Sent', row => count(row.tokens_before)),
      number('Forwarded', row => (row.outcome === 'refused' ? 'nothing' : count(forwardedOf(row)))),
      number('Masked', row => count(row.observed ? 0 : row.masked.length)), number('Folded', row => count(row.observed ? 0 : row.folded)), number('Dropped', row => count(row.observed ? 0 : row.dropped)),
      number('Cached', row => percent(row.cached_tokens, row.prompt_tokens), "by the provider's count"),
      number('Cost', row => money(row.cost_usd)),
      number('Added', row => micros(row.overhead_us), 'latency that Tidegate adds'),
      { label: 'Trigger', of: row => row.trigger ?? '' },
      { label: 'Status', kind: 'notes', sign: row => `${row.status}${row.outcome}${row.degraded}${row.observed}`, of: row => [outcomeBadge(row), row.degraded ? badge(row.degraded, 'warn', 'degraded') : null, row.observed ? badge('observed only', '', 'nothing was edited') : null] },
    ],
  });
};

// Asks before it deletes; Escape and Cancel leave everything as it is.
const deletion = (id, name) => {
  const which = element('b');
  const error = element('p', { class: 'error', role: 'alert' });
  const sure = element('button', { type: 'button', class: 'danger solid', id: 'confirm-delete' }, 'Delete it');
  const node = element('dialog', { 'aria-labelledby': 'delete-title' },
    element('h2', { id: 'delete-title' }, 'Delete this conversation?'),
    element('p', {}, 'Its messages, turns, summaries and pinned memory are lost, and cannot be brought back: ', which),
    element('p', { class: 'note' }, 'If its client goes on, it begins anew: nothing that was decided is repeated, and the provider’s cache may miss.'),
    error,
    element('div', { class: 'actions' }, element('button', { type: 'button', id: 'cancel-delete', on: { click: () => node.close() } }, 'Cancel'), sure));
  sure.addEventListener('click', async () => {
    sure.disabled = true;
    try {
      await call('DELETE', `/api/conversations/${id}`);
      node.close();
      location.hash = '#/conversations';
    } catch (refused) {
      error.textContent = refused.message;
    } finally {
      sure.disabled = false;
    }
  });
  return { node, open: () => { which.textContent = name(); error.textContent = ''; node.showModal(); } };
};
