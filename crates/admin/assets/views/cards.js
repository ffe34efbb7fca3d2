// The cards of the overview: each has a title, a number, a note and a plot over time.
import { element, setText } from '../dom.js';
import { count, micros, money, percent, saving, share, short } from '../format.js';
import { plot } from '../plot.js';
import { trend } from '../series.js';

const tone = dollars => (dollars === null ? '' : dollars < 0 ? 'more' : dollars > 0 ? 'less' : '');
// Money for an axis, without trailing zeros: $0.05.
const axisMoney = dollars => money(dollars).replace(/(\.\d\d\d*?)0+$/, '$1');
// What the plans of requests that were only observed would have done. They were not applied.
const wouldForward = totals => `observed, not applied: would forward ${short(totals.would_tokens_after)} (${saving(totals.tokens_before, totals.would_tokens_after)})${totals.would_refuse > 0 ? `, refuse ${count(totals.would_refuse)}` : ''}`;
const unpriced = totals => (totals.unpriced > 0 ? `${count(totals.unpriced)} without a known price` : '');
// Without losses there is no line, because it would cover the zero line of every plot.
const losses = values => (values.some(value => value < 0) ? values.map(value => value && Math.min(0, value)) : values.map(() => null));
const sum = (...columns) => columns[0].map((_, index) => columns.reduce((total, column) => total + (column[index] ?? 0), 0));

// `figure` is the number, `exact` its tooltip, `note` the line below, `lines` and `columns` the plot.
const CARDS = [
  {
    name: 'tokens', title: 'Prompt tokens', wide: true,
    figure: totals => `${short(totals.tokens_before)} → ${short(totals.tokens_after)}`,
    exact: totals => `${count(totals.tokens_before)} sent by clients, ${count(totals.tokens_after)} forwarded`,
    note: totals => (totals.observed > 0 ? wouldForward(totals) : totals.tokens_before === 0 ? 'sent by clients → forwarded' : `sent by clients → forwarded: ${saving(totals.tokens_before, totals.tokens_after)}`),
    lines: [{ label: 'sent', color: '--c0', filled: true, stepped: true }, { label: 'forwarded', color: '--kept', filled: true, stepped: true }],
    columns: series => [series.tokens_before, series.tokens_after], value: short,
  },
  {
    name: 'requests', title: 'Requests',
    figure: totals => short(totals.requests), exact: totals => count(totals.requests), note: () => '',
    lines: [{ label: 'requests', color: '--kept', filled: true, stepped: true }], columns: series => [series.requests], value: short,
  },
  {
    name: 'avoided', title: 'Cost avoided, net',
    figure: totals => money(totals.avoided_usd), tone: totals => tone(totals.avoided_usd),
    exact: totals => `${money(totals.unedited_cost_usd)} as sent, minus ${money(totals.cost_usd)} billed and ${money(totals.summarizer_cost_usd)} for summaries`,
    note: totals => (totals.observed > 0 && totals.would_avoid_usd !== null ? `observed, not applied: would avoid ${money(totals.would_avoid_usd)}` : totals.avoided_usd === null ? 'no known price' : `of ${money(totals.unedited_cost_usd)} unedited`),
    // Two lines, so that a loss has its own colour.
    lines: [{ label: 'avoided', color: '--less', filled: true, stepped: true }, { label: 'lost', color: '--more', filled: true, stepped: true }],
    columns: ({ avoided_usd: all }) => [all.map(value => value && Math.max(0, value)), losses(all)], value: axisMoney,
  },
  {
    name: 'billed', title: 'Cost billed',
    figure: totals => money(totals.cost_usd), exact: totals => `${money(totals.summarizer_cost_usd)} more for summaries`,
    note: totals => unpriced(totals) || (totals.summarizer_cost_usd > 0 ? `and ${money(totals.summarizer_cost_usd)} for summaries` : ''),
    lines: [{ label: 'billed', color: '--c1', filled: true, stepped: true }], columns: series => [series.cost_usd], value: axisMoney,
  },
  {
    name: 'cached', title: 'Cached share of the prompt',
    figure: totals => percent(totals.cached_tokens, totals.prompt_tokens),
    exact: totals => `${count(totals.cached_tokens)} of ${count(totals.prompt_tokens)} tokens, as counted by the provider`,
    note: totals => (totals.prompt_tokens === 0 ? '' : `${short(totals.cached_tokens)} of ${short(totals.prompt_tokens)} tokens`),
    lines: [{ label: 'cached', color: '--own' }],
    columns: series => [series.cached_tokens.map((cached, index) => (series.prompt_tokens[index] > 0 ? cached / series.prompt_tokens[index] : null))],
    max: 1, value: ratio => (ratio === null ? share(null) : `${Math.round(ratio * 100)} %`),
  },
  {
    name: 'completion', title: 'Completion tokens',
    figure: totals => short(totals.completion_tokens), exact: totals => count(totals.completion_tokens), note: () => '',
    lines: [{ label: 'completion', color: '--c4', filled: true, stepped: true }], columns: series => [series.completion_tokens], value: short,
  },
  {
    name: 'edits', title: 'Messages left out',
    figure: totals => short(totals.masked + totals.folded + totals.dropped),
    exact: totals => `${count(totals.masked)} masked, ${count(totals.folded)} folded, ${count(totals.dropped)} dropped`,
    note: totals => `${short(totals.masked)} masked, ${short(totals.folded)} folded, ${short(totals.dropped)} dropped`,
    lines: [{ label: 'masked', color: '--c2', stepped: true }, { label: 'folded', color: '--c4', stepped: true }, { label: 'dropped', color: '--more', stepped: true }],
    columns: series => [series.masked, series.folded, series.dropped], value: short,
  },
  {
    name: 'folds', title: 'Summaries written',
    figure: totals => short(totals.folds), exact: totals => count(totals.folds), note: totals => `${money(totals.summarizer_cost_usd)} for summarizers`,
    lines: [{ label: 'summaries', color: '--own', filled: true, stepped: true }], columns: series => [series.folds], value: short,
  },
  {
    name: 'latency', title: 'Added latency, p50 and p99',
    figure: totals => (totals.overhead_p50_us === null && totals.overhead_p99_us === null ? micros(null) : `${micros(totals.overhead_p50_us)} · ${micros(totals.overhead_p99_us)}`),
    exact: totals => `half of the requests within ${micros(totals.overhead_p50_us)}, 99 % within ${micros(totals.overhead_p99_us)}`,
    note: () => 'time spent in Tidegate',
    lines: [{ label: 'p50', color: '--kept' }, { label: 'p99', color: '--c1', dashed: true }],
    columns: series => [series.overhead_p50_us, series.overhead_p99_us], value: micros,
  },
  {
    name: 'upstream', title: 'Upstream latency, p50 and p99',
    figure: totals => (totals.latency_p50_us === null ? micros(null) : `${micros(totals.latency_p50_us)} · ${micros(totals.latency_p99_us)}`),
    exact: totals => `half of the answers began within ${micros(totals.latency_p50_us)}, 99 % within ${micros(totals.latency_p99_us)}`,
    note: () => 'until the upstream began to answer',
    lines: [{ label: 'p50', color: '--kept' }, { label: 'p99', color: '--c1', dashed: true }],
    columns: series => [series.latency_p50_us, series.latency_p99_us], value: micros,
  },
  {
    name: 'errors', title: 'Upstream errors',
    figure: totals => percent(totals.errors, totals.requests), tone: totals => (totals.errors > 0 ? 'more' : ''),
    exact: totals => `${count(totals.errors)} of ${count(totals.requests)} requests`,
    note: totals => (totals.errors === 0 ? 'error status, broken off or no answer' : `${count(totals.errors)} of ${count(totals.requests)}${totals.rate_limited > 0 ? `, ${count(totals.rate_limited)} rate limited` : ''}`),
    lines: [{ label: 'errors', color: '--more', filled: true, stepped: true }], columns: series => [series.errors], value: short,
  },
  {
    name: 'degraded', title: 'Degradations',
    figure: totals => short(totals.degraded), tone: totals => (totals.degraded > 0 ? 'more' : ''), exact: totals => count(totals.degraded),
    note: () => 'forwarded although something failed',
    lines: [{ label: 'degraded', color: '--c1', filled: true, stepped: true }], columns: series => [series.degraded], value: short,
  },
  {
    name: 'refusals', title: 'Refusals',
    figure: totals => short(totals.refusals), tone: totals => (totals.refusals > 0 ? 'more' : ''), exact: totals => count(totals.refusals),
    note: () => 'refused with an error',
    lines: [{ label: 'refused', color: '--more', filled: true, stepped: true }], columns: series => [series.refusals], value: short,
  },
];

const card = (signal, spec) => {
  const figure = element('p', { class: 'figure' });
  const note = element('p', { class: 'note' });
  const drawing = plot(signal, spec.lines, spec.value, { whole: spec.value === short, max: spec.max });
  const node = element('article', { class: spec.wide ? 'card wide' : 'card', data: { figure: spec.name } },
    element('h2', {}, spec.title), figure, note, drawing.node);
  const update = (totals, series, { step, range }) => {
    setText(figure, spec.figure(totals));
    figure.title = spec.exact(totals);
    figure.className = `figure ${spec.tone?.(totals) ?? ''}`;
    setText(note, spec.note(totals) || ' ');
    const columns = spec.columns(series);
    const direction = trend(columns.length > 1 && spec.lines[0].stepped ? sum(...columns) : columns[0]);
    const [shown, exact] = [spec.figure(totals), spec.exact(totals)];
    drawing.draw(series.t, columns, `${spec.title} over the last ${range}: ${shown === exact ? shown : `${shown}; ${exact}`}; ${direction}.`, spec.lines[0].stepped ? `per ${step}` : '');
  };
  return { node, update };
};

/** All cards; `update(totals, series, { step, range })` takes the lengths in words. */
export const cards = signal => {
  const all = CARDS.map(spec => card(signal, spec));
  return {
    node: element('div', { class: 'figures' }, all.map(entry => entry.node)),
    update: (totals, series, lengths) => all.forEach(entry => entry.update(totals, series, lengths)),
  };
};
