// One turn: what Tidegate did with this request, and why.
import { backToList, conversationLink, turnLink } from '../address.js';
import { attempt, get, retryWhileUnreachable } from '../api.js';
import { badge, element, keepFocus, setText } from '../dom.js';
import { avoided, count, micros, millis, money, percent, plural, saving, timeOf } from '../format.js';
import { outcomeBadge } from './conversation.js';
import { gainOrLoss } from './conversations.js';
import { problem } from './notice.js';
import { openings } from './opening.js';
import { budgetLines, planOf } from './plan.js';
import { forwardedOf, isRefused } from './strip.js';
import { summaryBody } from './summary.js';

const PAGE = 200;

export const turn = ({ signal, parameters: [id, digits] }) => {
  const number = Number(digits);
  const heading = element('h1', { id: 'title', tabindex: -1 }, `Turn ${number}`);
  const about = element('p', { class: 'sub' });
  const opening = element('p', { class: 'sub opening' });
  const titles = openings(signal, () => opening.replaceChildren(titles.of({ id }) ?? ''));
  const neighbours = element('nav', { class: 'near', 'aria-label': 'Turns' });
  const place = element('div');
  const section = element('section', { data: { view: 'turn' }, 'aria-labelledby': 'title' },
    element('p', { class: 'crumbs' }, backToList(), ' / ', element('a', { href: conversationLink(id) }, 'This conversation')),
    element('div', { class: 'heading' }, element('div', {}, heading, about, opening), neighbours), place);

  const show = page => {
    const { conversation, turn: record } = page;
    setText(heading, `Turn ${count(number)} of ${count(page.turns_total)}`);
    setText(opening, titles.of(conversation) ?? '');
    titles.read([conversation]);
    about.replaceChildren(conversation.name, ' · ', timeOf(record.at), ` · ${record.route} · ${record.model} · ${record.strategy} · `, outcomeBadge(record),
      record.degraded ? badge(`degraded: ${record.degraded}`, 'warn') : '', record.native ? badge('native', '', 'left to the provider, which was asked to manage the context') : '', record.left_alone ? badge('left alone', '', 'the provider has refused an edited request of this conversation') : '', record.observed ? badge('observed only', '', 'nothing was edited') : '');
    neighbours.replaceChildren(
      number > 1 ? element('a', { class: 'button', href: turnLink(id, number - 1), rel: 'prev' }, '← Previous turn') : '',
      number < page.turns_total ? element('a', { class: 'button', href: turnLink(id, number + 1), rel: 'next' }, 'Next turn →') : '');
    const why = [failure(record) && element('p', { class: 'cause failed' }, element('b', {}, 'What happened: '), failure(record)),
      page.cause === null ? null : element('p', { class: 'cause' }, element('b', {}, 'Why: '), page.cause)].filter(Boolean);
    const cause = why.length > 0 ? element('div', {}, why) : null;
    const summary = page.summary === null ? null : element('div', { class: 'panel' }, element('h2', {}, 'Summary used in this turn'), summaryBody(page.summary));
    const times = element('div', { class: 'panel' }, element('h2', {}, 'Time and cost'), figures(record));
    const parts = [page.explanation ? planOf(page, read, cause) : recorded(page, cause), summary, times];
    keepFocus(place, () => place.replaceChildren(...parts.filter(part => part !== null)), '.pager button:enabled');
  };

  const read = (offset = 0) => attempt(signal, async () => {
    show(await retryWhileUnreachable(signal, () => get(`/api/conversations/${id}/turns/${number}`, { offset, limit: PAGE }, signal)));
  }, error => {
    if (error.status === 404) setText(heading, 'This turn does not exist');
    place.replaceChildren(problem(error, error.status === 404 ? null : () => read(offset), backToList()));
  });

  read();
  return { section, title: `Turn ${number}, conversation ${id.slice(0, 8)}` };
};

// What the codes of refusals mean, in the words of the configuration.
const REASONS = {
  max_turns_exceeded: 'the conversation has as many turns as `context.limits.max_turns` allows',
  max_cost_exceeded: 'the conversation has cost as much as `context.limits.max_cost_usd` allows',
  conversation_busy: 'another request of the conversation was still running',
  store_unavailable: 'the store did not answer, and the route forwards nothing without it',
  overloaded: 'the gateway was overloaded', shutting_down: 'the gateway was shutting down',
};
const FAILURES = {
  upstream_unreachable: 'The upstream could not be reached, or closed the connection before it answered',
  upstream_timeout: 'The upstream did not answer in time', upstream_closed: 'The upstream broke off before its answer was complete',
  upstream_error: 'The upstream ended its answer with an error',
};

/** The limit that decided: what a request is refused above is often more than its budget. */
const limitOf = ({ budget, window, refuse_above: limit }) => {
  if (limit === 0 || limit === budget) return `the input budget of ${count(budget)}`;
  return limit === window ? `the model’s window of ${count(window)}` : `the ${count(limit)} that a window of ${count(window)} leaves`;
};

// Why a turn has no answer, or half of one. The plan says what was decided, not what became of the request.
const failure = record => {
  const wait = record.retry_after_s === null ? '' : ` It asks the client to wait ${record.retry_after_s} s.`;
  if (record.overflow_rejected) return `Tidegate refused it with context_budget_exceeded: ${count(record.tokens_after)} tokens do not fit ${limitOf(record)}.`;
  if (record.outcome === 'refused') return `Tidegate refused it with ${record.reason ?? `status ${record.status}`}${REASONS[record.reason] ? `: ${REASONS[record.reason]}` : ''}. Nothing was forwarded.`;
  if (record.outcome === 'upstream_error') return record.reason === null ? `The upstream answered with status ${record.status}.${wait}` : `${FAILURES[record.reason] ?? 'The upstream failed'} (${record.reason}).`;
  if (record.outcome === 'upstream_broke') return `${FAILURES[record.reason] ?? 'The upstream broke off before its answer was complete'}${record.reason === null ? '' : ` (${record.reason})`}.`;
  if (record.outcome === 'client_closed') return 'The client left before the answer was complete.';
  return null;
};

const sentence = record => {
  if (isRefused(record)) return `${count(record.tokens_before)} tokens were sent and refused; nothing was forwarded.`;
  const edits = [
    record.masked.length > 0 && `${plural(record.masked.length, 'message')} masked`,
    record.trimmed.length > 0 && `${plural(record.trimmed.length, 'message')} trimmed`,
    record.folded > 0 && `${plural(record.folded, 'message')} folded`,
    record.dropped > 0 && `${plural(record.dropped, 'message')} dropped`,
  ].filter(Boolean);
  return `${count(record.tokens_before)} tokens were sent, ${count(forwardedOf(record))} forwarded (${saving(record.tokens_before, forwardedOf(record))}): ${edits.length === 0 ? 'nothing was edited' : record.observed ? `nothing was edited; without \`observe\`: ${edits.join(', ')}` : edits.join(', ')}.`;
};

// Without the messages, the recorded figures still show what was decided.
const recorded = ({ turn: record, missing }, cause) => element('div', { class: 'plan' },
  element('p', { class: 'verdict', data: { ending: isRefused(record) ? 'refused' : 'recorded' } }, sentence(record)),
  cause,
  missing === null ? null : element('p', { class: 'empty slim', data: { missing: '' } }, missing),
  element('div', { class: 'split even' },
    element('div', { class: 'panel' }, element('h2', {}, 'Budget'), budgetLines({
      window: record.window, safe: record.safe, output: record.output, overhead: record.overhead, input: record.budget, before: record.tokens_before,
      used: isRefused(record) ? record.tokens_before : forwardedOf(record),
    })),
    element('div', { class: 'panel' }, element('h2', {}, record.observed ? 'Edits, had they been applied' : 'Edits'), pairs([
      ['messages', count(record.messages)],
      ...edits(record).map(([name, text]) => [record.observed && text !== 'none' ? `would be ${name}` : name, text]),
      ['postponed', record.postponed > 0 ? plural(record.postponed, 'message') : 'none'],
      ...(record.bound > 0 ? [['bound to later thinking', plural(record.bound, 'message')]] : []),
      ['summary', record.summary_tokens > 0 ? plural(record.summary_tokens, 'token') : 'none'],
      ...record.recalled.map(one => ['recalled', `${one.messages.join(', ')} in ${plural(one.tokens, 'token')}${one.new ? ', new' : ''}`]),
    ]))));

const edits = record => [
  ['masked', record.masked.length > 0 ? `${count(record.masked.length)} (${record.masked.join(', ')}), ${plural(record.saved_by_masking, 'token')} saved` : 'none'],
  ['trimmed', record.trimmed.length > 0 ? `${count(record.trimmed.length)} (${record.trimmed.join(', ')}), ${plural(record.saved_by_trimming, 'token')} saved` : 'none'],
  ['folded', record.folded > 0 ? `${count(record.folded)}, ${plural(record.folded_tokens, 'token')}` : 'none'],
  ['dropped', record.dropped > 0 ? `${count(record.dropped)}, ${plural(record.dropped_tokens, 'token')}` : 'none'],
];

const pairs = facts => element('dl', { class: 'pairs' }, facts.map(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));

const figures = record => element('dl', { class: 'facts plain' }, details(record).map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));

const details = record => [
  ['request id', element('code', {}, record.request_id)],
  ['first byte', millis(record.first_byte_ms)], ['upstream', millis(record.upstream_ms)], ['full response', millis(record.duration_ms)], ['added by Tidegate', micros(record.overhead_us)],
  ['prompt tokens', count(record.prompt_tokens)], ['cached', `${count(record.cached_tokens)} (${percent(record.cached_tokens, record.prompt_tokens)})`],
  ['completion tokens', count(record.completion_tokens)],
  ['billed', record.cost_estimated ? `${money(record.cost_usd)}, estimated` : money(record.cost_usd)], ['as sent', money(record.unedited_cost_usd)], ['avoided', gainOrLoss(avoided(record))],
  ['trigger', record.trigger ?? 'none'],
  ['stop hint', record.stop_hint === null ? 'none' : `no progress for ${plural(record.stop_hint, 'turn')}`],
  ...(record.blocks ? [['blocks', `memory ${count(record.blocks.memory_before)} → ${count(record.blocks.memory_after)}, summary ${count(record.blocks.summary_before)} → ${count(record.blocks.summary_after)}, history ${count(record.blocks.history_before)} → ${count(record.blocks.history_after)}${record.blocks.fell_back_to_words ? '; counted in words' : ''}`],
    ['duplicate lines removed', count(record.blocks.removed_lines)]] : []),
];
