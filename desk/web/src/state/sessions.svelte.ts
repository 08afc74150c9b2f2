import { call, query } from '../api/client';
import { parse } from '../api/json';
import { patient } from '../api/patient';
import type { List, Summary } from '../api/types';
import { live } from '../live/live.svelte';
import { clock } from './clock.svelte';

// The sessions of a list, the newest first, a page after the other. What happens to those that are
// listed is said where they stand; what has come since is counted, and comes in when somebody says so.

export interface Filters {
  machine: string;
  state: string;
  status: string;
  since: string;
  q: string; // how a subject or an id begins
}

export const statuses = ['running', 'needs_human', 'completed', 'stopped', 'failed'];

/** How far back a list goes, by what the address says. */
export const spans: Record<string, number> = { '1h': 3600_000, '24h': 24 * 3600_000, '7d': 7 * 24 * 3600_000, '30d': 30 * 24 * 3600_000 };

/** As many as are listed at all. */
export const most = 10_000;
const ahead = 200;

const isID = (q: string): boolean => /^[0-9a-f]{6,8}(-[0-9a-f-]*)?$/i.test(q) && q.length <= 36;

class Sessions {
  rows = $state.raw<Summary[]>([]);
  fresh = $state.raw<Summary[]>([]); // not in the list yet
  cursor = $state('');
  phase = $state<'loading' | 'error' | 'full'>('loading');
  problem = $state<Error>();
  filling = $state(false); // more pages are being loaded
  at = $state(0);
  seq = $state(0);
  #filters: Filters = { machine: '', state: '', status: '', since: '', q: '' };
  #by: 'id' | 'subject' = 'subject';
  #places = new Map<string, number>();
  #loading: AbortController | undefined;
  #stop: (() => void) | undefined;
  #dirty = ''; // since when something has changed
  #timer: ReturnType<typeof setTimeout> | undefined;

  async open(filters: Filters): Promise<void> {
    this.#filters = filters;
    this.#stop ??= live.follow(
      '/v1/events?payload=none',
      (e) => this.#heard((parse(e.data) as { sessionId?: string; at?: string }) ?? {}),
      () => void this.reload(),
    );
    this.rows = [];
    await this.reload();
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#loading?.abort();
    this.rows = [];
  }

  /** Why the filters cannot hold for any session: the name of the one that is not known. */
  get unknown(): '' | 'status' | 'since' {
    const { status, since } = this.#filters;
    return status && !statuses.includes(status) ? 'status' : since && !Object.hasOwn(spans, since) ? 'since' : '';
  }

  #query(by: 'id' | 'subject'): Record<string, string | number | undefined> {
    const { machine, state, status, since, q } = this.#filters;
    return { machine, state, status, [by]: q, createdAfter: since ? new Date(clock.now - (spans[since] ?? 0)).toISOString() : undefined, limit: ahead };
  }

  async reload(): Promise<void> {
    this.#loading?.abort();
    const loading = (this.#loading = new AbortController());
    if (this.rows.length === 0) this.phase = 'loading';
    this.fresh = [];
    if (this.unknown) {
      this.#put([], '');
      return;
    }
    try {
      this.#by = isID(this.#filters.q) ? 'id' : 'subject';
      let page = await this.#page('', loading.signal);
      if (page.items.length === 0 && this.#by === 'id') {
        this.#by = 'subject';
        page = await this.#page('', loading.signal);
      }
      this.#put(page.items, page.nextCursor ?? '');
    } catch (error) {
      if (loading.signal.aborted) return;
      this.problem = error as Error;
      if (this.rows.length === 0) this.phase = 'error';
    }
    this.seq++;
  }

  #page(cursor: string, signal: AbortSignal): Promise<List<Summary>> {
    return patient(() => call<List<Summary>>('GET', '/v1/sessions' + query({ ...this.#query(this.#by), cursor }), undefined, { signal }));
  }

  #put(rows: Summary[], cursor: string): void {
    [this.rows, this.cursor, this.phase, this.problem, this.at] = [rows, cursor, 'full', undefined, clock.now];
    this.#places = new Map(rows.map((r, i) => [r.sessionId, i]));
    this.seq++;
  }

  /** Another page; whether there may be more. */
  async more(): Promise<boolean> {
    if (this.filling || !this.cursor || this.rows.length >= most || !this.#loading) return false;
    const { signal } = this.#loading;
    this.filling = true;
    try {
      const page = await this.#page(this.cursor, signal);
      if (signal.aborted) return false;
      this.#put([...this.rows, ...page.items.filter((r) => !this.#places.has(r.sessionId))], page.nextCursor ?? '');
      return this.cursor !== '';
    } catch (error) {
      if (!signal.aborted) this.problem = error as Error;
      return false;
    } finally {
      this.filling = false;
    }
  }

  /** All pages, as far as the list goes. */
  async all(): Promise<void> {
    while (await this.more()) if (this.rows.length >= most) return;
  }

  /** What has come since comes into the list. */
  show(): void {
    const rows = [...this.fresh, ...this.rows].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
    this.fresh = [];
    this.#put(rows, this.cursor);
  }

  #heard(e: { sessionId?: string; at?: string }): void {
    if (!e.sessionId || !e.at || this.phase !== 'full') return;
    if (!this.#dirty || e.at < this.#dirty) this.#dirty = e.at;
    this.#timer ??= setTimeout(() => void this.#look(), 700);
  }

  /** Asks for what has changed; what comes at once is asked for at once. */
  async #look(): Promise<void> {
    const since = Date.parse(this.#dirty) - 1;
    this.#dirty = '';
    const loading = this.#loading;
    try {
      let cursor = '';
      for (let pages = 0; pages < 5; pages++) {
        const page = await call<List<Summary>>('GET', '/v1/sessions' + query({ machine: this.#filters.machine, updatedAfter: new Date(since).toISOString(), limit: ahead, cursor }), undefined, { signal: loading?.signal });
        if (loading !== this.#loading) return;
        this.#take(page.items);
        cursor = page.nextCursor ?? '';
        if (!cursor) break;
      }
    } catch {
      // the next event asks again
    } finally {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      if (this.#dirty) this.#timer = setTimeout(() => void this.#look(), 700);
    }
  }

  #take(items: Summary[]): void {
    const oldest = this.cursor ? (this.rows.at(-1)?.createdAt ?? '') : '';
    let rows: Summary[] | undefined;
    let fresh: Summary[] | undefined;
    for (const item of items) {
      const place = this.#places.get(item.sessionId);
      if (place !== undefined) (rows ??= [...this.rows])[place] = item;
      else if (item.createdAt >= oldest && this.#matches(item)) {
        fresh ??= this.fresh;
        fresh = [...fresh.filter((f) => f.sessionId !== item.sessionId), item];
      } else if (this.fresh.some((f) => f.sessionId === item.sessionId)) fresh = (fresh ?? this.fresh).filter((f) => f.sessionId !== item.sessionId);
    }
    if (rows) this.rows = rows;
    if (fresh) this.fresh = fresh;
    if (rows || fresh) this.seq++;
  }

  #matches(s: Summary): boolean {
    const { machine, state, status, q } = this.#filters;
    const begins = (this.#by === 'id' ? s.sessionId : (s.subject ?? '')).toLowerCase().startsWith(q.toLowerCase());
    return (!machine || s.machineName === machine) && (!state || s.currentState === state) && (!status || s.status === status) && begins;
  }
}

export const sessions = new Sessions();
