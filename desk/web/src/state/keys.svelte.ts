import { untrack } from 'svelte';
import type { Key } from '../text/text';
import { kept } from './kept.svelte';

// Single keys. What a page does with a key it says while it is there; the newest that takes one has
// it. They are dead while somebody types, and where they are switched off, but for Escape.

export interface Binding {
  keys: string[];
  does: Key;
  dialog?: boolean; // while one is open, when all else is dead
  off?: () => boolean; // there is nothing for it to do, or nobody who may
  run: (key: string) => boolean | void; // false: it is not for it
}

class Keys {
  layers = $state.raw<Binding[][]>([]); // as they are: a proxy of one is not it
  #go = 0;

  constructor() {
    addEventListener('keydown', (e) => this.#pressed(e));
  }

  /** Adds bindings until what it returns is called. */
  use(bindings: Binding[]): () => void {
    untrack(() => (this.layers = [...this.layers, bindings]));
    return () => untrack(() => (this.layers = this.layers.filter((l) => l !== bindings)));
  }

  #pressed(e: KeyboardEvent): void {
    if (e.defaultPrevented || e.isComposing || e.altKey || e.metaKey) return;
    const on = (e.composedPath()[0] ?? e.target) as HTMLElement | null; // the editor has a root of its own
    const typing = on?.matches?.('input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable=true]') ?? false;
    let key = e.ctrlKey ? 'Ctrl+' + e.key : e.shiftKey && e.key.startsWith('Arrow') ? 'Shift+' + e.key : e.key;
    if (e.ctrlKey && key !== 'Ctrl+Enter') return;
    if (key === 'Escape' && on?.matches?.('select')) return on.blur(); // keys are keys again
    if (typing && !['Escape', 'Ctrl+Enter'].includes(key) && !(key === '/' && on?.matches('select'))) return;
    if (key === 'Enter' && on?.matches?.('button, a, summary, input, select')) return;
    const letter = key.length === 1;
    if (letter && !kept.settings.keys) return;
    const dialog = document.querySelector('dialog[open]') !== null;
    if (dialog && key === 'Escape') return; // closes it
    if (key === 'g' && !dialog) {
      this.#go = Date.now();
      return;
    }
    if (letter && Date.now() - this.#go < 1500) key = 'g ' + key;
    this.#go = 0;
    for (const layer of [...this.layers].reverse()) {
      for (const b of layer) {
        if ((b.dialog ?? false) === dialog && b.keys.includes(key) && b.run(key) !== false) {
          e.preventDefault();
          return;
        }
      }
    }
  }
}

export const keys = new Keys();

/** To where one finds a choice among many, else an entry of the list. */
const field = (): HTMLElement | null => document.querySelector<HTMLElement>('article [data-search]') ?? document.querySelector<HTMLElement>('[data-search]');
export const search: Binding = { keys: ['/'], does: 'keys.search', off: () => !field(), run: () => field()?.focus() };
