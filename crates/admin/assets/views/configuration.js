// The active configuration: each value and its origin, and the context windows that upstreams have named.
import { attempt, get, retryWhileUnreachable } from '../api.js';
import { badge, check, element, field, setOptions, setText, scrollBox } from '../dom.js';
import { count, timeOf } from '../format.js';
import { table } from '../table.js';
import { problem } from './notice.js';

const OUTCOMES = { started: ['loaded at start', 'good'], reloaded: ['reloaded', 'good'], rejected: ['rejected: the previous configuration stays active', 'bad'] };
const KINDS = { default: '', profile: 'fold', file: 'info', environment: 'mask', flag: 'warn' };

export const configuration = ({ signal }) => {
  let config = null;
  const filter = element('input', { type: 'search', id: 'filter', autocomplete: 'off', spellcheck: 'false', placeholder: 'key, value or origin', on: { input: () => show() } });
  const onlySet = element('input', { type: 'checkbox', id: 'only-set', on: { change: () => show() } });
  const route = element('select', { id: 'route', on: { change: () => show() } });
  const notice = element('div');
  const reload = element('div', { class: 'panel', data: { part: 'reload' } });
  const matches = element('p', { class: 'note', role: 'status' });
  const heading = element('h2');
  const routeValues = valueTable('Values of the route');
  const processValues = valueTable('Values of the process');
  const windows = windowTable();
  const content = element('div', { hidden: true }, reload,
    element('div', { class: 'controls' }, field('Route', route), element('div', { class: 'grow' }, field('Filter', filter)), check('only non-default values', onlySet)),
    matches,
    element('div', { class: 'panel', data: { part: 'route' } }, heading, scrollBox('Values of the route', routeValues.node)),
    element('div', { class: 'panel', data: { part: 'process' } }, element('h2', {}, 'Process'), scrollBox('Values of the process', processValues.node)),
    windows.node);
  const section = element('section', { data: { view: 'configuration' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' }, element('h1', { id: 'title', tabindex: -1 }, 'Configuration'), element('p', { class: 'sub' }, 'Every active value and its origin.')),
    notice, content);

  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    const isShown = ({ key, value, origin }) => (!onlySet.checked || origin.kind !== 'default')
      && `${key} ${value} ${origin.text}`.toLowerCase().includes(wanted);
    const selected = config.routes.find(({ name }) => name === route.value) ?? config.routes[0];
    const [ofRoute, ofProcess] = [selected?.values ?? [], config.process].map(all => all.filter(isShown));
    setText(heading, selected ? `Route ${selected.name}, upstream ${selected.upstream}` : 'No route');
    routeValues.update(ofRoute);
    processValues.update(ofProcess);
    setText(matches, `${count(ofRoute.length + ofProcess.length)} of ${count((selected?.values.length ?? 0) + config.process.length)} values`);
  };

  const read = () => attempt(signal, async () => {
    config = await retryWhileUnreachable(signal, () => get('/api/config', {}, signal));
    windows.update((await get('/api/windows', {}, signal)).windows);
    setOptions(route, config.routes.map(({ name }) => [name, name]));
    showReload(reload, config);
    notice.replaceChildren();
    content.hidden = false;
    show();
  }, error => notice.replaceChildren(problem(error, read)));

  read();
  return { section, title: 'Configuration' };
};

const showReload = (place, { file, reload, warnings }) => {
  const [text, tone] = OUTCOMES[reload.outcome] ?? [reload.outcome, ''];
  place.replaceChildren(...[
    element('h2', {}, 'Last load'),
    element('p', {}, file === null ? 'No file: values come from defaults, the environment and flags.' : ['File ', element('code', {}, file), '.'], ' ', timeOf(reload.at), ' ', badge(text, tone),
      reload.needs_restart ? badge('some changes need a restart', 'warn') : null),
    reload.errors === null ? null : element('pre', { class: 'wrap', role: 'alert', tabindex: 0, 'aria-label': 'Errors' }, reload.errors),
    warnings.length === 0 ? element('p', { class: 'note' }, 'No warnings.')
      : element('div', {}, element('h3', {}, 'Warnings'), element('ul', { class: 'warnings' }, warnings.map(warning => element('li', {}, warning)))),
  ].filter(part => part !== null));
};

const windowTable = () => {
  const rows = table({
    caption: 'Learnt context windows', key: row => `${row.upstream} ${row.model}`,
    columns: [
      { label: 'Upstream', head: true, of: row => row.upstream },
      { label: 'Model', of: row => row.model },
      { label: 'Tokens', kind: 'number', of: row => count(row.window) },
    ],
  });
  const empty = element('p', { class: 'note' }, 'No upstream has named a window yet, in an overflow error or in its list of models.');
  const node = element('div', { class: 'panel', data: { part: 'windows' } }, element('h2', {}, 'Learnt context windows'), empty, scrollBox('Learnt context windows', rows.node));
  const update = all => {
    empty.hidden = all.length > 0;
    rows.node.hidden = all.length === 0;
    rows.update(all);
  };
  return { node, update };
};

const valueTable = caption => table({
  caption, cards: true, key: row => row.key, attributes: row => ({ data: { key: row.key, origin: row.origin.kind } }),
  columns: [
    { label: 'Key', head: true, kind: 'key', sign: row => row.key, of: row => element('code', {}, row.key) },
    { label: 'Value', kind: 'value', sign: row => row.value, of: row => element('code', {}, row.value) },
    { label: 'Origin', kind: 'origin', sign: row => `${row.origin.kind} ${row.origin.text}`, of: row => [badge(row.origin.kind, KINDS[row.origin.kind] ?? ''), ' ', row.origin.text === row.origin.kind ? '' : row.origin.text] },
  ],
});
