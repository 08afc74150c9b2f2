import words from './en.json';

// All words are in en*.json, by key: what the inbox needs in en.json, those of pages that are loaded later come
// with them (learn). {name} in a text is a member of what is given with it; a text that is an object has a form
// for each plural of n. Names and reasons that come from elsewhere are never looked up here: they are data.

export type Key =
  | keyof typeof words
  | keyof typeof import('./en.edit.json')
  | keyof typeof import('./en.form.json')
  | keyof typeof import('./en.machine.json')
  | keyof typeof import('./en.pages.json')
  | keyof typeof import('./en.acts.json')
  | keyof typeof import('./en.session.json')
  | keyof typeof import('./en.sessions.json');
type Entry = string | Record<string, string>;
type Given = Record<string, string | number>;

const pseudo = new URLSearchParams(location.search).get('lang') === 'qps';
export const language = pseudo ? 'en' : 'en';
const all: Record<string, Entry> = { ...words };
const plurals = new Intl.PluralRules(language);
const numbers = new Intl.NumberFormat(language);

export const rightToLeft = pseudo;

/** Takes up the words of a page that was loaded. */
export function learn(words: Record<string, Entry>): void {
  Object.assign(all, words);
}

/** Whether there is a text of a key that is made of data. */
export function has(key: string): key is Key {
  return Object.hasOwn(all, key);
}

/** The text of a key. */
export function t(key: Key, given: Given = {}): string {
  const entry = all[key] ?? (console.error('no text is loaded of ' + key), '');
  const text = typeof entry === 'string' ? entry : (entry[plurals.select(Number(given.n))] ?? entry.other ?? '');
  return filled(pseudo ? longer(text) : text, given);
}

export function filled(text: string, given: Given): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = given[name];
    return typeof value === 'number' ? numbers.format(value) : (value ?? '');
  });
}

// longer is a text as in a language that needs more room.
function longer(text: string): string {
  const more = Array.from({ length: Math.ceil(text.length * 0.4) }, (_, i) => (i % 8 === 7 ? ' ' : '~')).join('');
  return `[${text}${more}~]`;
}

/** A span of time in words, the two largest units at most. */
export function lasting(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m] = [Math.floor(s / 86400), Math.floor((s % 86400) / 3600), Math.floor((s % 3600) / 60)];
  if (d > 0) return h > 0 && d < 10 ? t('span.dh', { d, h }) : t('span.d', { d });
  if (h > 0) return m > 0 && h < 10 ? t('span.hm', { h, m }) : t('span.h', { h });
  return m > 0 ? t('span.m', { m }) : t('span.s', { s });
}

const lists = new Intl.ListFormat(language, { style: 'short', type: 'unit' });

/** Several as one text: a, b, c. */
export const listed = (of: string[]): string => lists.format(of);

const dates = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' });

/** A moment as people write it. */
export function moment(at: string): string {
  const ms = Date.parse(at);
  return Number.isNaN(ms) ? at : dates.format(ms);
}

// What is seen of characters that a terminal or a browser would obey, or not show: the command line
// hides the same ones. Joiners stay, which scripts and pictures are made of.
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu;
const stay = '\t\n\u200c\u200d';

/** A text from elsewhere: what would be obeyed and not seen is a visible mark. */
export function clean(text: string): string {
  return text.replace(unseen, (c) => {
    const code = c.codePointAt(0) ?? 0;
    if (stay.includes(c)) return c;
    if (code < 0x20 || code === 0x7f) return String.fromCodePoint(code === 0x7f ? 0x2421 : 0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}
