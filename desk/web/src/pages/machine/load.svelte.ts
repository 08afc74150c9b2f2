import { untrack } from 'svelte';
import { call, Unreachable } from '../../api/client';
import { stringify } from '../../api/json';
import { live } from '../../live/live.svelte';
import { clock } from '../../state/clock.svelte';

// What a page of machines shows, and how far it is there. It is asked for anew whenever its address
// changes; what is there stays while the server cannot be reached. What is other after something has
// happened waits until somebody wants to see it: nothing moves that is being read.

const pause = 3000; // ms between two looks, however much happens

/** What is on its way for the tab, how much has come, when, and whether other figures wait. */
export const tab = $state({ busy: 0, seq: 0, at: 0, news: false });

const all = new Set<Loaded<unknown>>();
const count = (): void => void (tab.news = [...all].some((l) => l.waiting));

/** Looks for other figures whenever something happens, and once it is told of that, until what it returns is called. */
export function follow(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = () => (timer ??= setTimeout(() => ((timer = undefined), all.forEach((l) => void l.look())), pause));
  const stop = live.follow('/v1/events?payload=none', heard, heard, heard);
  return () => {
    stop();
    clearTimeout(timer);
  };
}

/** Shows the figures that wait. */
export function show(): void {
  for (const l of all) l.take();
}

export class Loaded<T> {
  value = $state.raw<T>();
  problem = $state<Error>();
  #path = '';
  #of = ''; // of the value
  #next: { value: T; of: string } | undefined; // which waits

  constructor(path: () => string) {
    $effect(() => {
      const at = path();
      untrack(() => void this.load(at));
    });
    $effect(() => {
      all.add(this);
      return () => {
        all.delete(this);
        untrack(count);
      };
    });
  }

  get waiting(): boolean {
    return this.#next?.of === this.#path;
  }

  async load(path = this.#path): Promise<void> {
    this.#path = path;
    this.#next = undefined;
    this.problem = undefined;
    tab.busy++;
    try {
      const value = await call<T>('GET', path);
      if (path === this.#path) [this.value, this.#of, tab.at] = [value, path, clock.now];
    } catch (error) {
      if (path === this.#path && !(error instanceof Unreachable && this.#of === path)) this.problem = error as Error;
    } finally {
      tab.busy--;
      tab.seq++;
      count();
    }
  }

  /** Asks again, beside what is shown. */
  async look(): Promise<void> {
    const of = this.#path;
    try {
      const value = await call<T>('GET', of);
      if (of === this.#path) this.#next = this.problem || stringify(value) !== stringify(this.value) ? { value, of } : undefined;
    } catch {
      // what is shown stays
    }
    count();
  }

  take(): void {
    if (this.#next && this.waiting) [this.value, this.#of, this.problem, tab.at] = [this.#next.value, this.#path, undefined, clock.now];
    this.#next = undefined;
    tab.seq++;
    count();
  }
}
