import { search, type Binding } from '../../state/keys.svelte';

// Through what a page of machines lists, by j and k: to what can be pressed in an entry, else to itself.

const entries = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('main :is(tbody > tr, section.series, section.card, .versions > li, ul[data-state] > li)')].filter((e) => e.checkVisibility());

function move(by: number): boolean {
  const list = entries();
  const next = list[Math.max(0, list.findLastIndex((e) => e.contains(document.activeElement)) + by)];
  const on = next?.querySelector<HTMLElement>('a, button:enabled, [tabindex="0"]') ?? next;
  if (on === next && next) next.tabIndex = -1;
  on?.focus();
  return on !== undefined;
}

export const through: Binding[] = [
  { keys: ['j'], does: 'keys.entries', off: () => entries().length === 0, run: () => move(1) },
  { keys: ['k'], does: 'keys.entries', off: () => entries().length === 0, run: () => move(-1) },
  search,
];
