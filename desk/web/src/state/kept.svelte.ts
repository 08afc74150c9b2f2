import { parse, stringify } from '../api/json';

// What the browser keeps: settings for as long as it likes, under one name; drafts and who speaks
// for as long as the tab is there. Signing out forgets all of it. A browser that keeps nothing
// is one that forgets.

export interface Settings {
  theme: 'system' | 'light' | 'dark';
  hold: number; // seconds
  keys: boolean; // single letters and digits do something
  notify: boolean;
  quietFrom: string; // time of day from which nothing is told, 22:00; empty for never
  quietTo: string;
  swipe: boolean; // of two reversible choices on a telephone
}

const defaults: Settings = { theme: 'system', hold: 3, keys: true, notify: false, quietFrom: '', quietTo: '', swipe: false };

function read<T>(storage: Storage | undefined, name: string, or: T): T {
  try {
    const text = storage?.getItem('dialai.' + name);
    return text ? (parse(text) as T) : or;
  } catch {
    return or;
  }
}

function write(storage: Storage | undefined, name: string, value: unknown): void {
  try {
    if (value === undefined) storage?.removeItem('dialai.' + name);
    else storage?.setItem('dialai.' + name, stringify(value));
  } catch {
    // it is full, or refused
  }
}

const local = (): Storage | undefined => globalThis.localStorage;
const tab = (): Storage | undefined => globalThis.sessionStorage;

class Kept {
  settings = $state<Settings>({ ...defaults, ...read<Partial<Settings>>(local(), 'settings', {}) });
  human = $state(read(tab(), 'human', ''));

  set(change: Partial<Settings>): void {
    this.settings = { ...this.settings, ...change };
    write(local(), 'settings', this.settings);
  }

  speakAs(human: string): void {
    this.human = human;
    write(tab(), 'human', human);
  }

  /** Where words are held, and until when: neither what they say nor of what. */
  get held(): Record<string, number> {
    return read(local(), 'held', {});
  }

  hold(address: string, until = 0): void {
    const { [address]: _, ...others } = this.held;
    const all = until ? { ...others, [address]: until } : others;
    write(local(), 'held', Object.keys(all).length > 0 ? all : undefined);
  }

  get token(): string {
    return read(local(), 'token', '');
  }

  set token(value: string) {
    write(local(), 'token', value || undefined);
  }

  /** After how long without a call one is signed out, in ms; 0 if never. */
  get idle(): number {
    return read(local(), 'idle', 0);
  }

  set idle(value: number) {
    write(local(), 'idle', value || undefined);
  }

  /** Where somebody was who left to sign in elsewhere. */
  get place(): string {
    return read(tab(), 'place', '');
  }

  set place(value: string) {
    write(tab(), 'place', value || undefined);
  }

  forget(): void {
    this.token = '';
    this.idle = 0;
    this.human = '';
    write(local(), 'held', undefined);
    for (const name of Object.keys(tab() ?? {})) if (name.startsWith('dialai.')) tab()?.removeItem(name);
  }
}

export const kept = new Kept();

/** What somebody has begun to answer, by the question as they saw it. */
export interface Draft {
  digest: string;
  choice: string;
  reason: string;
  payload?: unknown;
  review?: boolean; // of a closed round
  unsent?: string; // what it was about, if it was being held as the tab was closed
}

export const drafts = {
  of: (question: string): Draft | undefined => read<Draft | undefined>(tab(), 'draft.' + question, undefined),
  keep: (question: string, draft: Draft): void => write(tab(), 'draft.' + question, draft),
  drop: (question: string): void => write(tab(), 'draft.' + question, undefined),
  /** What was being held as the tab was closed, by its question. */
  unsent: (): Record<string, string> => {
    const names = Object.keys(tab() ?? {}).filter((name) => name.startsWith('dialai.draft.')).map((name) => name.slice('dialai.draft.'.length));
    return Object.fromEntries(names.flatMap((name) => (drafts.of(name)?.unsent ? [[name, drafts.of(name)?.unsent ?? '']] : [])));
  },
};
