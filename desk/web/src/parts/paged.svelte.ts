import { call, query } from '../api/client';
import type { List } from '../api/types';

// A list that comes a page at a time: the first when it is loaded, each further one when it is asked for.
// What comes of another list than the one that is shown by then is dropped.

export class Paged<T> {
  items = $state.raw<T[]>();
  cursor = $state('');
  problem = $state<Error>();
  readonly #path: () => string;
  readonly #limit: number;
  readonly #more: Record<string, string>;

  constructor(path: () => string, limit: number, more: Record<string, string> = {}) {
    [this.#path, this.#limit, this.#more] = [path, limit, more];
  }

  async load(after = ''): Promise<void> {
    const of = this.#path();
    try {
      const page = await call<List<T>>('GET', of + query({ ...this.#more, limit: this.#limit, cursor: after }));
      if (of !== this.#path()) return;
      [this.items, this.cursor, this.problem] = [after ? [...(this.items ?? []), ...page.items] : page.items, page.nextCursor ?? '', undefined];
    } catch (error) {
      this.problem = error as Error;
    }
  }
}
