// Formats numbers, money and times for people. Null means unknown and is shown as `n/a`, never as zero.
import { element } from './dom.js';

const NA = 'n/a';
const MINUS = '−';
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const known = number => typeof number === 'number' && Number.isFinite(number);
const signed = (number, text) => (number < 0 ? MINUS + text : text);

/** 1,234,567 */
export const count = number => (known(number) ? signed(number, whole.format(Math.abs(number))) : NA);

/** 9,876 or 12.3 k or 1.23 M: for cards and axes, with the exact number in a title. */
export const short = number => {
  if (!known(number)) return NA;
  const size = Math.abs(number);
  const scaled = [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']].find(([unit]) => size >= unit);
  if (!scaled) return signed(number, size % 1 === 0 ? whole.format(size) : String(+size.toPrecision(3)));
  const unit = scaled[1] === 'k' ? 1e3 : scaled[0];
  return signed(number, `${+(size / unit).toPrecision(3)} ${scaled[1]}`);
};

/** $1.25, $0.0123, −$0.0004, about $0: nobody reads ten-thousandths of a cent; titles have the exact amount. */
export const money = dollars => {
  if (!known(dollars)) return NA;
  const size = Math.abs(dollars);
  if (size === 0) return '$0.00';
  const text = size >= 1 ? size.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
    : size.toFixed(size >= 0.1 ? 3 : 4);
  if (size < 0.0001) return 'about $0';
  return signed(dollars, `$${text}`);
};

/** The exact amount, for titles. */
export const exactMoney = dollars => (known(dollars) ? signed(dollars, `$${+Math.abs(dollars).toPrecision(6)}`) : NA);

/** 41.7 %, or n/a if the whole is zero. */
export const percent = (part, of) => (known(part) && known(of) && of !== 0 ? share(part / of) : NA);
export const share = ratio => (known(ratio) ? signed(ratio, `${fine.format(Math.abs(ratio) * 100)} %`) : NA);

/** 180 µs, 1.2 ms, 3.4 s */
export const micros = time => {
  if (!known(time)) return NA;
  if (time < 1000) return `${whole.format(time)} µs`;
  if (time < 1e6) return `${+(time / 1000).toPrecision(3)} ms`;
  return `${+(time / 1e6).toPrecision(3)} s`;
};
export const millis = time => (known(time) ? micros(time * 1000) : NA);

/** The reduction from sent to forwarded tokens: `41.7 % saved`, `0.3 % more`. */
export const saving = (before, after) => {
  if (!known(before) || !known(after) || before === 0) return NA;
  return after > before ? `${share((after - before) / before)} more` : `${share((before - after) / before)} saved`;
};

/** Whether nothing of what the plans say was applied, so that every saving is one that would have been. */
export const isOnlyObserved = ({ observed, tokens_before: sent, tokens_after: forwarded }) => observed > 0 && sent === forwarded;

/** The avoided cost of a conversation or turn, before the cost of summaries; null if either cost is unknown. */
export const avoided = ({ cost_usd: billed, unedited_cost_usd: unedited }) => (known(billed) && known(unedited) ? unedited - billed : null);

/** `1 turn`, `2 turns`. */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const exact = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });

export const fullTime = ms => day.format(ms);
export const clockTime = ms => clock.format(ms);
export const exactClock = ms => exact.format(ms);

/** `45 s`, `12 min`, `3 h`, `2 days` */
export const span = ms => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return plural(Math.floor(seconds / 86400), 'day');
};
export const ago = (ms, now = Date.now()) => (now - ms < 5000 ? 'just now' : `${span(now - ms)} ago`);

/** A <time> element that shows `text`, with the full time in its title. */
export const timeOf = (ms, text = fullTime(ms)) => element('time', { datetime: new Date(ms).toISOString(), title: fullTime(ms) }, text);

/** A shortened number with the exact one in its title. */
export const shortened = number => element('span', { title: count(number) }, short(number));
