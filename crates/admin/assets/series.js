// Time series: adds live points to the columns from the server, and resamples them to the steps that a small plot can show.
// Two-second steps of a quiet proxy would look like a barcode.

// The length of a plot step for each range.
const STEPS = { '15m': 10_000, '1h': 60_000, '6h': 300_000, '24h': 900_000 };
export const stepOf = range => STEPS[range];

const MEANS = new Set(['overhead_p50_us', 'latency_p50_us']);
const MAXIMA = new Set(['overhead_p99_us', 'latency_p99_us']);
// Without requests the cost is zero, not unknown.
const COSTS = new Set(['cost_usd', 'unedited_cost_usd', 'avoided_usd']);

/** Replaces the last point if `point` has the same time; otherwise appends it and drops the oldest. */
export const addPoint = (series, point) => {
  const last = series.t.length - 1;
  const same = last >= 0 && series.t[last] === point.t;
  for (const [name, column] of Object.entries(series)) {
    if (same) column[last] = point[name] ?? null;
    else column.push(point[name] ?? null);
    if (!same && last >= 0) column.shift();
  }
};

/** The requests of the minute before `now`. */
export const sinceMinute = (series, now) => series.t.reduce((sum, time, at) => (time > now - 60_000 ? sum + (series.requests[at] ?? 0) : sum), 0);

const join = {
  sum: values => values.reduce((all, [value]) => all + value, 0),
  max: values => Math.max(...values.map(([value]) => value)),
  // Percentiles cannot be added; the mean weighted by requests is the best approximation for a median.
  mean: values => {
    const weight = values.reduce((all, [, requests]) => all + requests, 0);
    return weight === 0 ? values[0][0] : values.reduce((all, [value, requests]) => all + value * requests, 0) / weight;
  },
};

/** Resamples the columns to steps of `step` milliseconds, at multiples of it. A step is null if all of its values are. */
export const resample = (series, step) => {
  const starts = [], groups = [];
  series.t.forEach((time, index) => {
    const start = Math.floor(time / step) * step;
    if (starts.at(-1) !== start) {
      starts.push(start);
      groups.push([]);
    }
    groups.at(-1).push(index);
  });
  const resampled = { t: starts };
  for (const [name, column] of Object.entries(series)) {
    if (name === 't') continue;
    const combine = MEANS.has(name) ? join.mean : MAXIMA.has(name) ? join.max : join.sum;
    resampled[name] = groups.map(indexes => {
      const known = indexes.filter(index => column[index] !== null && column[index] !== undefined);
      if (known.length === 0) return COSTS.has(name) && indexes.every(index => !series.requests[index]) ? 0 : null;
      return combine(known.map(index => [column[index], series.requests[index] ?? 0]));
    });
  }
  return resampled;
};

/** Without zeros before `start` and before the first request: a process that did not run yet did not have zero requests. */
export const withoutPast = (series, start) => {
  const from = series.t.findIndex((time, at) => time >= start || series.requests[at] > 0);
  return Object.fromEntries(Object.entries(series).map(([name, column]) => [name, name === 't' ? column : column.map((value, at) => (at < from ? null : value))]));
};

/** Describes the trend in a word, for screen readers: compares the last third with the first. */
export const trend = values => {
  const known = values.filter(value => value !== null);
  if (known.length < 3 || known.every(value => value === 0)) return 'no trend yet';
  const third = Math.max(1, Math.floor(known.length / 3));
  const mean = part => part.reduce((all, value) => all + value, 0) / part.length;
  const [early, late] = [mean(known.slice(0, third)), mean(known.slice(-third))];
  const size = Math.max(Math.abs(early), Math.abs(late));
  if (size === 0 || Math.abs(late - early) < size * 0.1) return 'steady';
  return late > early ? 'rising' : 'falling';
};
