// The one place where elements are made. Every text goes in as a text node, never as markup, so that a
// conversation full of markup is only read.

const SVG = 'http://www.w3.org/2000/svg';

// What comes from the API never decides where a link leads: only views of this page and our own API are allowed.
const OWN_LINK = /^(#|\/api\/)/;

const set = (node, key, value) => {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith('on') || key === 'style' || key === 'src') throw new Error(`attribute \`${key}\` is not for markup`);
  if (key === 'href' && !OWN_LINK.test(value)) throw new Error('links lead to this page or its API only');
  node.setAttribute(key, value === true ? '' : String(value));
};

const fill = (node, properties, children) => {
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'on') for (const [event, heard] of Object.entries(value)) node.addEventListener(event, heard);
    else if (key === 'data') for (const [name, what] of Object.entries(value)) set(node, `data-${name}`, what);
    else set(node, key, value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return node;
};

/** Makes an element: attributes, `on` for listeners, `data` for data attributes, then children (strings become text). */
export const element = (name, properties = {}, ...children) => fill(document.createElement(name), properties, children);

/** The same in SVG. */
export const svg = (name, properties = {}, ...children) => fill(document.createElementNS(SVG, name), properties, children);

/** Text for screen readers only. */
export const unseen = text => element('span', { class: 'unseen' }, text);

/** A box that scrolls sideways on its own, so that the page never does; a `tall` one also downwards. It takes the focus, else a keyboard could not scroll it. */
export const scrollBox = (label, child, { tall = false } = {}) => element('div', { class: tall ? 'scroll tall' : 'scroll', role: 'region', 'aria-label': label, tabindex: 0 }, child);

/** Sets a text only if it differs: a live region or a selection is not disturbed by the same words again. */
export const say = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** A small coloured label. The tone is one of the classes in app.css; the words say the same as the colour. */
export const badge = (text, tone = '', title = null) => element('span', { class: `badge ${tone}`, title }, text);

let made = 0;

/** A fresh id, to tie a label to its control. */
const freshId = word => `${word}-${made += 1}`;

/** A label with its control below it. */
export const field = (label, control, hint = null) => {
  control.id ||= freshId('field');
  return element('div', { class: 'field' }, element('label', { for: control.id }, label), control, hint);
};

/** A checkbox with its words. */
export const check = (label, box) => element('label', { class: 'check' }, box, label);

/** Fills a select with [value, text] pairs and keeps what is chosen, even if it is not offered any more. */
export const offer = (select, choices) => {
  const chosen = select.value;
  const all = choices.some(([value]) => value === chosen) || chosen === '' ? choices : [...choices, [chosen, chosen]];
  const same = all.length === select.options.length && all.every(([value, text], i) => select.options[i].value === value && select.options[i].text === text);
  if (same) return;
  select.replaceChildren(...all.map(([value, text]) => element('option', { value }, text)));
  select.value = all.some(([value]) => value === chosen) ? chosen : all[0]?.[0] ?? '';
};

/** Disables a button or not. If it has the focus, `other` gets it: a disabled button would drop it to the top of the page. */
export const disable = (button, isOver, other) => {
  const had = document.activeElement === button;
  button.disabled = isOver;
  if (had && isOver && !other.disabled) other.focus();
};

/** Renders into `place` anew and gives the focus back to the control that has the same id; `fallback` gets it if that one is disabled or gone. */
export const keepFocus = (place, render, fallback) => {
  const id = place.contains(document.activeElement) ? document.activeElement.id : '';
  render();
  if (id === '') return;
  const same = document.getElementById(id);
  (same && !same.disabled ? same : place.querySelector(fallback))?.focus({ preventScroll: true });
};
