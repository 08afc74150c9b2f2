// Where the page is, by its address: links work as links do, and filters are in the query.

const base = '/desk/';

class Route {
  #url = $state(new URL(location.href));

  constructor() {
    addEventListener('popstate', () => (this.#url = new URL(location.href)));
    addEventListener('click', (e) => {
      const link = (e.target as Element | null)?.closest?.('a');
      if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
      if (link.target || link.origin !== location.origin || !link.pathname.startsWith(base)) return;
      if (link.hash && link.pathname === location.pathname) return;
      e.preventDefault();
      this.go(link.pathname + link.search);
    });
  }

  /** The parts of the path below /desk/. */
  get parts(): string[] {
    return this.#url.pathname.slice(base.length).split('/').filter(Boolean).map(decoded);
  }

  get search(): URLSearchParams {
    return this.#url.searchParams;
  }

  go(path: string, replace = false): void {
    if (path === location.pathname + location.search) return;
    if (replace) history.replaceState(null, '', path);
    else history.pushState(null, '', path);
    this.#url = new URL(location.href);
    if (!replace) scrollTo(0, 0);
  }

  /** Filters take the place of those that the address has. */
  filter(members: Record<string, string>): void {
    const next = new URLSearchParams(this.search);
    for (const [name, value] of Object.entries(members)) {
      if (value === '') next.delete(name);
      else next.set(name, value);
    }
    const text = next.toString();
    this.go(location.pathname + (text ? '?' + text : ''), true);
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Route();

// What is filtered stays while one goes through a list.
const within = (path: string, ...pages: string[]): string => base + path + (pages.includes(route.parts[0] ?? 'inbox') && route.search.size > 0 ? '?' + route.search.toString() : '');

export const to = {
  inbox: () => within('inbox', 'inbox', 'q'),
  question: (id: string) => within('q/' + encodeURIComponent(id), 'inbox', 'q'),
  reviews: () => within('reviews', 'reviews'),
  review: (id: string) => within('reviews/' + encodeURIComponent(id), 'reviews'),
  sessions: (filters: Record<string, string> = {}) => base + 'sessions' + (Object.keys(filters).length > 0 ? '?' + new URLSearchParams(filters).toString() : ''),
  session: (id: string) => base + 'sessions/' + encodeURIComponent(id),
  settings: () => base + 'settings',
};
