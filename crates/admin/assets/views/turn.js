// One turn: what happened to this request, and why.
import { backToList, conversationLink, turnLink } from '../address.js';
import { attempt, get, persist } from '../api.js';
import { badge, element, keepFocus, say } from '../dom.js';
import { avoided, count, micros, millis, money, percent, plural, saving, timeOf } from '../format.js';
import { outcomeBadge } from './conversation.js';
import { worth } from './conversations.js';
import { problem } from './notice.js';
import { budgetLines, planOf } from './plan.js';
import { forwardedOf, isRefused } from './strip.js';
import { summaryBody } from './summary.js';

const PAGE = 200;

export const turn = ({ signal, parameters: [id, digits] }) => {
  const number = Number(digits);
  const heading = element('h1', { id: 'title', tabindex: -1 }, `Turn ${number}`);
  const about = element('p', { class: 'sub' });
  const near = element('nav', { class: 'near', 'aria-label': 'Turns' });
  const place = element('div');
  const section = element('section', { data: { view: 'turn' }, 'aria-labelledby': 'title' },
    element('p', { class: 'crumbs' }, backToList(), ' / ', element('a', { href: conversationLink(id) }, 'This conversation')),
    element('div', { class: 'heading' }, element('div', {}, heading, about), near), place);

  const show = answer => {
    const { conversation, turn: one } = answer;
    say(heading, `Turn ${count(number)} of ${count(answer.turns_total)}`);
    about.replaceChildren(conversation.name, ' · ', timeOf(one.at), ` · ${one.route} · ${one.model} · ${one.strategy} · `, outcomeBadge(one),
      one.degraded ? badge(`degraded: ${one.degraded}`, 'warn') : '', one.observed ? badge('observed only', '', 'nothing was edited') : '');
    near.replaceChildren(
      number > 1 ? element('a', { class: 'button', href: turnLink(id, number - 1), rel: 'prev' }, '← Previous turn') : '',
      number < answer.turns_total ? element('a', { class: 'button', href: turnLink(id, number + 1), rel: 'next' }, 'Next turn →') : '');
    const cause = answer.cause === null ? null : element('p', { class: 'cause' }, element('b', {}, 'Why: '), answer.cause);
    const summary = answer.summary === null ? null : element('div', { class: 'panel' }, element('h2', {}, 'The summary as it stood'), summaryBody(answer.summary));
    const times = element('div', { class: 'panel' }, element('h2', {}, 'Time and cost'), figures(one));
    const parts = [answer.explanation ? planOf(answer, read, cause) : recorded(answer, cause), summary, times];
    keepFocus(place, () => place.replaceChildren(...parts.filter(part => part !== null)), '.pager button:enabled');
  };

  const read = (offset = 0) => attempt(signal, async () => {
    show(await persist(signal, () => get(`/api/conversations/${id}/turns/${number}`, { offset, limit: PAGE }, signal)));
  }, error => {
    if (error.status === 404) say(heading, 'This turn does not exist');
    place.replaceChildren(problem(error, error.status === 404 ? null : () => read(offset), backToList()));
  });

  read();
  return { section, title: `Turn ${number}, conversation ${id.slice(0, 8)}` };
};

const sentence = one => {
  if (isRefused(one)) return `${count(one.tokens_before)} tokens were sent and refused; nothing was forwarded.`;
  const edits = [
    one.masked.length > 0 && `${plural(one.masked.length, 'message')} masked`,
    one.folded > 0 && `${plural(one.folded, 'message')} folded`,
    one.dropped > 0 && `${plural(one.dropped, 'message')} dropped`,
  ].filter(Boolean);
  return `${count(one.tokens_before)} tokens were sent, ${count(forwardedOf(one))} forwarded (${saving(one.tokens_before, forwardedOf(one))}): ${edits.length === 0 ? 'nothing was edited' : one.observed ? `nothing was edited, else ${edits.join(', ')}` : edits.join(', ')}.`;
};

// Without the messages the figures of the turn still tell what was decided.
const recorded = ({ turn: one, missing }, cause) => element('div', { class: 'plan' },
  element('p', { class: 'verdict', data: { ending: isRefused(one) ? 'refused' : 'recorded' } }, sentence(one)),
  cause,
  missing === null ? null : element('p', { class: 'empty slim', data: { missing: '' } }, missing),
  element('div', { class: 'split even' },
    element('div', { class: 'panel' }, element('h2', {}, 'Budget'), budgetLines({
      window: one.window, safe: one.safe, output: one.output, overhead: one.overhead, input: one.budget, before: one.tokens_before,
      used: isRefused(one) ? one.tokens_before : forwardedOf(one),
    })),
    element('div', { class: 'panel' }, element('h2', {}, 'Edits'), pairs([
      ['messages', count(one.messages)],
      ['masked', one.masked.length > 0 ? `${count(one.masked.length)} (${one.masked.join(', ')}), ${plural(one.saved_by_masking, 'token')} saved` : 'none'],
      ['postponed', one.postponed > 0 ? plural(one.postponed, 'message') : 'none'],
      ['folded', one.folded > 0 ? `${count(one.folded)}, ${plural(one.folded_tokens, 'token')}` : 'none'],
      ['dropped', one.dropped > 0 ? `${count(one.dropped)}, ${plural(one.dropped_tokens, 'token')}` : 'none'],
      ['summary', one.summary_tokens > 0 ? plural(one.summary_tokens, 'token') : 'none'],
    ]))));

const pairs = facts => element('dl', { class: 'pairs' }, facts.map(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));

const figures = one => element('dl', { class: 'facts plain' }, details(one).map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));

const details = one => [
  ['request id', element('code', {}, one.request_id)],
  ['first byte', millis(one.first_byte_ms)], ['whole answer', millis(one.duration_ms)], ['added by Tidegate', micros(one.overhead_us)],
  ['prompt tokens', count(one.prompt_tokens)], ['of them cached', `${count(one.cached_tokens)} (${percent(one.cached_tokens, one.prompt_tokens)})`],
  ['completion tokens', count(one.completion_tokens)],
  ['billed', money(one.cost_usd)], ['as sent', money(one.unedited_cost_usd)], ['avoided', worth(avoided(one))],
  ['trigger', one.trigger ?? 'none'],
  ['stop hint', one.stop_hint === null ? 'none' : `nothing new for ${plural(one.stop_hint, 'turn')}`],
  ...(one.blocks ? [['blocks', `memory ${count(one.blocks.memory_before)} → ${count(one.blocks.memory_after)}, summary ${count(one.blocks.summary_before)} → ${count(one.blocks.summary_after)}, history ${count(one.blocks.history_before)} → ${count(one.blocks.history_after)}${one.blocks.fell_back_to_words ? '; counted in words' : ''}`],
    ['repeated lines left out', count(one.blocks.removed_lines)]] : []),
];
