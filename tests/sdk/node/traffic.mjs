// Conversations for the dashboard: agents with long tool outputs, chats that are summarized, and one full of markup.

import { clientOf, until, scripted } from './servers.mjs';

/** Two routes with low thresholds, so that a few turns show everything. */
export const CONFIG = `
[context]
strategy = "masking"
[context.mask]
keep = { turns = 2 }
pace = "every_turn"
[context.limits]
plateau_window = 3

[[routes]]
name = "chats"
match = { models = ["gpt-5*"] }
[routes.context]
strategy = "summarization"
[routes.context.fold]
when = { turns = 3 }
keep = { turns = 1 }
mode = "inline"

[[routes]]
name = "small"
match = { models = ["gpt-4o-mini"] }
[routes.context.budget]
max_input = 60

[[routes]]
name = "agents"
`;

/** Markup that sets a variable if a page ever interprets it. */
export const HOSTILE = `<img src=x onerror="window.broken=1"></textarea></script><script>window.broken=2</script>`;

/** Scripts an answer with this usage. */
function answering(prompt, cached, text = 'Noted.') {
  const usage = { prompt_tokens: prompt, completion_tokens: 20, total_tokens: prompt + 20, prompt_tokens_details: { cached_tokens: cached } };
  const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text, refusal: null } };
  const body = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'gpt-4o', choices: [choice], usage };
  return scripted({ status: 200, headers: { 'content-type': 'application/json' }, body });
}

export class Traffic {
  constructor(sides) {
    this.sides = sides;
    this.client = clientOf(sides.through);
    this.sent = 0;
  }

  /** Sends a request of the conversation with this name, or of one without. */
  async ask(name, body, { cached = 0, headers = {}, refused = false } = {}) {
    const options = answering(1000, cached);
    options.headers = { ...options.headers, ...(name === undefined ? {} : { 'x-conversation-id': name }), ...headers };
    const asked = this.client.chat.completions.create(body, options);
    if (refused) await asked.then(() => Promise.reject(new Error('it was not refused')), () => undefined);
    else await asked;
    this.sent += 1;
  }

  /** An agent's run, with a call and its result in every turn. */
  async agent(name, turns, { model = 'gpt-4o', tool = 'read_gauge', output = outputOf, from = 1, ...options } = {}) {
    for (let turn = from; turn <= turns; turn++) {
      await this.ask(name, { model, messages: run(turn, tool, output) }, { cached: turn > 1 ? 800 : 0, ...options });
    }
  }

  /** A chat that is long enough to be summarized. */
  async chat(name, turns, text) {
    const messages = [{ role: 'system', content: 'You look after a harbour.' }];
    for (let turn = 0; turn < turns; turn++) {
      messages.push({ role: 'user', content: `${text} We decided to raise berth ${turn} by ${turn + 2} centimetres. ${'The tide was high and the wind was strong. '.repeat(12)}` });
      await this.ask(name, { model: 'gpt-5', messages });
      messages.push({ role: 'assistant', content: 'Noted.' });
    }
  }

  /** Waits until every request is counted in its conversation. */
  counted() {
    return until('all requests to be counted', async () => {
      const page = await (await fetch(`${this.sides.admin}/api/conversations?limit=500`)).json();
      if (page.conversations.reduce((sum, one) => sum + one.requests, 0) >= this.sent) return page.conversations;
    });
  }
}

function outputOf(turn) {
  return `gauge ${turn} reads 3.30\n`.repeat(30 + ((turn * 37) % 40));
}

function run(turns, tool, output) {
  const messages = [
    { role: 'system', content: 'You look after a harbour.' },
    { role: 'user', content: 'Find out why berth 7 floods.' },
  ];
  for (let turn = 1; turn < turns; turn++) {
    const call = { id: `c${turn}`, type: 'function', function: { name: tool, arguments: `{"berth":${turn}}` } };
    messages.push({ role: 'assistant', content: `I read gauge ${turn}.`, tool_calls: [call] });
    messages.push({ role: 'tool', tool_call_id: `c${turn}`, content: output(turn) });
  }
  return messages;
}
