// The first user message of a conversation without a name of its own: people recognise it by that.
import { attempt, get } from '../api.js';
import { element } from '../dom.js';
import { oneAtATime } from '../live.js';

const AUTOMATIC = /^(auto|session)-[0-9a-f]{16}$/;
const LONGEST = 120, MOST = 2000;

// Kept from view to view. A first message never changes.
const known = new Map();

const textOf = message => [message?.content ?? ''].flat().map(part => (typeof part === 'string' ? part : part?.text ?? '')).join(' ').trim();

const read = async (id, signal) => {
  const { messages } = await get(`/api/conversations/${id}/messages`, { limit: 5 }, signal);
  return textOf(messages.map(entry => entry.message).find(message => message?.role === 'user')).slice(0, LONGEST);
};

/** `of(row)` is what is known of a conversation; `read(rows)` reads the rest, one after the other, and calls `changed`. */
export const openings = (signal, changed) => ({
  of: ({ id }) => known.get(id) || null,
  read: oneAtATime(async (conversations = []) => {
    for (const { id, name } of conversations) {
      if (signal.aborted || known.has(id) || !AUTOMATIC.test(name)) continue;
      if (known.size >= MOST) known.clear();
      known.set(id, '');
      await attempt(signal, async () => {
        known.set(id, await read(id, signal));
        changed();
      }, () => {});
      // What was interrupted is read the next time.
      if (signal.aborted && known.get(id) === '') known.delete(id);
    }
  }),
});

/** The message below a name, or nothing. */
export const openingOf = text => (text === null ? null : element('span', { class: 'note opening' }, text));
