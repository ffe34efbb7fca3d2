// The plan for a request: the verdict, the budget, the action for each message with its reason, and the changes.
// Used for recorded turns and for requests in "Try it".
import { badge, element, scrollBox } from '../dom.js';
import { count, money, plural } from '../format.js';
import { table } from '../table.js';
import { changesOf } from './changes.js';

const SOURCES = {
  table: 'from the built-in model table', config: 'from `[models]` in the configuration', route: 'set by the route', fallback: 'fallback: the model is unknown',
  policy: 'reserved by the policy', request: 'requested by the client',
};
const ENDINGS = { as_sent: ['as sent', 'good'], edited: ['edited', 'good'], refused: ['refused', 'bad'] };

const lines = (caption, rows) => element('table', { class: 'sum' }, element('caption', { class: 'unseen' }, caption),
  element('tbody', {}, rows.filter(row => row !== null).map(([sign, name, number, note, kind]) => element('tr', { class: kind ?? null },
    element('th', { scope: 'row' }, `${sign} ${name}`.trim()), element('td', { class: 'number' }, count(number)), element('td', { class: 'note' }, note ?? '')))));

/** The arithmetic of the budget; `used` is null if nothing was counted. */
export const budgetLines = ({ window, windowNote, safe, output, outputNote, overhead, input, before, used }) => {
  // An empty budget is a limit; one that is not known is none.
  if (input === null || (input === 0 && !window)) {
    return lines('Budget calculation', [
      ['', 'window', null, 'unknown, so nothing limits the request'],
      before === null || before === used ? null : ['', 'sent by the client', before],
      ['', 'used', used, '', 'total'],
    ]);
  }
  const room = Math.max(0, safe - output - overhead);
  return lines('Budget calculation', [
    ['', 'window', window, windowNote],
    ['', 'usable', safe, safe < window ? 'limited by the policy' : ''],
    ['−', 'output', output, outputNote],
    ['−', 'overhead', overhead, 'reserve for uncounted tokens'],
    ['=', 'input budget', input, input < room ? `capped by the policy; ${count(room)} available` : '', 'total'],
    before === null || before === used ? null : ['', 'sent by the client', before],
    ['', 'used', used],
    used > input ? ['', 'over', used - input, 'over budget', 'over'] : ['', 'left', input - used, '', 'total'],
  ]);
};

const budgetTable = ({ budget, usage }) => budgetLines({
  window: budget.window, windowNote: SOURCES[budget.window_source] ?? budget.window_source, safe: budget.safe,
  output: budget.output, outputNote: SOURCES[budget.output_source] ?? budget.output_source, overhead: budget.overhead, input: budget.input,
  before: usage.before, used: usage.after,
});

const TONES = { keep: 'keep', mask: 'mask', trim: 'trim', 'trim+untag': 'trim', untag: 'untag', 'mask+untag': 'mask', fold: 'fold', drop: 'drop' };

const messageTable = messages => {
  const rows = table({
    caption: 'Messages with actions and reasons', cards: true, key: row => row.index, attributes: row => ({ data: { index: row.index, action: row.action } }),
    columns: [
      { label: '#', head: true, kind: 'number index', of: row => String(row.index) },
      { label: 'Role', of: row => row.role },
      { label: 'Tool', kind: 'word', of: row => row.tool ?? (row.calls?.length > 0 ? `calls ${row.calls.join(', ')}` : '') },
      { label: 'Tokens', kind: 'number', of: row => (row.tokens === row.tokens_after ? count(row.tokens) : `${count(row.tokens)} → ${count(row.tokens_after)}`) },
      { label: 'Action', sign: row => row.action, of: row => badge(row.action, TONES[row.action] ?? '') },
      { label: 'Why', kind: 'why', sign: row => row.why, of: row => element('span', { title: row.reason }, row.why ?? row.reason) },
    ],
  });
  rows.update(messages);
  return scrollBox('Messages', rows.node, { tall: true });
};

const part = (title, facts) => {
  const known = facts.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false);
  return known.length === 0 ? null : element('div', {}, element('h3', {}, title),
    element('dl', { class: 'pairs' }, known.map(([name, value]) => [element('dt', {}, name), element('dd', {}, String(value))])));
};

const settings = ({ masking, folding, recall, model, route, upstream, strategy, observe }) => element('div', { class: 'settings' },
  part('Policy', [['route', route], ['upstream', upstream], ['strategy', strategy], ['observe', observe ? 'yes: plans are reported, not applied' : null]]),
  masking ? part('Masking', [['keep', masking.keep], ['pace', masking.pace], ['cause', masking.cause], ['postponed', masking.postponed || null], ['note', masking.note]]) : null,
  folding ? part('Folding', [
    ['when', folding.when], ['keep', folding.keep], ['mode', folding.mode], ['summarizer', folding.summarizer], ['cause', folding.cause],
    ['covered', folding.covered ? plural(folding.covered, 'message') : null], ['summary', folding.summary_tokens ? plural(folding.summary_tokens, 'token') : null], ['note', folding.note],
  ]) : null,
  recall && recall.excerpts.length > 0 ? part('Recall', [
    ...recall.excerpts.map(one => [`in ${one.message}`, `${one.quotes.join(', ')}: ${plural(one.tokens, 'token')}${one.new ? ', new' : ''}`]), ['note', recall.note],
  ]) : null,
  model ? part('Model', [
    ['requested', model.asked], ['matched', model.matched], ['window', model.window ? count(model.window) : null], ['encoding', model.encoding && `${model.encoding} (${model.fit})`],
    ['prices', model.prices ? `${money(model.prices.input)} input, ${money(model.prices.cached_input)} cached, ${money(model.prices.output)} output, per 1 M tokens` : null],
  ]) : null);

/** `page(offset)` is called to show other messages; `before` is inserted after the verdict. */
export const planOf = ({ explanation, changes, messages_total: total, messages_offset: offset, messages_limit: limit }, page, ...before) => {
  const { verdict, messages, budget } = explanation;
  const [ending, tone] = ENDINGS[verdict.ending] ?? [verdict.ending, ''];
  const pager = total > limit ? element('div', { class: 'pager' },
    element('button', { type: 'button', id: 'earlier-messages', disabled: offset === 0, on: { click: () => page(Math.max(0, offset - limit)) } }, 'Earlier messages'),
    element('button', { type: 'button', id: 'later-messages', disabled: offset + limit >= total, on: { click: () => page(offset + limit) } }, 'Later messages'),
    element('p', { class: 'range' }, `messages ${count(offset)} to ${count(Math.min(total, offset + limit) - 1)} of ${count(total)}`)) : null;
  return element('div', { class: 'plan' },
    element('p', { class: 'verdict', data: { ending: verdict.ending } }, badge(ending, tone), ' ', element('span', {}, verdict.sentence)),
    ...before,
    element('div', { class: 'split' },
      element('div', { class: 'side' },
        budget ? element('div', { class: 'panel' }, element('h2', {}, 'Budget'), budgetTable(explanation)) : null,
        element('div', { class: 'panel' }, element('h2', {}, 'Settings'), settings(explanation))),
      messages ? element('div', { class: 'panel' }, element('h2', {}, 'Messages'), pager, messageTable(messages)) : null),
    messages ? element('div', { class: 'panel' }, element('h2', {}, 'Changes'), changesOf(changes)) : null);
};
