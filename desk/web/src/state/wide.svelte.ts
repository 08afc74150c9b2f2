// Whether there is room for a list and what is chosen of it side by side: parts/Split.svelte.

const room = matchMedia('(width >= 60rem)');

class Wide {
  is = $state(room.matches);

  constructor() {
    room.addEventListener('change', () => (this.is = room.matches));
  }
}

export const wide = new Wide();
