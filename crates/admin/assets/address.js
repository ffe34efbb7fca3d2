// The addresses of views. An id and a number are all that ever stands in them.
import { element } from './dom.js';

export const conversationLink = id => `#/conversations/${id}`;
export const turnLink = (id, number) => `#/conversations/${id}/turns/${number}`;
export const backToList = () => element('a', { href: '#/conversations' }, 'All conversations');
