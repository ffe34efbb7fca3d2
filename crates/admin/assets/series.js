// Columns over time: keeps them as the server sent them, takes in live points, and gathers them into as many steps as a
// small plot can show. Two-second steps of a quiet proxy would be a barcode otherwise.

// How long one step of the plot is, for each range.
const STEPS = { '15m': 10_000, '1h': 60_000, '6h': 300_000, '24h': 900_000 };
export const stepOf = range => STEPS[range];

const MEANS = new Set(['overhead_p50_us']);
const MOSTS = new Set(['overhead_p99_us']);
// Where nothing was asked, nothing was billed: that is known, and not a gap.
const COSTS = new Set(['cost_usd', 'unedited_cost_usd', 'avoided_usd']);

/** The point replaces the last one if it is of the same time, else it is added and the oldest goes. */
export const take = (series, point) => {
  const last = series.t.length - 1;
  const same = last >= 0 && series.t[last] === point.t;
  for (const [name, column] of Object.entries(series)) {
    if (same) column[last] = point[name] ?? null;
    else column.push(point[name] ?? null);
    if (!same && last >= 0) column.shift();
  }
};

const join = {
  sum: values => values.reduce((all, [value]) => all + value, 0),
  most: values => Math.max(...values.map(([value]) => value)),
  // Percentiles cannot be added up; the mean by requests is the fairest single number for a median.
  mean: values => {
    const weight = values.reduce((all, [, requests]) => all + requests, 0);
    return weight === 0 ? values[0][0] : values.reduce((all, [value, requests]) => all + value * requests, 0) / weight;
  },
};

/** The columns in steps of `step` milliseconds, at times that are multiples of it. Unknown stays null unless something in the step is known. */
export const gather = (series, step) => {
  const starts = [], groups = [];
  series.t.forEach((time, place) => {
    const start = Math.floor(time / step) * step;
    if (starts.at(-1) !== start) {
      starts.push(start);
      groups.push([]);
    }
    groups.at(-1).push(place);
  });
  const gathered = { t: starts };
  for (const [name, column] of Object.entries(series)) {
    if (name === 't') continue;
    const how = MEANS.has(name) ? join.mean : MOSTS.has(name) ? join.most : join.sum;
    gathered[name] = groups.map(places => {
      const known = places.filter(place => column[place] !== null && column[place] !== undefined);
      if (known.length === 0) return COSTS.has(name) && places.every(place => !series.requests[place]) ? 0 : null;
      return how(known.map(place => [column[place], series.requests[place] ?? 0]));
    });
  }
  return gathered;
};

/** In a word, for those who cannot see the plot: compares the last third with the first one. */
export const trend = values => {
  const known = values.filter(value => value !== null);
  if (known.length < 3 || known.every(value => value === 0)) return 'no course yet';
  const third = Math.max(1, Math.floor(known.length / 3));
  const mean = part => part.reduce((all, value) => all + value, 0) / part.length;
  const [early, late] = [mean(known.slice(0, third)), mean(known.slice(-third))];
  const size = Math.max(Math.abs(early), Math.abs(late));
  if (size === 0 || Math.abs(late - early) < size * 0.1) return 'steady';
  return late > early ? 'rising' : 'falling';
};
