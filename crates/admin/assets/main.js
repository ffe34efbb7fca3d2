// The shell: which view the fragment names, who may see it, and where the focus goes. A fragment holds an id at most,
// never a name or a word of a conversation: addresses end up in histories and logs.
import { link } from './api.js';
import { element, say } from './dom.js';
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

const at = id => document.getElementById(id);
const [main, banner, leave] = [at('main'), at('banner'), at('sign-out')];

// All that a view starts (calls, streams, timers, observers, listeners) ends with its signal.
let view = new AbortController();

const put = ({ section, title }, focus) => {
  main.replaceChildren(section);
  document.title = `${title} · Tidegate`;
  scrollTo(0, 0);
  if (focus) section.querySelector('h1').focus({ preventScroll: true });
};

const missing = () => ({
  title: 'Not found',
  section: element('section', { data: { view: 'missing' }, 'aria-labelledby': 'title' },
    element('h1', { id: 'title', tabindex: -1 }, 'There is no such page'),
    element('p', {}, element('a', { href: '#/' }, 'Go to the overview'))),
});

const mark = name => {
  for (const one of document.querySelectorAll('[data-nav]')) {
    if (one.dataset.nav === name) one.setAttribute('aria-current', 'page');
    else one.removeAttribute('aria-current');
  }
};

const route = focus => {
  view.abort();
  view = new AbortController();
  const address = location.hash === '' ? '#/' : location.hash;
  const found = ROUTES.map(([pattern, open, nav]) => ({ match: pattern.exec(address), open, nav })).find(({ match }) => match);
  mark(found?.nav ?? null);
  put(found ? found.open({ signal: view.signal, parameters: found.match.slice(1) }) : missing(), focus);
};

const askForToken = () => {
  if (main.querySelector('[data-view="sign-in"]')) return;
  view.abort();
  leave.hidden = true;
  mark(null);
  put(signIn(() => { leave.hidden = false; route(true); }), false);
  at('token').focus();
};

const start = async () => {
  view = new AbortController();
  const { signal } = view;
  try {
    const { token_required: required, admitted } = await session(signal);
    if (signal.aborted) return;
    leave.hidden = !(required && admitted);
    if (required && !admitted) askForToken();
    // The first view leaves the focus at the top of the page, where the skip link is.
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
at('skip').addEventListener('click', event => {
  // Not by the fragment, which belongs to the views.
  event.preventDefault();
  main.focus();
});
leave.addEventListener('click', async () => {
  try {
    await signOut();
    askForToken();
  } catch (error) {
    say(banner, error.message);
  }
});
link.addEventListener('unauthorized', askForToken);
link.addEventListener('lost', () => say(banner, 'Connection lost, trying again…'));
link.addEventListener('back', () => say(banner, ''));

start();
