// The shell: picks the view for the URL fragment, shows the sign-in form and manages the focus. A fragment contains at most
// an id, never a name or content of a conversation, because URLs end up in histories and logs.
import { connection } from './api.js';
import { element, setText } from './dom.js';
import { session, signIn, signOut } from './session.js';
import { configuration } from './views/configuration.js';
import { conversation } from './views/conversation.js';
import { conversations } from './views/conversations.js';
import { overview } from './views/overview.js';
import { tryIt } from './views/try.js';
import { turn } from './views/turn.js';

const ROUTES = [
  [/^#\/$/, overview, 'overview'],
  [/^#\/conversations$/, conversations, 'conversations'],
  [/^#\/conversations\/([0-9a-f]{32})$/, conversation, 'conversations'],
  [/^#\/conversations\/([0-9a-f]{32})\/turns\/(\d{1,9})$/, turn, 'conversations'],
  [/^#\/try$/, tryIt, 'try'],
  [/^#\/configuration$/, configuration, 'configuration'],
];

const byId = id => document.getElementById(id);
const [main, banner, signOutButton] = [byId('main'), byId('banner'), byId('sign-out')];

// Everything a view starts (requests, streams, timers, observers, listeners) ends with its signal.
let view = new AbortController();

const show = ({ section, title }, focus) => {
  main.replaceChildren(section);
  document.title = `${title} · Tidegate`;
  scrollTo(0, 0);
  if (focus) section.querySelector('h1').focus({ preventScroll: true });
};

const notFound = () => ({
  title: 'Not found',
  section: element('section', { data: { view: 'missing' }, 'aria-labelledby': 'title' },
    element('h1', { id: 'title', tabindex: -1 }, 'Page not found'),
    element('p', {}, element('a', { href: '#/' }, 'Go to the overview'))),
});

const markCurrent = name => {
  for (const link of document.querySelectorAll('[data-nav]')) {
    if (link.dataset.nav === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
};

const route = focus => {
  view.abort();
  view = new AbortController();
  const address = location.hash === '' ? '#/' : location.hash;
  const found = ROUTES.map(([pattern, open, nav]) => ({ match: pattern.exec(address), open, nav })).find(({ match }) => match);
  markCurrent(found?.nav ?? null);
  show(found ? found.open({ signal: view.signal, parameters: found.match.slice(1) }) : notFound(), focus);
};

const showSignIn = () => {
  if (main.querySelector('[data-view="sign-in"]')) return;
  view.abort();
  signOutButton.hidden = true;
  markCurrent(null);
  show(signIn(() => { signOutButton.hidden = false; route(true); }), false);
  byId('token').focus();
};

const start = async () => {
  view = new AbortController();
  const { signal } = view;
  try {
    const { token_required: required, admitted } = await session(signal);
    if (signal.aborted) return;
    signOutButton.hidden = !(required && admitted);
    if (required && !admitted) showSignIn();
    // The first view leaves the focus at the top of the page, on the skip link.
    else route(false);
  } catch (error) {
    if (!signal.aborted) main.replaceChildren(element('p', { class: 'loading', role: 'alert' }, error.message));
  }
};

addEventListener('hashchange', () => {
  if (!location.hash.startsWith('#/') && location.hash !== '') return;
  if (main.querySelector('[data-view="sign-in"]')) return;
  route(true);
});
byId('skip').addEventListener('click', event => {
  // The fragment belongs to the views, so the skip link cannot use it.
  event.preventDefault();
  main.focus();
});
signOutButton.addEventListener('click', async () => {
  try {
    await signOut();
    showSignIn();
  } catch (error) {
    setText(banner, error.message);
  }
});
connection.addEventListener('unauthorized', showSignIn);
connection.addEventListener('lost', () => setText(banner, 'Connection lost, reconnecting…'));
connection.addEventListener('restored', () => setText(banner, ''));

start();
