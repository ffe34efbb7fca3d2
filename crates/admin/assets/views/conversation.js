// One conversation: its figures, its turns as a strip and as a table, its pinned memory and its summaries.
import { backToList, turnLink } from '../address.js';
import { attempt, call, get, retryWhileUnreachable } from '../api.js';
import { badge, element, field, scrollBox, setDisabled, setOptions, setText } from '../dom.js';
import { avoided, count, money, percent, plural, saving, short, timeOf } from '../format.js';
import { follow, oneAtATime } from '../live.js';
import { table } from '../table.js';
import { TROUBLES, gainOrLoss, notes } from './conversations.js';
import { problem } from './notice.js';
import { openings } from './opening.js';
import { forwardedOf, isRefused, strip } from './strip.js';
import { folds } from './summary.js';
import { transcript } from './transcript.js';

const PAGE = 500;

export const conversation = ({ signal, parameters: [id] }) => {
  const path = `/api/conversations/${id}`;
  // Null means the last page, where new turns appear.
  let offset = null, lastRead = 0;

  const heading = element('h1', { id: 'title', tabindex: -1 }, 'Conversation');
  const about = element('p', { class: 'sub' });
  const opening = element('p', { class: 'sub opening' });
  const titles = openings(signal, () => setText(opening, titles.of({ id }) ?? ''));
  const figures = element('dl', { class: 'facts' });
  const notice = element('div');
  const columns = strip(id, signal);
  let pageOfTurns = [];
  const order = { sort: 'turn', direction: 'desc', trouble: '' };
  const showTurns = () => turns.update(arranged(pageOfTurns, order));
  const turns = turnTable(id, { current: () => order, choose: (sort, direction) => { Object.assign(order, { sort, direction }); showTurns(); } });
  const trouble = element('select', { id: 'turn-trouble', on: { change: () => { order.trouble = trouble.value; showTurns(); } } });
  setOptions(trouble, TROUBLES);
  const summaries = folds();
  const told = transcript(id, signal);
  const memory = element('div', { class: 'panel', hidden: true });
  const range = element('p', { class: 'range' });
  const pageButton = (text, name, to) => element('button', { type: 'button', id: name, on: { click: () => { offset = to(); read(); } } }, text);
  let at = 0, total = 0;
  const earlier = pageButton('Earlier turns', 'previous', () => Math.max(0, at - PAGE));
  const later = pageButton('Later turns', 'next', () => (at + PAGE >= total ? null : at + PAGE));
  const pager = element('div', { class: 'pager' }, earlier, later, range);
  const dialog = deleteDialog(id, () => heading.textContent);
  const actions = element('div', { class: 'actions', hidden: true },
    element('a', { class: 'button', href: `${path}/export`, download: `conversation-${id}.ndjson`, id: 'export' }, 'Export'),
    element('button', { type: 'button', class: 'danger', id: 'delete', on: { click: dialog.open } }, 'Delete…'));
  const content = element('div', { hidden: true }, figures,
    element('div', { class: 'panel' }, element('h2', {}, 'Turn by turn'), columns.node),
    element('div', { class: 'panel' }, element('h2', {}, 'Transcript'), told.node),
    element('div', { class: 'panel' }, element('h2', {}, 'Turns'), element('div', { class: 'controls' }, field('Trouble', trouble)), pager, scrollBox('Turns', turns.node, { tall: true })),
    memory, element('div', { class: 'panel' }, element('h2', {}, 'Summaries'), summaries.node));

  const section = element('section', { data: { view: 'conversation' }, 'aria-labelledby': 'title' },
    element('p', { class: 'crumbs' }, backToList()),
    element('div', { class: 'heading' }, element('div', {}, heading, opening, about), actions),
    notice, content, dialog.node);

  const show = page => {
    const { conversation: summary } = page;
    [at, total] = [page.turns_offset, page.turns_total];
    setText(heading, summary.name);
    setText(opening, titles.of(summary) ?? '');
    titles.read([summary]);
    const sign = JSON.stringify(summary);
    if (figures.dataset.sign !== sign) {
      figures.dataset.sign = sign;
      about.replaceChildren(`${summary.route} · ${summary.model} · ${summary.strategy} · tenant `, element('code', {}, summary.tenant), ' · id ', element('code', {}, summary.id));
      figures.replaceChildren(...facts(summary));
    }
    // Shown before it is filled, because the strip measures its width.
    actions.hidden = content.hidden = false;
    columns.update(page.turns, at);
    pageOfTurns = page.turns.map((turn, index) => ({ ...turn, number: at + index + 1 }));
    showTurns();
    summaries.update(page.summaries);
    told.update(total);
    memory.hidden = page.memory === null;
    if (page.memory !== null) memory.replaceChildren(element('h2', {}, 'Pinned memory'), element('pre', { class: 'wrap' }, page.memory));
    pager.hidden = total <= PAGE;
    const end = at + page.turns.length >= total;
    later.disabled = later.disabled && end;
    setDisabled(earlier, at === 0, later);
    setDisabled(later, end, earlier);
    setText(range, `turns ${count(at + 1)} to ${count(at + page.turns.length)} of ${count(total)}`);
    notice.replaceChildren();
  };

  const lastPage = turnCount => Math.max(0, Math.floor((turnCount - 1) / PAGE) * PAGE);
  const read = () => {
    const thisRead = lastRead += 1;
    return attempt(signal, async () => {
      const load = from => retryWhileUnreachable(signal, () => get(path, { turns_offset: from, turns_limit: PAGE }, signal));
      let page = await load(offset ?? lastPage(total));
      // Only a response tells which page is the last.
      if (offset === null && lastPage(page.turns_total) !== page.turns_offset) page = await load(lastPage(page.turns_total));
      if (thisRead === lastRead) show(page);
    }, error => {
      const gone = error.status === 404;
      if (gone) setText(heading, 'This conversation does not exist');
      actions.hidden = content.hidden = true;
      notice.replaceChildren(problem(error, gone ? null : read, backToList()));
    });
  };

  const refresh = oneAtATime(read);
  follow(signal, { range: '15m' }, { tick: ({ point }) => { if (point.requests > 0 && offset === null) refresh(); }, reconnected: refresh });
  read();
  return { section, title: `Conversation ${id.slice(0, 8)}` };
};

const facts = one => [
  ['Turns', count(one.turns)],
  ['Tokens sent → forwarded', element('span', { title: `${count(one.tokens_before)} → ${count(one.tokens_after)}` }, `${short(one.tokens_before)} → ${short(one.tokens_after)}`), saving(one.tokens_before, one.tokens_after)],
  ['Billed', money(one.cost_usd), one.unedited_cost_usd === null ? null : `${money(one.unedited_cost_usd)} unedited`],
  ['Avoided', gainOrLoss(avoided(one)), 'before the cost of summaries'],
  ...(one.observed > 0 ? [['With all plans applied', `${short(one.tokens_planned)} (${saving(one.tokens_before, one.tokens_planned)})`,
    `${count(one.observed)} of ${plural(one.turns, 'turn')} only observed${one.planned_cost_usd === null || one.unedited_cost_usd === null ? '' : `; would have avoided ${money(one.unedited_cost_usd - one.planned_cost_usd)}`}`]] : []),
  ['Cached share', percent(one.cached_tokens, one.prompt_tokens), `${short(one.cached_tokens)} of ${short(one.prompt_tokens)} tokens, as counted by the provider`],
  ['Completion tokens', count(one.completion_tokens)],
  ['Last seen', timeOf(one.last), ['first ', timeOf(one.first)]],
  ['Notes', one.stop_hint === null && one.refusals === 0 && one.errors === 0 && one.degraded === 0 ? 'none' : notes(one), one.stop_hint === null ? null : `no progress for ${plural(one.stop_hint, 'turn')}`],
].map(([name, value, more]) => element('div', {}, element('dt', {}, name), element('dd', {}, value), more ? element('dd', { class: 'note' }, more) : null));

export const outcomeBadge = turn => {
  if (turn.overflow_rejected || turn.outcome === 'refused') return badge(`${turn.status} refused`, 'bad', turn.reason);
  const wait = turn.retry_after_s === null ? '' : `; retry after ${turn.retry_after_s} s`;
  if (turn.outcome === 'upstream_error') return badge(`${turn.status} upstream error`, 'bad', `the upstream answered with an error, or not at all${wait}`);
  if (turn.outcome === 'upstream_broke') return badge(`${turn.status} upstream broke off`, 'bad', 'the response ended before it was complete');
  if (turn.outcome === 'client_closed') return badge(`${turn.status} client closed`, 'warn', 'the client disconnected before the response ended');
  return badge(`${turn.status} ${turn.outcome}`, turn.status >= 400 ? 'bad' : 'good');
};

const HAS = {
  errors: turn => turn.outcome === 'upstream_error' || turn.outcome === 'upstream_broke',
  refusals: isRefused,
  degraded: turn => turn.degraded !== null,
  any: turn => HAS.errors(turn) || HAS.refusals(turn) || HAS.degraded(turn),
};
const SORTS = {
  turn: turn => turn.number, sent: turn => turn.tokens_before, forwarded: turn => (isRefused(turn) ? 0 : forwardedOf(turn)),
  cached: turn => (turn.prompt_tokens > 0 ? turn.cached_tokens / turn.prompt_tokens : null), cost: turn => turn.cost_usd,
};

/** The turns of a page that match, sorted. Those without a figure come last in both directions. */
const arranged = (turns, { sort, direction, trouble }) => {
  const figure = SORTS[sort], sign = direction === 'asc' ? 1 : -1;
  const compare = (one, other) => {
    const [a, b] = [figure(one), figure(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (a - b) || other.number - one.number;
  };
  return turns.filter(turn => trouble === '' || HAS[trouble](turn)).sort(compare);
};

const turnTable = (id, order) => {
  const number = (label, sort, of, title = null) => ({ label, sort, of, title, kind: 'number' });
  return table({
    caption: 'Turns', order, key: row => row.number, attributes: row => ({ data: { number: row.number } }),
    columns: [
      { label: 'Turn', head: true, sort: 'turn', sign: row => row.number, of: row => element('a', { href: turnLink(id, row.number) }, `Turn ${row.number}`) },
      { label: 'Time', sign: row => row.at, of: row => timeOf(row.at) },
      number('Sent', 'sent', row => count(row.tokens_before)),
      number('Forwarded', 'forwarded', row => (row.outcome === 'refused' ? 'nothing' : count(forwardedOf(row)))),
      { label: 'Edited', sign: row => `${row.observed} ${row.masked.length} ${row.trimmed.length} ${row.folded} ${row.dropped}`, of: editsOf },
      number('Cached', 'cached', row => percent(row.cached_tokens, row.prompt_tokens), 'as counted by the provider'),
      number('Cost', 'cost', row => money(row.cost_usd)),
      { label: 'Status', kind: 'notes', sign: row => `${row.status}${row.outcome}${row.degraded}${row.observed}`, of: row => [outcomeBadge(row), row.degraded ? badge(row.degraded, 'warn', 'degraded') : null, row.observed ? badge('observed only', '', 'nothing was edited') : null] },
    ],
  });
};

/** `12 masked, 30 folded`; with a plan that was only observed, what would have been. */
const editsOf = row => {
  const edits = [[row.masked.length, 'masked'], [row.trimmed.length, 'trimmed'], [row.folded, 'folded'], [row.dropped, 'dropped']].filter(([number]) => number > 0).map(([number, edit]) => `${count(number)} ${edit}`).join(', ');
  return edits === '' ? 'nothing' : row.observed ? `would: ${edits}` : edits;
};

// The dialog that confirms deleting; Escape and Cancel close it.
const deleteDialog = (id, name) => {
  const title = element('b');
  const error = element('p', { class: 'error', role: 'alert' });
  const confirm = element('button', { type: 'button', class: 'danger solid', id: 'confirm-delete' }, 'Delete');
  const node = element('dialog', { 'aria-labelledby': 'delete-title' },
    element('h2', { id: 'delete-title' }, 'Delete this conversation?'),
    element('p', {}, 'This permanently deletes its messages, turns, summaries and pinned memory: ', title),
    element('p', { class: 'note' }, 'If its client continues, the conversation starts afresh: earlier decisions are not replayed, and the provider’s cache may miss.'),
    error,
    element('div', { class: 'actions' }, element('button', { type: 'button', id: 'cancel-delete', on: { click: () => node.close() } }, 'Cancel'), confirm));
  confirm.addEventListener('click', async () => {
    confirm.disabled = true;
    try {
      await call('DELETE', `/api/conversations/${id}`);
      node.close();
      location.hash = '#/conversations';
    } catch (refused) {
      error.textContent = refused.message;
    } finally {
      confirm.disabled = false;
    }
  });
  return { node, open: () => { title.textContent = name(); error.textContent = ''; node.showModal(); } };
};
