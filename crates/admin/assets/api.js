// Talks to the server. Views get data or an error with a message to show; whether the server is there at all, and
// whether we are still admitted, is told once, on `link`, and the shell listens.

/** Fires `lost`, `back` and `unauthorized`. */
export const link = new EventTarget();

/** The server answered, and refused. */
class Refused extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Nothing answered. */
class Lost extends Error {}

let away = false;
const lost = () => {
  if (!away) link.dispatchEvent(new Event('lost'));
  away = true;
};
export const back = () => {
  if (away) link.dispatchEvent(new Event('back'));
  away = false;
};

/** A query of what is set: the server refuses empty parameters. */
export const query = parameters => {
  const set = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== '');
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`;
};

const refusal = async answer => {
  const body = await answer.json().catch(() => null);
  return new Refused(answer.status, body?.error?.message ?? `the server answered with status ${answer.status}`, body?.error?.code ?? null);
};

/** One call. Gives the JSON of the answer (null if it has none), or throws Refused, Lost or the abort of `signal`. */
export const call = async (method, path, { body, signal, quiet = false } = {}) => {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' };
  let answer, data;
  try {
    answer = await fetch(path, { method, headers, body, signal, cache: 'no-store', credentials: 'same-origin' });
    if (answer.ok) data = answer.status === 204 ? null : await answer.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    lost();
    throw new Lost('The server does not answer.');
  }
  back();
  if (answer.ok) return data;
  if (answer.status === 401 && !quiet) link.dispatchEvent(new Event('unauthorized'));
  throw await refusal(answer);
};

export const get = (path, parameters = {}, signal = undefined) => call('GET', path + query(parameters), { signal });

/** Ends early, and quietly, if the view is left. */
export const pause = (ms, signal) => new Promise(done => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
});

/** Runs `work` until the server answers. A view that is opened while the server restarts fills itself when it is back. */
export const persist = async (signal, work) => {
  for (let wait = 1000; ; wait = Math.min(wait * 2, 15000)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Lost) || signal.aborted) throw error;
      await pause(wait, signal);
      if (signal.aborted) throw error;
    }
  }
};

/** Runs `work` and hands its error to `show`, unless the view was left meanwhile or the sign-in form has taken its place. */
export const attempt = async (signal, work, show) => {
  try {
    await work();
  } catch (error) {
    if (signal.aborted || (error instanceof Refused && error.status === 401)) return;
    show(error);
  }
};
