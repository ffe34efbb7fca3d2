// The live event stream of the overview. Other views use it to reload when there were new requests.
import { call, query, restored } from './api.js';

// Module state, so that the page stays paused when another view is opened.
let paused = false;
export const isPaused = () => paused;

/** Wraps `work` so that it never runs concurrently: calls made while it runs lead to one more run afterwards. */
export const oneAtATime = work => {
  let running = false, again = false;
  const run = async (...given) => {
    again = running;
    if (running) return;
    running = true;
    await work(...given);
    running = false;
    if (again) run(...given);
  };
  return run;
};

/**
 * Follows the stream until `signal` aborts. `tick` receives each event; `reconnected` is called when the stream opens after a
 * gap, in which points were missed; `change` receives whether the stream is open. Returns `pause`, `resume` and
 * `setParameters`.
 */
export const follow = (signal, parameters, { tick, reconnected = () => {}, change = () => {} }) => {
  let source = null, timer = 0, wait = 1000, gap = false;

  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };

  const open = () => {
    stop();
    // A hidden tab holds no stream: browsers allow few connections per host, and other tabs need them.
    if (paused || signal.aborted || document.hidden) {
      gap = true;
      return;
    }
    source = new EventSource(`/api/overview/live${query(parameters)}`);
    source.addEventListener('open', () => {
      wait = 1000;
      restored();
      change(true);
      if (gap) reconnected();
      gap = false;
    });
    source.addEventListener('tick', event => tick(JSON.parse(event.data)));
    // The browser stops reconnecting after a response that is not a stream (401, 503); this retries with a backoff.
    source.addEventListener('error', () => {
      stop();
      gap = true;
      change(false);
      probe();
    });
  };

  // An ordinary request tells an expired session or a server without a free stream from an unreachable server.
  const probe = async () => {
    const next = await call('GET', '/api/config', { signal }).then(() => open, () => probe);
    if (signal.aborted || source !== null) return;
    clearTimeout(timer);
    timer = setTimeout(next, wait);
    wait = Math.min(wait * 2, 15000);
  };

  document.addEventListener('visibilitychange', open, { signal });
  signal.addEventListener('abort', stop, { once: true });
  open();
  return {
    // The timer stays: an unreachable server is still probed, and the banner disappears when it is back.
    pause: () => { paused = true; gap = true; source?.close(); source = null; },
    resume: () => { paused = false; open(); },
    setParameters: next => { parameters = next; open(); },
  };
};
