// The changes to messages, as a line diff.
import { element } from '../dom.js';
import { count, plural } from '../format.js';

// `ins` and `del` tell screen readers what the sign and the colour show.
const TAGS = { '+': 'ins', '-': 'del', ' ': 'span' };
const SIGNS = { '+': '+', '-': '−', ' ': ' ' };

// Longer runs of added or removed lines are collapsed, so that the replacement of a thousand lines is visible at once.
const MAX_RUN = 12, SHOWN = 8;

// A long text is cut where its own lines end: the break itself is the end of the line here.
const broken = text => text.replace(/(?<!\\)((?:\\\\)*)\\n$/, '$1');
const line = ({ op, text }) => element('div', { class: 'line', data: { op } },
  element('span', { class: 'gutter' }, SIGNS[op] ?? op), element(TAGS[op] ?? 'span', { class: 'words' }, text === '' ? ' ' : broken(text)));

const runsOf = lines => {
  const runs = [];
  for (const current of lines) {
    if (runs.at(-1)?.[0].op === current.op) runs.at(-1).push(current);
    else runs.push([current]);
  }
  return runs;
};

const run = lines => (lines.length <= MAX_RUN ? lines.map(line) : [
  ...lines.slice(0, SHOWN).map(line),
  element('details', {}, element('summary', {}, `${count(lines.length - SHOWN)} more lines`), lines.slice(SHOWN).map(line)),
]);

const article = change => element('article', { class: 'change', data: { kind: change.kind, first: change.first } },
  element('h3', {}, change.title, element('span', { class: 'note' }, ` ${count(change.tokens_before)} → ${plural(change.tokens_after, 'token')}`)),
  element('div', { class: 'diff' }, runsOf(change.lines).map(run)),
  change.omitted > 0 ? element('p', { class: 'note' }, `${plural(change.omitted, 'further line')} not shown`) : null);

/** All changes, or a note that there are none. */
export const changesOf = changes => (changes.length === 0
  ? element('p', { class: 'note' }, 'Every message is forwarded as sent.')
  : element('div', { class: 'changes' }, changes.map(article)));
