// What was changed in the messages, line by line.
import { element } from '../dom.js';
import { count, plural } from '../format.js';

// `ins` and `del` say to a screen reader what the sign and the colour say to the eye.
const TAGS = { '+': 'ins', '-': 'del', ' ': 'span' };
const SIGNS = { '+': '+', '-': '−', ' ': ' ' };

// Of a longer run of lines of one kind only the first ones are open: what a thousand lines were replaced by should be seen at once.
const LONG = 12, OPEN = 8;

const line = ({ op, text }) => element('div', { class: 'line', data: { op } },
  element('span', { class: 'gutter' }, SIGNS[op] ?? op), element(TAGS[op] ?? 'span', { class: 'words' }, text === '' ? ' ' : text));

const runsOf = lines => {
  const runs = [];
  for (const one of lines) {
    if (runs.at(-1)?.[0].op === one.op) runs.at(-1).push(one);
    else runs.push([one]);
  }
  return runs;
};

const run = lines => (lines.length <= LONG ? lines.map(line) : [
  ...lines.slice(0, OPEN).map(line),
  element('details', {}, element('summary', {}, `${count(lines.length - OPEN)} more lines`), lines.slice(OPEN).map(line)),
]);

const one = change => element('article', { class: 'change', data: { kind: change.kind, first: change.first } },
  element('h3', {}, change.title, element('span', { class: 'note' }, ` ${count(change.tokens_before)} → ${plural(change.tokens_after, 'token')}`)),
  element('div', { class: 'diff' }, runsOf(change.lines).map(run)),
  change.omitted > 0 ? element('p', { class: 'note' }, `${plural(change.omitted, 'further line')} not shown`) : null);

/** All changes, or a sentence that there are none. */
export const changesOf = changes => (changes.length === 0
  ? element('p', { class: 'note' }, 'Every message goes out as it was sent.')
  : element('div', { class: 'changes' }, changes.map(one)));
