// The configuration as it is in force: each value, and where it came from.
import { attempt, get, persist } from '../api.js';
import { badge, check, element, field, offer, say, scrollBox } from '../dom.js';
import { count, timeOf } from '../format.js';
import { table } from '../table.js';
import { problem } from './notice.js';

const OUTCOMES = { started: ['started with it', 'good'], reloaded: ['reloaded', 'good'], rejected: ['rejected: the one before stays in force', 'bad'] };
const KINDS = { default: '', profile: 'fold', file: 'info', environment: 'mask', flag: 'warn' };

export const configuration = ({ signal }) => {
  let config = null;
  const words = element('input', { type: 'search', id: 'filter', autocomplete: 'off', spellcheck: 'false', placeholder: 'key, value or origin', on: { input: () => show() } });
  const own = element('input', { type: 'checkbox', id: 'only-set', on: { change: () => show() } });
  const route = element('select', { id: 'route', on: { change: () => show() } });
  const notice = element('div');
  const reload = element('div', { class: 'panel', data: { part: 'reload' } });
  const found = element('p', { class: 'note', role: 'status' });
  const heading = element('h2');
  const values = valueTable('Values of the route');
  const whole = valueTable('Values of the whole process');
  const content = element('div', { hidden: true }, reload,
    element('div', { class: 'controls' }, field('Route', route), element('div', { class: 'grow' }, field('Filter', words)), check('only what is not a default', own)),
    found,
    element('div', { class: 'panel', data: { part: 'route' } }, heading, scrollBox('Values of the route', values.node)),
    element('div', { class: 'panel', data: { part: 'process' } }, element('h2', {}, 'The whole process'), scrollBox('Values of the whole process', whole.node)));
  const section = element('section', { data: { view: 'configuration' }, 'aria-labelledby': 'title' },
    element('div', { class: 'heading' }, element('h1', { id: 'title', tabindex: -1 }, 'Configuration'), element('p', { class: 'sub' }, 'Every value in force, and where it came from.')),
    notice, content);

  const show = () => {
    const wanted = words.value.trim().toLowerCase();
    const fits = ({ key, value, origin }) => (!own.checked || origin.kind !== 'default')
      && `${key} ${value} ${origin.text}`.toLowerCase().includes(wanted);
    const one = config.routes.find(({ name }) => name === route.value) ?? config.routes[0];
    const [ofRoute, ofAll] = [one?.values ?? [], config.process].map(all => all.filter(fits));
    say(heading, one ? `Route ${one.name}, upstream ${one.upstream}` : 'No route');
    values.update(ofRoute);
    whole.update(ofAll);
    say(found, `${count(ofRoute.length + ofAll.length)} of ${count((one?.values.length ?? 0) + config.process.length)} values`);
  };

  const read = () => attempt(signal, async () => {
    config = await persist(signal, () => get('/api/config', {}, signal));
    offer(route, config.routes.map(({ name }) => [name, name]));
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
    element('h2', {}, 'The last load'),
    element('p', {}, file === null ? 'No file: defaults, environment and flags.' : ['File ', element('code', {}, file), '.'], ' ', timeOf(reload.at), ' ', badge(text, tone),
      reload.needs_restart ? badge('some changes need a restart', 'warn') : null),
    reload.errors === null ? null : element('pre', { class: 'wrap', role: 'alert', tabindex: 0, 'aria-label': 'Errors' }, reload.errors),
    warnings.length === 0 ? element('p', { class: 'note' }, 'No warnings.')
      : element('div', {}, element('h3', {}, 'Warnings'), element('ul', { class: 'warnings' }, warnings.map(warning => element('li', {}, warning)))),
  ].filter(part => part !== null));
};

const valueTable = caption => table({
  caption, cards: true, key: row => row.key, attributes: row => ({ data: { key: row.key, origin: row.origin.kind } }),
  columns: [
    { label: 'Key', head: true, kind: 'key', sign: row => row.key, of: row => element('code', {}, row.key) },
    { label: 'Value', kind: 'value', sign: row => row.value, of: row => element('code', {}, row.value) },
    { label: 'Where it came from', kind: 'origin', sign: row => `${row.origin.kind} ${row.origin.text}`, of: row => [badge(row.origin.kind, KINDS[row.origin.kind] ?? ''), ' ', row.origin.text === row.origin.kind ? '' : row.origin.text] },
  ],
});
