// The API client. Views get data or an error with a message to show. Losing the server or the session is reported once,
// as an event on `connection`, which the shell handles.

/** Fires `lost`, `restored` and `unauthorized`. */
export const connection = new EventTarget();

/** The server returned an error. */
class Refused extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The server did not respond. */
class Unreachable extends Error {}

let isLost = false;
const lost = () => {
  if (!isLost) connection.dispatchEvent(new Event('lost'));
  isLost = true;
};
export const restored = () => {
  if (isLost) connection.dispatchEvent(new Event('restored'));
  isLost = false;
};

/** Builds a query string without empty parameters, which the server rejects. */
export const query = parameters => {
  const set = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== '');
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`;
};

const refusal = async response => {
  const body = await response.json().catch(() => null);
  return new Refused(response.status, body?.error?.message ?? `the server returned status ${response.status}`, body?.error?.code ?? null);
};

/** Sends a request. Returns the JSON of the response (null if it is empty), or throws Refused, Unreachable or the abort of `signal`. */
export const call = async (method, path, { body, signal, quiet = false } = {}) => {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' };
  let response, data;
  try {
    response = await fetch(path, { method, headers, body, signal, cache: 'no-store', credentials: 'same-origin' });
    if (response.ok) data = response.status === 204 ? null : await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    lost();
    throw new Unreachable('The server does not respond.');
  }
  restored();
  if (response.ok) return data;
  if (response.status === 401 && !quiet) connection.dispatchEvent(new Event('unauthorized'));
  throw await refusal(response);
};

export const get = (path, parameters = {}, signal = undefined) => call('GET', path + query(parameters), { signal });

/** Waits. Resolves early if the view is closed. */
export const pause = (ms, signal) => new Promise(done => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
});

/** Repeats `work` while the server is unreachable, so that a view opened during a restart loads once the server is back. */
export const retryWhileUnreachable = async (signal, work) => {
  for (let wait = 1000; ; wait = Math.min(wait * 2, 15000)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Unreachable) || signal.aborted) throw error;
      await pause(wait, signal);
      if (signal.aborted) throw error;
    }
  }
};

/** Runs `work` and passes an error to `show`, unless the view was closed meanwhile or the sign-in form replaces it. */
export const attempt = async (signal, work, show) => {
  try {
    await work();
  } catch (error) {
    if (signal.aborted || (error instanceof Refused && error.status === 401)) return;
    show(error);
  }
};
