// Signing in and out. The token is sent once and exchanged for a cookie that scripts cannot read; nothing is stored here.
import { call, retryWhileUnreachable } from './api.js';
import { element, field } from './dom.js';

/** { token_required, admitted, version }; waits while the server is unreachable. */
export const session = signal => retryWhileUnreachable(signal, () => call('GET', '/api/session', { signal }));

export const signOut = () => call('DELETE', '/api/session', { quiet: true });

/** The sign-in form; `done` is called once the token was accepted. */
export const signIn = done => {
  const token = element('input', { type: 'password', id: 'token', name: 'token', autocomplete: 'current-password', required: true, 'aria-describedby': 'token-error' });
  const error = element('p', { id: 'token-error', class: 'error', role: 'alert' });
  const submit = element('button', { type: 'submit', class: 'primary' }, 'Sign in');

  const send = async event => {
    event.preventDefault();
    submit.disabled = true;
    error.textContent = '';
    token.removeAttribute('aria-invalid');
    try {
      await call('POST', '/api/session', { body: JSON.stringify({ token: token.value }), quiet: true });
      token.value = '';
      done();
    } catch (refused) {
      error.textContent = refused.status === 401 ? 'Wrong token.' : refused.message;
      token.setAttribute('aria-invalid', 'true');
      token.focus();
      token.select();
    } finally {
      submit.disabled = false;
    }
  };

  const section = element('section', { class: 'sign-in', data: { view: 'sign-in' }, 'aria-labelledby': 'title' },
    element('h1', { id: 'title', tabindex: -1 }, 'Sign in'),
    element('p', { class: 'sub' }, 'Enter the admin token (', element('code', {}, 'TIDEGATE_ADMIN_TOKEN'), ').'),
    element('form', { method: 'post', on: { submit: send } },
      // Hidden: password managers need a user name to store the token under.
      element('input', { type: 'text', name: 'username', autocomplete: 'username', value: 'admin', hidden: true }),
      field('Admin token', token, error), submit));
  return { section, title: 'Sign in' };
};
