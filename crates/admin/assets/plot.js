// A small uPlot over time: colours from the style sheet, drawn again when the colour scheme or the width changes.
import { element } from './dom.js';
import { clockTime, exactClock } from './format.js';

const HEIGHT = 112;
// Steps of an axis that counts things: there is no half refusal.
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map(times => times * 10 ** power)).flat();
const scheme = matchMedia('(prefers-color-scheme: dark)');
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A time at the left edge would lie on the zero of the other axis.
const hours = (chart, splits) => splits.map(time => (chart.valToPos(time, 'x') < 18 ? '' : clockTime(time)));

// A value between two unknown ones is no line; it gets a dot.
const lonely = (chart, which) => {
  const values = chart.data[which];
  const known = values.flatMap((value, place) => (value === null || value === undefined ? [] : [place]));
  return known.length === 1 ? known : known.filter(place => !chart.series[which].spanGaps && values[place - 1] == null && values[place + 1] == null);
};

/**
 * Lines are { label, color: '--kept', filled, stepped, dashed }. `value` writes a number for the axis and the read-out.
 * `whole` keeps the axis to whole numbers, `most` belongs to it in any case. Returns { node, draw(times, columns, words, each) }; `words` is what a screen
 * reader says of the plot, `each` what one step is, in words.
 */
export const plot = (signal, lines, value, { whole = false, most = 0 } = {}) => {
  const values = lines.map(() => element('b'));
  const moment = element('span', { class: 'moment' });
  let each = '';
  const canvas = element('div', { class: 'canvas', role: 'img' });
  const keys = element('p', { class: 'keys' }, lines.map((line, place) => {
    const mark = element('i', { class: 'mark' });
    mark.style.background = `var(${line.color})`;
    return element('span', {}, mark, `${line.label} `, values[place]);
  }), moment);
  const node = element('div', { class: 'plot' }, canvas, keys);
  let chart = null, data = null;

  const axis = { font: '11px system-ui, sans-serif', ticks: { show: false }, gap: 4 };
  const options = width => ({
    width, height: HEIGHT, ms: 1, legend: { show: false }, padding: [6, 16, 0, 0],
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true },
      // Zero always belongs to the scale: half as much should look like half as much.
      y: { range: (_, low, high) => [Math.min(0, low ?? 0) * 1.05, Math.max(most, high ?? 0) * 1.05 || (low < 0 ? 0 : 1)] },
    },
    axes: [
      { ...axis, stroke: css('--dim'), grid: { show: false }, size: 20, space: 46, values: hours },
      { ...axis, stroke: css('--dim'), grid: { stroke: css('--grid'), width: 1 }, size: 52, space: 26, incrs: whole ? WHOLE : undefined, values: (_, splits) => splits.map(value) },
    ],
    series: [{}, ...lines.map(line => ({
      label: line.label, stroke: css(line.color), width: 1.5, spanGaps: !line.stepped, points: { show: true, size: 5, fill: css(line.color), filter: lonely },
      fill: line.filled ? `${css(line.color)}24` : undefined, dash: line.dashed ? [4, 3] : undefined,
      paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
    }))],
    hooks: { setCursor: [read] },
  });

  const read = ({ cursor: { idx } }) => {
    const at = idx !== null && idx !== undefined && data ? idx : null;
    values.forEach((place, line) => { place.textContent = at === null ? '' : value(data[line + 1][at] ?? null); });
    moment.textContent = at === null ? each : exactClock(data[0][at]);
  };

  const rebuild = () => {
    chart?.destroy();
    chart = null;
    const width = Math.floor(canvas.clientWidth);
    if (data && width > 0) chart = new uPlot(options(width), data, canvas);
  };

  const observer = new ResizeObserver(() => {
    const width = Math.floor(canvas.clientWidth);
    if (chart === null) rebuild();
    else if (width > 0 && width !== chart.width) chart.setSize({ width, height: HEIGHT });
  });
  observer.observe(canvas);
  scheme.addEventListener('change', rebuild, { signal });
  signal.addEventListener('abort', () => {
    observer.disconnect();
    chart?.destroy();
    chart = null;
    data = null;
  }, { once: true });

  const draw = (times, columns, words, step) => {
    if (moment.textContent === each) moment.textContent = step;
    each = step;
    data = [times, ...columns];
    canvas.setAttribute('aria-label', words);
    if (chart) chart.setData(data);
    else rebuild();
  };
  return { node, draw };
};
