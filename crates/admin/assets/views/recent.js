// The conversations that were active last, for the overview.
import { conversationLink } from '../address.js';
import { element } from '../dom.js';
import { ago, count, money, timeOf } from '../format.js';
import { table } from '../table.js';
import { avoidedOf, notes, savedOf, savedSign } from './conversations.js';
import { openingOf, openings } from './opening.js';

const SHOWN = 5;

/** `update(conversations)` shows the newest; `unknown(models)` names the models among them that are not in the model table. */
export const recent = signal => {
  let shown = [];
  const titles = openings(signal, () => rows.update(shown));
  const rows = table({
    caption: 'Conversations that were active last', key: row => row.id, cards: true, attributes: row => ({ data: { recent: row.id } }),
    columns: [
      { label: 'Conversation', head: true, kind: 'name', sign: row => `${row.name} ${titles.of(row)}`, of: row => [element('a', { href: conversationLink(row.id), title: row.name }, row.name), openingOf(titles.of(row))] },
      { label: 'Model', kind: 'word', of: row => row.model },
      { label: 'Turns', kind: 'number', of: row => count(row.turns) },
      { label: 'Saved', kind: 'number', title: 'of the prompt tokens', sign: savedSign, of: savedOf },
      { label: 'Billed', kind: 'number', of: row => money(row.cost_usd) },
      { label: 'Avoided', kind: 'number', sign: savedSign, of: avoidedOf },
      { label: 'Last seen', sign: row => ago(row.last), of: row => timeOf(row.last, ago(row.last)) },
      { label: 'Notes', kind: 'notes', sign: row => `${row.stop_hint} ${row.refusals} ${row.errors} ${row.degraded}`, of: notes },
    ],
  });
  const node = element('div', { class: 'panel', hidden: true }, element('h3', {}, 'Active last'), rows.node);
  let models = [];
  const update = conversations => {
    models = [...new Set(conversations.map(({ model }) => model))];
    node.hidden = conversations.length === 0;
    shown = conversations.slice(0, SHOWN);
    rows.update(shown);
    titles.read(shown);
  };
  return { node, update, unknown: known => models.filter(model => model !== '' && ![...known].some(name => model.startsWith(name))).slice(0, 4) };
};
