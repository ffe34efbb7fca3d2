// The strip: one column per turn. The whole column is what the client sent; its lower part is what was forwarded, and
// above it is what was masked, trimmed, folded and dropped.
import { turnLink } from '../address.js';
import { element, svg } from '../dom.js';
import { count, percent, plural, short } from '../format.js';

const HEIGHT = 240, TOP = 22, BOTTOM = 24, AXIS = 54;
// Wide enough for a finger, wider if there is room; longer conversations scroll.
const NARROW = 24, WIDE = 44, GAP = 3;
const LEGEND = [
  ['kept', 'forwarded'], ['cached', 'forwarded, cached'], ['own', 'summary'], ['masked', 'masked'], ['trimmed', 'trimmed'], ['folded', 'folded'], ['dropped', 'dropped'],
  ['refused', '✕ refused: nothing forwarded'], ['degraded', '▲ degraded'],
];

/** The forwarded tokens: the plan of an observed turn was not applied. */
export const forwardedOf = turn => (turn.observed ? turn.tokens_before : turn.tokens_after);

export const isRefused = turn => turn.overflow_rejected || turn.outcome === 'refused';

/** The parts of a column in tokens, bottom up. The tokens left out are divided proportionally, so that the parts add up to what was sent. */
const partsOf = turn => {
  if (isRefused(turn)) return [['refused', turn.tokens_before]];
  const forwarded = forwardedOf(turn);
  const summary = turn.observed ? 0 : Math.min(turn.summary_tokens, forwarded);
  const hit = turn.prompt_tokens > 0 ? Math.min(1, turn.cached_tokens / turn.prompt_tokens) : 0;
  const cached = Math.min(hit * forwarded, forwarded - summary);
  const out = Math.max(0, turn.tokens_before - forwarded);
  const reasons = [['masked', turn.saved_by_masking], ['trimmed', turn.saved_by_trimming], ['folded', turn.folded_tokens], ['dropped', turn.dropped_tokens]];
  const total = reasons.reduce((sum, [, tokens]) => sum + tokens, 0);
  return [['cached', cached], ['kept', forwarded - summary - cached], ['own', summary],
    ...reasons.map(([name, tokens]) => [name, total > 0 ? out * tokens / total : 0])].filter(([, tokens]) => tokens > 0);
};

/** The description of a column, used as a tooltip and for screen readers. */
const describe = (turn, number) => [
  `Turn ${number}: ${count(turn.tokens_before)} tokens sent`,
  isRefused(turn) ? 'refused, nothing forwarded' : `${count(forwardedOf(turn))} forwarded`,
  !turn.observed && turn.summary_tokens > 0 && `${count(turn.summary_tokens)} of them summary`,
  turn.cached_tokens > 0 && `${percent(turn.cached_tokens, turn.prompt_tokens)} cached`,
  !turn.observed && turn.masked.length > 0 && `${count(turn.masked.length)} masked`,
  !turn.observed && turn.trimmed.length > 0 && `${count(turn.trimmed.length)} trimmed`,
  !turn.observed && turn.folded > 0 && `${count(turn.folded)} folded`,
  !turn.observed && turn.dropped > 0 && `${count(turn.dropped)} dropped`,
  turn.degraded && `degraded: ${turn.degraded}`,
  turn.observed && `observed only: ${count(turn.tokens_after)} would have been forwarded`,
  turn.stop_hint !== null && `stop hint: no progress for ${plural(turn.stop_hint, 'turn')}`,
].filter(Boolean);

const axisStep = max => {
  const rough = max / 4 || 1, base = 10 ** Math.floor(Math.log10(rough));
  return Math.max(1, [1, 2, 5, 10].map(factor => factor * base).find(size => size >= rough));
};

export const strip = (id, signal) => {
  const axis = svg('svg', { class: 'axis-labels', width: AXIS, height: HEIGHT, 'aria-hidden': 'true' });
  const drawing = svg('svg', { class: 'columns', height: HEIGHT, role: 'group', 'aria-label': 'Turns; use the arrow keys to move and Enter to open one' });
  const box = element('div', { class: 'strip-scroll' }, drawing);
  const budget = element('span');
  const legend = element('ul', { class: 'legend' },
    LEGEND.map(([name, text]) => element('li', {}, element('i', { class: `mark ${name}`, 'aria-hidden': 'true' }), text)),
    element('li', {}, element('i', { class: 'mark budget', 'aria-hidden': 'true' }), budget));
  const tip = element('div', { class: 'tip', hidden: true, 'aria-hidden': 'true' });
  const none = element('p', { class: 'note' }, 'No recorded turns.');
  const node = element('div', { class: 'strip' }, none, element('div', { class: 'strip-frame' }, axis, box), legend, tip);
  let current = null, sign = '', wide = NARROW;

  const show = (column, lines) => {
    tip.textContent = lines.join('\n');
    tip.hidden = false;
    const [place, size] = [column.getBoundingClientRect(), tip.getBoundingClientRect()];
    tip.style.left = `${Math.max(8, Math.min(place.right + 8, innerWidth - size.width - 8))}px`;
    tip.style.top = `${Math.max(8, Math.min(place.top, innerHeight - size.height - 8))}px`;
  };
  const hide = () => { tip.hidden = true; };

  const columnFor = (columns, from, key) => {
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: columns.length - 1 }[key];
    return to === undefined ? null : columns[Math.max(0, Math.min(columns.length - 1, to))];
  };
  drawing.addEventListener('keydown', event => {
    if (event.key === 'Escape') hide();
    const columns = [...drawing.querySelectorAll('a')];
    const target = columnFor(columns, columns.indexOf(event.target), event.key);
    if (!target) return;
    event.preventDefault();
    target.focus();
  });
  addEventListener('scroll', hide, { signal, passive: true, capture: true });

  const draw = (turns, offset) => {
    const sent = Math.max(1, ...turns.map(turn => Math.max(turn.tokens_before, isRefused(turn) ? 0 : forwardedOf(turn))));
    const limit = turns.at(-1).budget;
    // The scale includes the budget only if it is near; otherwise the columns would be too small to see.
    const fits = limit > 0 && limit <= sent * 1.6;
    const max = Math.max(sent, ...turns.map(turn => (fits && turn.budget <= sent * 1.6 ? turn.budget : 0)));
    const y = tokens => HEIGHT - BOTTOM - tokens / max * (HEIGHT - TOP - BOTTOM);
    wide = Math.max(NARROW, Math.min(WIDE, Math.floor(box.clientWidth / turns.length)));
    const width = turns.length * wide;
    budget.textContent = limit === 0 ? 'no budget: the window is unknown' : fits ? `budget: ${count(limit)} tokens` : `budget: ${count(limit)} tokens, above the scale`;
    axis.replaceChildren(svg('text', { x: AXIS - 6, y: 12, 'text-anchor': 'end' }, 'tokens'));
    drawing.replaceChildren(hatch());
    drawing.setAttribute('width', width);
    for (let tokens = 0, step = axisStep(max); tokens <= max; tokens += step) {
      axis.append(svg('text', { x: AXIS - 6, y: y(tokens) + 4, 'text-anchor': 'end' }, short(tokens)));
      drawing.append(svg('line', { class: 'grid', x1: 0, x2: width, y1: y(tokens), y2: y(tokens) }));
    }
    turns.forEach((turn, place) => drawing.append(column(turn, place, offset + place + 1, y)));
    if (fits) {
      // The line is interrupted where a model's window is unknown, and with it the budget.
      const path = turns.map((turn, place) => (turn.budget === 0 ? '' : `${place > 0 && turns[place - 1].budget > 0 ? 'L' : 'M'}${place * wide} ${y(turn.budget)}H${(place + 1) * wide}`)).join('');
      drawing.append(svg('path', { class: 'budget', d: path }));
    }
  };

  const column = (turn, place, number, y) => {
    const x = place * wide, lines = describe(turn, number);
    const made = svg('a', {
      href: turnLink(id, number), 'aria-label': lines.join(', '), tabindex: -1, class: turn.observed ? 'column observed' : 'column', data: { turn: number },
      on: {
        pointerenter: () => show(made, lines), pointerleave: hide, blur: hide,
        focus: () => { select(made); show(made, lines); },
      },
    }, svg('rect', { class: 'hit', x, y: 2, width: wide, height: HEIGHT - 4, rx: 3 }));
    let below = 0;
    for (const [name, tokens] of partsOf(turn)) {
      const [from, to] = [y(below), y(below + tokens)];
      below += tokens;
      made.append(svg('rect', { class: name, x: x + GAP / 2, y: to, width: wide - GAP, height: Math.max(0.5, from - to) }));
      if (name === 'cached') made.append(svg('rect', { fill: 'url(#hatch)', x: x + GAP / 2, y: to, width: wide - GAP, height: Math.max(0.5, from - to) }));
    }
    const sign = isRefused(turn) ? ['✕', 'refused-sign'] : turn.degraded ? ['▲', 'degraded-sign'] : null;
    if (sign) made.append(svg('text', { class: sign[1], x: x + wide / 2, y: y(below) - 5, 'text-anchor': 'middle' }, sign[0]));
    if (number % 5 === 0) made.append(svg('text', { x: x + wide / 2, y: HEIGHT - 8, 'text-anchor': 'middle' }, String(number)));
    return made;
  };

  const select = column => {
    drawing.querySelector('a[tabindex="0"]')?.setAttribute('tabindex', '-1');
    column.setAttribute('tabindex', '0');
    current = column.dataset.turn;
  };

  const update = (turns, offset) => {
    none.hidden = turns.length > 0;
    legend.hidden = turns.length === 0;
    box.parentNode.hidden = turns.length === 0;
    const next = `${offset} ${turns.length} ${turns.at(-1)?.at} ${turns.at(-1)?.completion_tokens}`;
    if (next === sign || turns.length === 0) return;
    const first = sign === '';
    const atEnd = first || box.scrollLeft + box.clientWidth >= box.scrollWidth - wide;
    sign = next;
    const focused = drawing.contains(document.activeElement);
    draw(turns, offset);
    const columns = [...drawing.querySelectorAll('a')];
    const kept = columns.find(column => column.dataset.turn === current) ?? columns.at(-1);
    select(kept);
    if (focused) kept.focus({ preventScroll: true });
    // New turns appear at the end, so the strip stays there unless the user has scrolled away.
    if (atEnd) requestAnimationFrame(() => { box.scrollLeft = box.scrollWidth; });
  };

  return { node, update };
};

// Hatches the cached part, so that it is distinguishable without colour.
const hatch = () => svg('defs', {}, svg('pattern', { id: 'hatch', width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
  svg('line', { class: 'hatch', x1: 0, y1: 0, x2: 0, y2: 5 })));
