// Links to views. They contain only ids and numbers.
import { element } from './dom.js';

export const conversationLink = id => `#/conversations/${id}`;
export const turnLink = (id, number) => `#/conversations/${id}/turns/${number}`;
export const backToList = () => element('a', { href: '#/conversations' }, 'All conversations');
