// A small uPlot chart over time. Colours come from the style sheet; it redraws when the colour scheme or width changes.
import { element } from './dom.js';
import { clockTime, exactClock } from './format.js';

const HEIGHT = 112;
// Axis increments for counts, which have no fractions.
const WHOLE_INCREMENTS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map(factor => factor * 10 ** power)).flat();
const scheme = matchMedia('(prefers-color-scheme: dark)');
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Hides a time at the left edge, which would overlap the zero of the other axis.
const timeLabels = (chart, splits) => splits.map(time => (chart.valToPos(time, 'x') < 18 ? '' : clockTime(time)));

// A value between two unknown ones cannot form a line; it is drawn as a dot.
const isolated = (chart, line) => {
  const values = chart.data[line];
  const known = values.flatMap((value, index) => (value === null || value === undefined ? [] : [index]));
  return known.length === 1 ? known : known.filter(index => !chart.series[line].spanGaps && values[index - 1] == null && values[index + 1] == null);
};

// A value far above all others would flatten them: the scale ends above the others, and the peak is named below the plot.
const OUTLIER = 5;
const highOf = (columns, high) => {
  const sorted = columns.flat().filter(value => value > 0).sort((a, b) => a - b);
  const usual = sorted[Math.floor(sorted.length * 0.9)] ?? high;
  return sorted.length >= 12 && high > usual * OUTLIER ? usual * 1.5 : high;
};

/**
 * Lines are { label, color: '--kept', filled, stepped, dashed }. `value` formats a number for the axis and the read-out.
 * `whole` restricts the axis to whole numbers, and the axis always includes `max`. Returns { node, draw(times, columns, label, unit, marked) };
 * `label` is the text for screen readers, `unit` the text for one step, such as `per 10 s`, and `marked` a time to mark.
 */
export const plot = (signal, lines, value, { whole = false, max = 0 } = {}) => {
  const values = lines.map(() => element('b'));
  const moment = element('span', { class: 'moment' });
  let unit = '';
  const canvas = element('div', { class: 'canvas', role: 'img' });
  const keys = element('p', { class: 'keys' }, lines.map((line, index) => {
    const mark = element('i', { class: 'mark' });
    mark.style.background = `var(${line.color})`;
    return element('span', {}, mark, `${line.label} `, values[index]);
  }), moment);
  const node = element('div', { class: 'plot' }, canvas, keys);
  let chart = null, data = null, marked = 0;

  const axis = { font: '11px system-ui, sans-serif', ticks: { show: false }, gap: 4 };
  const options = width => ({
    width, height: HEIGHT, ms: 1, legend: { show: false }, padding: [6, 16, 0, 0],
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true },
      // The scale always includes zero, so that heights are proportional.
      y: { range: (_, low, high) => [Math.min(0, low ?? 0) * 1.05, Math.max(max, highOf(data.slice(1), high ?? 0)) * 1.05 || (low < 0 ? 0 : 1)] },
    },
    axes: [
      { ...axis, stroke: css('--dim'), grid: { show: false }, size: 20, space: 46, values: timeLabels },
      { ...axis, stroke: css('--dim'), grid: { stroke: css('--grid'), width: 1 }, size: 52, space: 26, incrs: whole ? WHOLE_INCREMENTS : undefined, values: (_, splits) => splits.map(value) },
    ],
    series: [{}, ...lines.map(line => ({
      label: line.label, stroke: css(line.color), width: 1.5, spanGaps: !line.stepped, points: { show: true, size: 5, fill: css(line.color), filter: isolated },
      fill: line.filled ? `${css(line.color)}24` : undefined, dash: line.dashed ? [4, 3] : undefined,
      paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
    }))],
    hooks: { setCursor: [read], draw: [mark] },
  });

  // A line where the process started, if that is within the plot.
  const mark = ({ ctx, bbox: { left, top, width, height }, scales: { x }, valToPos }) => {
    const isWithin = marked > x.min && marked <= x.max;
    canvas.dataset.started = isWithin ? marked : '';
    if (!isWithin) return;
    const at = Math.round(valToPos(marked, 'x', true));
    if (at <= left || at > left + width) return;
    ctx.save();
    ctx.strokeStyle = css('--dim');
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(at, top);
    ctx.lineTo(at, top + height);
    ctx.stroke();
    ctx.restore();
  };

  const read = ({ cursor: { idx } }) => {
    const at = idx !== null && idx !== undefined && data ? idx : null;
    values.forEach((node, line) => { node.textContent = at === null ? '' : value(data[line + 1][at] ?? null); });
    moment.textContent = at === null ? resting() : exactClock(data[0][at]);
  };

  const resting = () => {
    const high = data ? Math.max(0, ...data.slice(1).flat().map(known => known ?? 0)) : 0;
    return data && highOf(data.slice(1), high) < high ? `peak ${value(high)}, above the scale` : unit;
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

  const draw = (times, columns, label, newUnit, newMarked = 0) => {
    marked = newMarked;
    const isResting = moment.textContent === resting();
    unit = newUnit;
    data = [times, ...columns];
    if (isResting) moment.textContent = resting();
    canvas.setAttribute('aria-label', label);
    if (chart) chart.setData(data);
    else rebuild();
  };
  return { node, draw };
};
