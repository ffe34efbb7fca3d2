// A conversation as people read it: messages with calls and results, what is masked or folded collapsed in place, and the
// summary where it stands for what it covers.
import { attempt, get, retryWhileUnreachable } from '../api.js';
import { badge, element, setText } from '../dom.js';
import { count, plural } from '../format.js';
import { oneAtATime } from '../live.js';
import { summaryBody } from './summary.js';

// The most messages that are shown, and that the API returns at once.
const PAGE = 500;
// A longer text is collapsed to its first lines.
const LONG = 14, SHOWN = 6;
const NOBODY = /^0+$/;
const WORDS = { mask: ['masked', 'mask'], 'mask+untag': ['masked', 'mask'], trim: ['trimmed', 'trim'], 'trim+untag': ['trimmed', 'trim'], fold: ['folded', 'fold'], drop: ['left out', 'drop'] };

/** The newest branch, oldest message first. Abandoned turns and earlier branches are not part of it. */
const branchOf = entries => {
  const kept = entries.filter(entry => !entry.abandoned);
  const byId = new Map(kept.map(entry => [entry.id, entry]));
  const parents = new Set(kept.map(entry => entry.parent));
  const leaves = kept.filter(entry => !parents.has(entry.id));
  const leaf = leaves.reduce((newest, entry) => (newest === null || entry.at > newest.at || (entry.at === newest.at && entry.position > newest.position) ? entry : newest), null);
  const chain = [];
  for (let entry = leaf; entry !== undefined && entry !== null; entry = NOBODY.test(entry.parent) ? null : byId.get(entry.parent)) chain.unshift(entry);
  const taken = new Set(chain.map(entry => entry.position));
  // Instructions are not links of the chain.
  const beside = kept.filter(entry => NOBODY.test(entry.parent) && !taken.has(entry.position) && entry.position < (chain[0]?.position ?? 0));
  return [...beside, ...chain].sort((a, b) => a.position - b.position);
};

/** The parts of a message, in any dialect: texts, calls and results. */
const partsOf = message => {
  if (message === null || typeof message !== 'object') return [{ text: String(message) }];
  // An answer of the Responses API is a list of items.
  if (Array.isArray(message)) return message.flatMap(partsOf);
  const parts = [];
  const add = block => {
    if (typeof block === 'string') parts.push({ text: block });
    else if (block?.type === 'tool_use' || block?.type === 'function_call' || block?.type === 'custom_tool_call') parts.push({ call: block.name, id: block.id ?? block.call_id, input: block.input ?? block.arguments });
    else if (block?.type === 'tool_result') parts.push({ resultOf: block.tool_use_id, text: textOf(block.content) });
    else if (typeof block?.text === 'string') parts.push({ text: block.text });
    else if (typeof block?.thinking === 'string') parts.push({ text: block.thinking, kind: 'thinking' });
    else if (block !== null && block !== undefined) parts.push({ text: `[${block.type ?? 'part'}]`, kind: 'other' });
  };
  if (/_call$/.test(message.type ?? '')) parts.push({ call: message.name ?? message.type, id: message.call_id ?? message.id, input: message.arguments ?? message.input ?? message.action });
  else if (message.output !== undefined) parts.push({ resultOf: message.call_id, text: textOf(message.output) });
  else if (message.role === 'tool' || message.role === 'function') parts.push({ resultOf: message.tool_call_id ?? message.name, text: textOf(message.content) });
  else for (const block of [message.content ?? []].flat()) add(block);
  for (const call of message.tool_calls ?? []) parts.push({ call: call.function?.name ?? call.type, id: call.id, input: call.function?.arguments });
  return parts;
};

const textOf = content => [content ?? ''].flat().map(block => (typeof block === 'string' ? block : block?.text ?? `[${block?.type ?? 'part'}]`)).join('\n');

const pretty = input => {
  try {
    const parsed = typeof input === 'string' ? JSON.parse(input) : input ?? {};
    // A single text, such as a command, is clearer by itself.
    const values = Object.values(parsed);
    if (values.length === 1 && typeof values[0] === 'string') return values[0];
    const line = JSON.stringify(parsed);
    return line.length <= 90 ? line : JSON.stringify(parsed, null, 2);
  } catch {
    return String(input);
  }
};

const longText = (text, kind = '') => {
  const lines = text.split('\n');
  const shown = part => element('div', { class: `said ${kind}` }, part);
  if (lines.length <= LONG) return shown(text);
  return element('div', {}, shown(lines.slice(0, SHOWN).join('\n')),
    element('details', { class: 'rest' }, element('summary', {}, `${count(lines.length - SHOWN)} more lines`), shown(lines.slice(SHOWN).join('\n'))));
};

const bodyOf = (parts, tools) => parts.filter(part => part.call !== undefined || part.text !== '').map(part => (part.call === undefined
  ? element('div', {}, part.resultOf === undefined ? null : element('p', { class: 'note' }, `result of ${tools.get(part.resultOf) ?? part.resultOf ?? 'a call'}`), longText(part.text, part.resultOf === undefined ? part.kind : 'code'))
  : element('div', { class: 'call' }, element('p', { class: 'note' }, 'calls ', element('b', {}, part.call)), longText(pretty(part.input), 'code'))));

const roleOf = message => {
  if (Array.isArray(message)) return message.find(item => item?.role)?.role ?? 'assistant';
  const kind = message?.type ?? '';
  return message?.role ?? (/_output$/.test(kind) ? 'tool' : /_call$/.test(kind) ? 'assistant' : kind === '' ? 'unknown' : kind);
};

const messageOf = (entry, plan, tools, isObserved) => {
  const parts = entry.message === undefined ? [{ text: entry.text ?? '' }] : partsOf(entry.message);
  const role = roleOf(entry.message);
  const [word, tone] = WORDS[plan?.action] ?? [];
  const head = element('p', { class: 'who' }, element('b', {}, role), element('span', { class: 'note' }, ` #${entry.position}`), ' ',
    word ? badge(isObserved ? `would be ${word}` : word, tone, plan.why) : null);
  const hidden = word === 'masked' && !isObserved;
  const body = bodyOf(parts, tools);
  return element('article', { class: `said-by ${role}`, data: { position: entry.position, action: plan?.action ?? 'answer' } }, head,
    hidden ? element('details', { class: 'masked-text' }, element('summary', {}, `${plural(plan.tokens, 'token')} replaced by a placeholder: show what stood here`), body) : body);
};

/** Groups what a summary or a marker stands for. */
const runsOf = (entries, plans, isObserved) => {
  const runs = [];
  for (const entry of entries) {
    const action = plans.get(entry.position)?.action;
    const kind = !isObserved && (action === 'fold' || action === 'drop') ? action : 'shown';
    if (runs.at(-1)?.kind === kind) runs.at(-1).entries.push(entry);
    else runs.push({ kind, entries: [entry] });
  }
  return runs;
};

const draw = ({ entries, plans, summary, isObserved }) => {
  const tools = new Map(entries.flatMap(entry => (entry.message === undefined ? [] : partsOf(entry.message))).filter(part => part.call !== undefined).map(part => [part.id, part.call]));
  let isTold = false;
  return runsOf(entries, plans, isObserved).map(({ kind, entries: run }) => {
    const messages = run.map(entry => messageOf(entry, plans.get(entry.position), tools, isObserved));
    if (kind === 'shown') return messages;
    const collapsed = element('details', { class: 'folded-run', data: { run: kind } },
      element('summary', {}, kind === 'fold' ? `${plural(run.length, 'message')} folded into the summary: show them` : `${plural(run.length, 'message')} left out, with a marker: show them`), messages);
    const stands = kind === 'fold' && !isTold && summary !== null
      ? element('article', { class: 'said-by summary-here', data: { summary: '' } }, element('p', { class: 'who' }, element('b', {}, 'summary'), ' ', badge('in their place', 'fold')), summaryBody(summary)) : null;
    isTold ||= stands !== null;
    return [stands, collapsed];
  });
};

export const transcript = (id, signal) => {
  const path = `/api/conversations/${id}`;
  const note = element('p', { class: 'note' });
  const messages = element('div', { class: 'transcript' });
  const node = element('div', {}, note, messages);
  let turns = 0, drawn = '';

  const read = oneAtATime(() => attempt(signal, async () => {
    const load = (from, parameters) => retryWhileUnreachable(signal, () => get(from, parameters, signal));
    let page = await load(`${path}/messages`, { limit: PAGE });
    if (page.total > PAGE) page = await load(`${path}/messages`, { limit: PAGE, offset: page.total - PAGE });
    if (!page.recorded) return setText(note, 'Messages are not recorded (`store.raw`).');
    const last = turns > 0 ? await load(`${path}/turns/${turns}`, { limit: PAGE, offset: Math.max(0, page.total - PAGE) }).catch(() => null) : null;
    const sign = `${page.messages.at(-1)?.id} ${turns} ${page.total}`;
    if (sign === drawn) return;
    drawn = sign;
    const plans = new Map((last?.explanation?.messages ?? []).map(plan => [plan.index, plan]));
    const entries = branchOf(page.messages);
    const left = page.messages.length - entries.length;
    setText(note, [
      entries.length === 0 ? 'No messages.' : `As the client sent them and the model answered; edits as of the last turn.`,
      page.total > PAGE && `Only the last ${count(PAGE)} of ${count(page.total)} messages; the export has all.`,
      left > 0 && `${plural(left, 'message')} of other branches not shown.`,
      page.unreadable.count > 0 && `${plural(page.unreadable.count, 'message')} cannot be read.`,
    ].filter(Boolean).join(' '));
    messages.replaceChildren(...draw({ entries, plans, summary: last?.summary ?? null, isObserved: last?.turn.observed ?? false }).flat(2).filter(part => part !== null));
  }, error => setText(note, error.message)));

  return { node, update: total => { turns = total; read(); } };
};
