// The live stream of the overview. It also is the pulse of the other views: when requests went by, they read again.
import { back, call, query } from './api.js';

// Kept here, so that a page that was paused stays so when another view is opened.
let paused = false;
export const isPaused = () => paused;

/** Runs `work` for every call, but never twice at once: what is called for meanwhile is done once, afterwards. */
export const oneAtATime = work => {
  let running = false, again = false;
  const run = async () => {
    again = running;
    if (running) return;
    running = true;
    await work();
    running = false;
    if (again) run();
  };
  return run;
};

/**
 * Follows the stream until `signal` aborts. `tick` gets each event; `again` is called when the stream is there once more
 * after a gap (points are missing then); `change` hears whether it is open. Returns `pause`, `resume` and `aim` (other
 * parameters).
 */
export const follow = (signal, parameters, { tick, again = () => {}, change = () => {} }) => {
  let source = null, timer = 0, wait = 1000, gap = false;

  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };

  const open = () => {
    stop();
    // A hidden tab holds no stream: a browser has but a few connections for each host, and other tabs need them.
    if (paused || signal.aborted || document.hidden) {
      gap = true;
      return;
    }
    source = new EventSource(`/api/overview/live${query(parameters)}`);
    source.addEventListener('open', () => {
      wait = 1000;
      back();
      change(true);
      if (gap) again();
      gap = false;
    });
    source.addEventListener('tick', event => tick(JSON.parse(event.data)));
    // The browser's own reconnecting gives up at the first answer that is no stream (401, 503); ours goes on, ever more slowly.
    source.addEventListener('error', () => {
      stop();
      gap = true;
      change(false);
      probe();
    });
  };

  // An ordinary call can tell an expired sign-in and a server that only has no stream to spare from one that is away.
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
    // The timer stays: a server that is away is still asked for, and the banner goes when it is back.
    pause: () => { paused = true; gap = true; source?.close(); source = null; },
    resume: () => { paused = false; open(); },
    aim: next => { parameters = next; open(); },
  };
};
