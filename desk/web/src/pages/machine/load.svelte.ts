import { untrack } from 'svelte';
import { call } from '../../api/client';

// What a tab shows, and how far it is there. It is asked for anew whenever its address changes.

export class Loaded<T> {
  value = $state.raw<T>();
  problem = $state<Error>();
  #path = '';

  constructor(path: () => string) {
    $effect(() => {
      const at = path();
      untrack(() => void this.load(at));
    });
  }

  async load(path = this.#path): Promise<void> {
    this.#path = path;
    this.problem = undefined;
    try {
      const value = await call<T>('GET', path);
      if (path === this.#path) this.value = value;
    } catch (error) {
      if (path === this.#path) this.problem = error as Error;
    }
  }
}
