import { untrack } from 'svelte';
import { call, Unreachable } from '../../api/client';
import { clock } from '../../state/clock.svelte';

// What a tab shows, and how far it is there. It is asked for anew whenever its address changes; what is
// there stays while the server cannot be reached.

/** What is on its way for the tab, how much has come, and when. */
export const tab = $state({ busy: 0, seq: 0, at: 0 });

export class Loaded<T> {
  value = $state.raw<T>();
  problem = $state<Error>();
  #path = '';
  #of = ''; // of the value

  constructor(path: () => string) {
    $effect(() => {
      const at = path();
      untrack(() => void this.load(at));
    });
  }

  async load(path = this.#path): Promise<void> {
    this.#path = path;
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
    }
  }
}
