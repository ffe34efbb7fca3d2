// A summary: its text and its lists of facts, goals, decisions and so on.
import { element } from '../dom.js';
import { count, plural, timeOf } from '../format.js';

const LISTS = [
  ['key_facts', 'Key facts'], ['goals', 'Goals'], ['decisions', 'Decisions'], ['open_questions', 'Open questions'],
  ['action_items', 'Action items'], ['artifacts', 'Artifacts'],
];
const textOf = item => (typeof item === 'string' ? item : item?.text ?? JSON.stringify(item));

/** The body of one fold. */
export const summaryBody = fold => {
  const about = element('p', { class: 'note' }, `covers ${plural(fold.covered, 'message')}, by ${fold.author}, `, timeOf(fold.at),
    fold.calls > 0 ? `, ${plural(fold.calls, 'call')}: ${count(fold.prompt_tokens)} prompt and ${count(fold.completion_tokens)} completion tokens` : '');
  if (fold.summary === null) return element('div', { class: 'summary' }, about, element('p', {}, 'Its text is not recorded.'));
  const lists = LISTS.map(([key, title]) => [title, fold.summary[key] ?? []]).filter(([, items]) => items.length > 0);
  return element('div', { class: 'summary' }, about,
    fold.summary.summary_text ? element('p', { class: 'words' }, fold.summary.summary_text) : null,
    element('div', { class: 'lists' }, lists.map(([title, items]) => element('div', {}, element('h3', {}, title), element('ul', {}, items.map(item => element('li', {}, textOf(item))))))));
};

/** All summaries of a conversation, newest first, collapsible. */
export const folds = () => {
  const none = element('p', { class: 'note' }, 'No summaries.');
  const node = element('div', { class: 'folds' }, none);
  let sign = null;
  const update = all => {
    const next = all.map(fold => `${fold.covers} ${fold.at}`).join();
    if (next === sign) return;
    sign = next;
    const newest = [...all].sort((a, b) => b.at - a.at);
    node.replaceChildren(...(newest.length === 0 ? [none] : newest.map((fold, index) => element('details', { open: index === 0, data: { fold: fold.covers } },
      element('summary', {}, `${plural(fold.covered, 'message')} covered, `, timeOf(fold.at)), summaryBody(fold)))));
  };
  return { node, update };
};
