// A table that is updated in place: rows are identified by a key, and a cell is only rebuilt when its content changed.
// This preserves the focus, the selection and the scroll position during live updates.
import { element } from './dom.js';

/**
 * Columns are { label, of, sign, kind, head, title }: `of(row)` returns a text, a node or a list of them; `sign(row)` returns
 * the value it depends on (required if `of` returns nodes); `kind` is a class such as `number`; `head` makes it the row header.
 * A column with `sort` (the name of an order) has a button as its header. `order` is { current, choose }: the column and the direction,
 * and what to call with new ones. A column of words, with `ascending`, begins with A, others with the largest; a second click turns it.
 * With `cards`, narrow screens show each row as a card; the roles keep it a table for screen readers.
 */
export const table = ({ caption, columns, key, attributes = () => ({}), cards = false, order = null }) => {
  const turned = ({ sort, ascending }) => {
    const now = order.current();
    if (now.sort !== sort) return [sort, ascending ? 'asc' : 'desc'];
    return [sort, now.direction === 'asc' ? 'desc' : 'asc'];
  };
  const role = name => (cards ? name : null);
  const head = element('tr', { role: role('row') }, columns.map(column =>
    element('th', { scope: 'col', class: column.kind, role: role('columnheader'), title: column.title, data: { sort: column.sort } }, column.sort && order
      ? element('button', { type: 'button', class: 'as-link sorter', on: { click: () => { order.choose(...turned(column)); showOrder(); } } }, column.label) : column.label)));
  const body = element('tbody', { role: role('rowgroup') });
  const node = element('table', { class: cards ? 'cards' : null, role: role('table') },
    element('caption', { class: 'unseen' }, caption),
    element('thead', { role: role('rowgroup') }, head), body);
  const known = new Map();
  const showOrder = () => {
    for (const cell of head.querySelectorAll('[data-sort]')) {
      const { sort, direction } = order.current();
      if (cell.dataset.sort === sort) cell.setAttribute('aria-sort', direction === 'asc' ? 'ascending' : 'descending');
      else cell.removeAttribute('aria-sort');
    }
  };
  if (order) showOrder();

  const make = row => {
    const cells = columns.map(column => (column.head
      ? element('th', { scope: 'row', class: column.kind, role: role('rowheader'), data: { label: column.label } })
      : element('td', { class: column.kind, role: role('cell'), data: { label: column.label } })));
    return { line: element('tr', { role: role('row'), ...attributes(row) }, cells), cells, signs: [] };
  };

  const refresh = ({ line, cells, signs }, row) => {
    columns.forEach((column, place) => {
      const sign = column.sign ? column.sign(row) : column.of(row);
      if (signs[place] === sign) return;
      signs[place] = sign;
      cells[place].replaceChildren(...[column.of(row)].flat().filter(part => part !== null));
    });
    return line;
  };

  const update = rows => {
    const present = new Set(rows.map(key));
    for (const [name, { line }] of known) {
      if (present.has(name)) continue;
      line.remove();
      known.delete(name);
    }
    rows.forEach((row, place) => {
      const name = key(row);
      if (!known.has(name)) known.set(name, make(row));
      const line = refresh(known.get(name), row);
      // Moving a row takes the focus from it, so only misplaced rows are moved.
      if (body.children[place] !== line) body.insertBefore(line, body.children[place] ?? null);
    });
  };

  return { node, update, showOrder };
};
