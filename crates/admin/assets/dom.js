// The only place that creates elements. All text is inserted as text nodes, never as markup, so that markup in a
// conversation is inert.

const SVG = 'http://www.w3.org/2000/svg';

// Data from the API must not decide where a link leads: only views of this page and its API are allowed.
const OWN_LINK = /^(#|\/api\/)/;

const set = (node, key, value) => {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith('on') || key === 'style' || key === 'src') throw new Error(`attribute \`${key}\` is not allowed`);
  if (key === 'href' && !OWN_LINK.test(value)) throw new Error('links may only point to this page or its API');
  node.setAttribute(key, value === true ? '' : String(value));
};

const fill = (node, properties, children) => {
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'on') for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (key === 'data') for (const [name, content] of Object.entries(value)) set(node, `data-${name}`, content);
    else set(node, key, value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return node;
};

/** Creates an element: attributes, `on` for listeners, `data` for data attributes, then children (strings become text). */
export const element = (name, properties = {}, ...children) => fill(document.createElement(name), properties, children);

/** Creates an SVG element. */
export const svg = (name, properties = {}, ...children) => fill(document.createElementNS(SVG, name), properties, children);

/** Text for screen readers only. */
export const screenReaderOnly = text => element('span', { class: 'unseen' }, text);

/** A box that scrolls horizontally, so that the page never does; a `tall` one also scrolls vertically. It is focusable, because a keyboard could not scroll it otherwise. */
export const scrollBox = (label, child, { tall = false } = {}) => element('div', { class: tall ? 'scroll tall' : 'scroll', role: 'region', 'aria-label': label, tabindex: 0 }, child);

/** Sets the text only if it differs, so that live regions and selections are not disturbed. */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** A small coloured label. `tone` is a class in app.css; the text conveys the same as the colour. */
export const badge = (text, tone = '', title = null) => element('span', { class: `badge ${tone}`, title }, text);

let lastId = 0;

/** A unique id that ties a label to its control. */
const uniqueId = prefix => `${prefix}-${lastId += 1}`;

/** A label with its control below it. */
export const field = (label, control, hint = null) => {
  control.id ||= uniqueId('field');
  return element('div', { class: 'field' }, element('label', { for: control.id }, label), control, hint);
};

/** A checkbox with its label. */
export const check = (label, box) => element('label', { class: 'check' }, box, label);

/** Fills a select with [value, text] pairs. Keeps the current choice, even if it is no longer among them. */
export const setOptions = (select, choices) => {
  const chosen = select.value;
  const all = choices.some(([value]) => value === chosen) || chosen === '' ? choices : [...choices, [chosen, chosen]];
  const same = all.length === select.options.length && all.every(([value, text], i) => select.options[i].value === value && select.options[i].text === text);
  if (same) return;
  select.replaceChildren(...all.map(([value, text]) => element('option', { value }, text)));
  select.value = all.some(([value]) => value === chosen) ? chosen : all[0]?.[0] ?? '';
};

/** Enables or disables a button. If the disabled button has the focus, `other` gets it; otherwise it would jump to the top of the page. */
export const setDisabled = (button, isDisabled, other) => {
  const hadFocus = document.activeElement === button;
  button.disabled = isDisabled;
  if (hadFocus && isDisabled && !other.disabled) other.focus();
};

/** Renders and returns the focus to the control in `place` with the same id, or to `fallback` if it is disabled or gone. */
export const keepFocus = (place, render, fallback) => {
  const id = place.contains(document.activeElement) ? document.activeElement.id : '';
  render();
  if (id === '') return;
  const same = document.getElementById(id);
  (same && !same.disabled ? same : place.querySelector(fallback))?.focus({ preventScroll: true });
};
