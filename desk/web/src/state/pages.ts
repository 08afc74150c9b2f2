// The pages, and the letter that leads to each after g.

export const pages = [
  { path: 'inbox', key: 'i', name: 'nav.inbox' },
  { path: 'reviews', key: 'r', name: 'nav.reviews' },
  { path: 'sessions', key: 's', name: 'nav.sessions' },
  { path: 'machines', key: 'm', name: 'nav.machines' },
  { path: 'edit', key: 'e', name: 'nav.edit' },
  { path: 'settings', key: ',', name: 'nav.settings' },
] as const;
