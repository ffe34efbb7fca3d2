// The figures of the overview, by the question that they answer. Each has a title, a number, a note and a plot over time.
import { element, setText } from '../dom.js';
import { count, exactMoney, isOnlyObserved, micros, money, percent, plural, saving, share, short } from '../format.js';
import { plot } from '../plot.js';
import { trend } from '../series.js';

const tone = dollars => (dollars === null ? '' : dollars < 0 ? 'more' : dollars > 0 ? 'less' : '');
// Money for an axis, without trailing zeros: $0.05.
const axisMoney = dollars => money(dollars).replace(/(\.\d\d\d*?)0+$/, '$1');
// What the plans of requests that were only observed would have done. Beside others that were applied, they are a footnote.
const wouldForward = totals => (isOnlyObserved(totals)
  ? `observed, not applied: would forward ${short(totals.would_tokens_after)} (${saving(totals.tokens_before, totals.would_tokens_after)})${totals.would_refuse > 0 ? `, refuse ${count(totals.would_refuse)}` : ''}`
  : `${saving(totals.tokens_before, totals.tokens_after)}; ${saving(totals.tokens_before, totals.would_tokens_after).replace(' saved', '')} with the plans of ${plural(totals.observed, 'observed request')}`);
const wouldAvoid = totals => (isOnlyObserved(totals)
  ? `observed, not applied: would avoid ${money(totals.would_avoid_usd)}`
  : `of ${money(totals.unedited_cost_usd)} unedited; ${plural(totals.observed, 'observed request')} would avoid ${money(totals.would_avoid_usd)} more`);
const perRequest = (number, { requests }) => (requests > 0 ? short(+(number / requests).toFixed(1)) : '0');
const unpriced = totals => (totals.unpriced > 0 ? `${count(totals.unpriced)} without a known price` : '');
// Without losses there is no line, because it would cover the zero line of every plot.
const losses = values => (values.some(value => value < 0) ? values.map(value => value && Math.min(0, value)) : values.map(() => null));
const sum = (...columns) => columns[0].map((_, index) => columns.reduce((total, column) => total + (column[index] ?? 0), 0));

// `figure` is the number, `exact` its tooltip, `note` the line below, `lines` and `columns` the plot.
const CARDS = [
  {
    name: 'tokens', title: 'Prompt tokens',
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
    name: 'avoided', title: 'Cost avoided, net', wide: true,
    figure: totals => money(totals.avoided_usd), tone: totals => tone(totals.avoided_usd),
    exact: totals => `${exactMoney(totals.unedited_cost_usd)} as sent, minus ${exactMoney(totals.cost_usd)} billed and ${exactMoney(totals.summarizer_cost_usd)} for summaries`,
    note: totals => (totals.observed > 0 && totals.would_avoid_usd !== null ? wouldAvoid(totals) : totals.avoided_usd === null ? 'no known price' : `of ${money(totals.unedited_cost_usd)} unedited`),
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
    note: totals => (totals.prompt_tokens === 0 ? '' : `${short(totals.cached_tokens)} of ${short(totals.prompt_tokens)} tokens, as counted by the provider`),
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
    // A message that stays masked is left out of every request, but it is one message.
    name: 'edits', title: 'Messages left out',
    figure: totals => short(totals.left_out),
    exact: totals => `${plural(totals.left_out, 'message')}, in ${plural(totals.requests, 'request')}: as often as requests went without one, ${count(totals.masked)} masked, ${count(totals.trimmed)} trimmed, ${count(totals.folded)} folded, ${count(totals.dropped)} dropped`,
    note: totals => `per request ${perRequest(totals.masked, totals)} masked, ${perRequest(totals.trimmed, totals)} trimmed, ${perRequest(totals.folded, totals)} folded, ${perRequest(totals.dropped, totals)} dropped`,
    lines: [{ label: 'left out', color: '--c2', filled: true, stepped: true }], columns: series => [series.left_out], value: short,
  },
  {
    name: 'folds', title: 'Summaries written',
    figure: totals => short(totals.folds), exact: totals => count(totals.folds), note: totals => `${money(totals.summarizer_cost_usd)} for summarizers`,
    lines: [{ label: 'summaries', color: '--own', filled: true, stepped: true }], columns: series => [series.folds], value: short,
  },
  {
    name: 'latency', title: 'Added by Tidegate, p50 and p99',
    figure: totals => (totals.overhead_p50_us === null && totals.overhead_p99_us === null ? micros(null) : `${micros(totals.overhead_p50_us)} · ${micros(totals.overhead_p99_us)}`),
    exact: totals => `half of the requests within ${micros(totals.overhead_p50_us)}, 99 % within ${micros(totals.overhead_p99_us)}`,
    note: () => 'before the request is forwarded',
    lines: [{ label: 'p50', color: '--kept' }, { label: 'p99', color: '--c1', dashed: true }],
    columns: series => [series.overhead_p50_us, series.overhead_p99_us], value: micros,
  },
  {
    name: 'upstream', title: 'Time to first byte, p50 and p99',
    figure: totals => (totals.latency_p50_us === null ? micros(null) : `${micros(totals.latency_p50_us)} · ${micros(totals.latency_p99_us)}`),
    exact: totals => `half of the answers began within ${micros(totals.latency_p50_us)}, 99 % within ${micros(totals.latency_p99_us)}`,
    note: () => 'of the upstream, once it was asked',
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
  const update = (totals, series, { step, range, started }) => {
    setText(figure, spec.figure(totals));
    figure.title = spec.exact(totals);
    figure.className = `figure ${spec.tone?.(totals) ?? ''}`;
    setText(note, spec.note(totals) || ' ');
    const columns = spec.columns(series);
    const direction = trend(columns.length > 1 && spec.lines[0].stepped ? sum(...columns) : columns[0]);
    const [shown, exact] = [spec.figure(totals), spec.exact(totals)];
    drawing.draw(series.t, columns, `${spec.title} over the last ${range}: ${shown === exact ? shown : `${shown}; ${exact}`}; ${direction}.`, spec.lines[0].stepped ? `per ${step}` : '', started);
  };
  return { node, update };
};

// The order of the page: what an operator asks first comes first.
const GROUPS = [
  { name: 'saved', title: 'What did it save?', heading: 'Savings', cards: ['avoided', 'tokens', 'cached', 'billed'] },
  { name: 'failing', title: 'Is anything failing?', heading: 'Failures', cards: ['errors', 'refusals', 'degraded'] },
  { name: 'slow', title: 'How slow is it?', heading: 'Latency', cards: ['upstream', 'latency'] },
  { name: 'now', title: 'What is happening?', heading: 'Traffic', cards: ['requests', 'edits', 'folds', 'completion'] },
];

const saved = totals => {
  const { observed, requests, avoided_usd: net, unedited_cost_usd: unedited, cost_usd: billed, would_avoid_usd: would, tokens_before: sent, tokens_after: forwarded, would_tokens_after: planned } = totals;
  const part = observed < requests ? ` ${count(observed)} of ${plural(requests, 'request')} observed.` : '';
  if (isOnlyObserved(totals)) {
    const tokens = saving(sent, planned).replace(' saved', '');
    return would === null ? [`Would have saved ${tokens} of the tokens. Nothing was edited.${part}`, '']
      : [`Would have saved ${money(would)} net: ${percent(would, billed)} of what was billed, and ${tokens} of the tokens. Nothing was edited.${part}`, tone(would)];
  }
  if (net === null) return [`${saving(sent, forwarded).replace('n/a', 'no tokens yet')}. What that is worth is unknown: the models have no known price.`, ''];
  const more = observed > 0 && would > 0 ? ` ${plural(observed, 'observed request')} would have saved ${money(would)} more.` : '';
  if (net === 0) return [`Nothing yet: no edit has paid so far, or there was nothing to edit.${more}`, ''];
  return net > 0 ? [`Saved ${money(net)} net, ${percent(net, unedited)} of ${money(unedited)}.${more}`, 'less'] : [`Cost ${money(-net)} more than without edits: recent edits broke the provider’s cache and have not paid yet.${more}`, 'more'];
};

const failing = ({ errors, rate_limited: limited, refusals, degraded, would_refuse: would }, rescued) => {
  const parts = [
    errors > 0 && `${plural(errors, 'upstream error')}${limited > 0 ? ` (${count(limited)} rate limited)` : ''}`,
    refusals > 0 && `${plural(refusals, 'request')} refused`, degraded > 0 && `${plural(degraded, 'request')} degraded`,
    rescued > 0 && `${plural(rescued, 'request')} rescued from an overflow`, would > 0 && `${plural(would, 'request')} would have been refused`,
  ].filter(Boolean);
  return parts.length > 0 ? [`${parts.join(', ')}.`, errors + refusals > 0 ? 'more' : ''] : ['No errors, no refusals, no degradations.', 'less'];
};

const slow = totals => (totals.latency_p50_us === null ? ['No answers yet.', ''] : [`Answers begin after ${micros(totals.latency_p50_us)} (p99 ${micros(totals.latency_p99_us)}). Tidegate adds ${micros(totals.overhead_p50_us)} (p99 ${micros(totals.overhead_p99_us)}).`, '']);

/** The cards of each question; `update(totals, series, { step, range, started, rescued, inFlight, lastMinute })` takes the lengths in words, when the process started, and what happens now. `more` has further nodes for a group. */
export const cards = (signal, more = {}) => {
  const all = Object.fromEntries(CARDS.map(spec => [spec.name, card(signal, spec)]));
  const answers = Object.fromEntries(GROUPS.map(({ name }) => [name, element('p', { class: 'short-answer' })]));
  // All answers are on the first screen; the figures behind them follow.
  const node = element('div', {},
    element('div', { class: 'answers' }, GROUPS.map(({ name, title }) => element('div', { class: `tile ${name}`, data: { answer: name } }, element('h2', {}, title), answers[name]))),
    GROUPS.map(group => element('section', { class: `question ${group.name}`, data: { question: group.name }, 'aria-label': group.title },
      element('h2', {}, group.heading),
      element('div', { class: 'figures' }, group.cards.map(name => all[name].node)), more[group.name] ?? null)));
  const update = (totals, series, lengths) => {
    Object.values(all).forEach(entry => entry.update(totals, series, lengths));
    const shown = {
      saved: saved(totals), failing: failing(totals, lengths.rescued), slow: slow(totals),
      now: [`${plural(lengths.inFlight, 'request')} in flight, ${count(lengths.lastMinute)} in the last minute, ${count(totals.requests)} in the last ${lengths.range} with ${short(totals.tokens_after)} prompt tokens forwarded.`, ''],
    };
    for (const [name, [text, tone]] of Object.entries(shown)) {
      setText(answers[name], text);
      answers[name].className = `short-answer ${tone}`;
    }
  };
  return { node, update };
};
