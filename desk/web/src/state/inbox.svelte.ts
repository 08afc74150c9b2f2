import { call, query } from '../api/client';
import { parse } from '../api/json';
import type { InboxEvent, Item, List, ReviewItem } from '../api/types';
import { live } from '../live/live.svelte';
import { t } from '../text/text';
import { account } from './account.svelte';

// The questions that wait, a page after the other. What comes in while somebody reads is counted
// and comes into the list when they say so; what is done is marked where it stands. Nothing moves
// under a hand.

export interface Filters {
  machine: string;
  state: string;
  subject: string; // how it begins
  whose: string; // 'true' for one's own, 'free' for those and what nobody else is at
}

export const everything: Filters = { machine: '', state: '', subject: '', whose: '' };

const counted = 200; // and no further

class Inbox {
  opened: (question: Item) => void = () => {}; // is told of each that comes to wait
  items = $state.raw<Item[]>([]);
  waiting = $state.raw<Item[]>([]); // not in the list yet
  done = $state<Record<string, true>>({});
  cursor = $state('');
  #all = $state.raw<ReadonlySet<string>>(new Set()); // what waits, without filters, as far as it is counted
  reviews = $state.raw<ReadonlySet<string>>(new Set()); // rounds to look at again, as far as they are counted
  phase = $state<'loading' | 'error' | 'full'>('loading');
  problem = $state<Error>();
  at = $state(0); // when it was loaded
  seq = $state(0); // counts what was taken up
  #filters: Filters = everything;
  #loading: AbortController | undefined;
  #stop: (() => void) | undefined;
  #meanwhile: InboxEvent[] | undefined; // what comes while a page is on its way, which may not know of it
  #counting: InboxEvent[] | undefined; // and while the counts are

  /** How many wait, as far as they are counted. */
  get count(): number {
    return this.#all.size;
  }

  /** Loads the first page, and follows what comes. */
  async open(filters: Filters): Promise<void> {
    this.#filters = filters;
    this.#stop ??= live.follow(
      '/v1/inbox/events' + query({ human: account.viewer }),
      (e) => this.#heard(parse(e.data) as InboxEvent),
      () => void this.reload(),
    );
    await this.reload();
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  /** As somebody else: all is asked for anew. */
  async again(): Promise<void> {
    this.close();
    await this.open(this.#filters);
  }

  async reload(): Promise<void> {
    this.#loading?.abort();
    const loading = (this.#loading = new AbortController());
    const meanwhile = (this.#meanwhile = [] as InboxEvent[]);
    if (this.items.length === 0) this.phase = 'loading';
    try {
      const page = await this.#page('', loading.signal);
      this.items = page.items;
      this.cursor = page.nextCursor ?? '';
      this.waiting = [];
      this.done = {};
      this.phase = 'full';
      this.problem = undefined;
      this.at = Date.now();
      if (this.#meanwhile === meanwhile) this.#meanwhile = undefined;
      for (const e of meanwhile) this.#heard(e, true);
      void this.#count(loading.signal);
    } catch (error) {
      if (loading.signal.aborted) return;
      this.#meanwhile = undefined;
      this.problem = error as Error;
      if (this.items.length === 0) this.phase = 'error';
    }
    this.seq++;
  }

  // How many there are, for the names of the pages: [counted] and more are not told apart.
  async #count(signal: AbortSignal): Promise<void> {
    const meanwhile = (this.#counting = [] as InboxEvent[]);
    try {
      const [all, reviews] = await Promise.all([
        call<List<Item>>('GET', '/v1/inbox' + query({ human: account.viewer, limit: counted }), undefined, { signal }),
        call<List<ReviewItem>>('GET', '/v1/reviews' + query({ human: account.viewer, limit: counted }), undefined, { signal }),
      ]);
      this.#all = new Set(all.items.map((i) => i.questionId));
      this.reviews = new Set(reviews.items.filter((r) => account.concerns(r.humans)).map((r) => r.questionId));
      for (const e of meanwhile) this.#tally(e);
    } catch {
      // the page says what does not work
    }
    if (this.#counting === meanwhile) this.#counting = undefined;
  }

  // What an event does to the counts.
  #tally(e: InboxEvent): void {
    switch (e.kind) {
      case 'question.opened':
        this.#all = new Set(this.#all).add(e.questionId);
        break;
      case 'review.opened':
        if (e.review && account.concerns(e.review.humans)) this.reviews = new Set(this.reviews).add(e.questionId);
        break;
      case 'question.closed':
      case 'review.closed':
        this.#uncount(e.questionId);
    }
  }

  #uncount(id: string): void {
    this.#all = new Set([...this.#all].filter((of) => of !== id));
    this.reviews = new Set([...this.reviews].filter((of) => of !== id));
  }

  async more(): Promise<void> {
    if (!this.cursor) return;
    const page = await this.#page(this.cursor);
    const have = new Set(this.items.map((i) => i.questionId));
    this.items = [...this.items, ...page.items.filter((i) => !have.has(i.questionId))];
    this.cursor = page.nextCursor ?? '';
    this.seq++;
  }

  async #page(cursor: string, signal?: AbortSignal): Promise<List<Item>> {
    const { machine, state, subject, whose } = this.#filters;
    if (!['', 'free', 'true'].includes(whose)) return { items: [] };
    const viewer = account.viewer;
    return call<List<Item>>('GET', '/v1/inbox' + query({ machine, state, subject, human: viewer, unclaimed: whose === 'free', mine: whose === 'true', limit: 50, cursor }), undefined, { signal });
  }

  /** What came in while somebody read comes into the list, at its end. */
  show(): void {
    const have = new Set(this.items.map((i) => i.questionId));
    this.items = [...this.items.filter((i) => !this.done[i.questionId]), ...this.waiting.filter((i) => !have.has(i.questionId))];
    this.waiting = [];
    this.seq++;
  }

  /** A question as the list has it. */
  item(id: string): Item | undefined {
    return this.items.find((i) => i.questionId === id) ?? this.waiting.find((i) => i.questionId === id);
  }

  /** The next one that waits behind a question. */
  after(id: string): Item | undefined {
    const at = this.items.findIndex((i) => i.questionId === id);
    const open = (i: Item) => !this.done[i.questionId] && i.questionId !== id;
    return this.items.slice(at + 1).find(open) ?? this.items.slice(0, Math.max(at, 0)).find(open);
  }

  /** Takes a question that was asked for: who is at it is heard, and what is heard may be newer. */
  asked(item: Item): void {
    const now = this.item(item.questionId);
    if (now) this.take(live.state === 'live' ? { ...item, claim: now.claim } : item);
  }

  take(item: Item): void {
    this.items = this.items.map((i) => (i.questionId === item.questionId ? item : i));
  }

  finish(id: string): void {
    this.#uncount(id);
    const ids = [...Object.keys(this.done), id];
    this.done = Object.fromEntries(ids.filter((q, i) => i > ids.length - 99 || this.item(q)).map((q) => [q, true])); // of others nobody asks any more
    this.waiting = this.waiting.filter((i) => i.questionId !== id);
    this.seq++;
  }

  #matches(item: Item): boolean {
    const { machine, state, subject, whose } = this.#filters;
    return (!machine || item.machineName === machine) && (!state || item.state === state) && (item.subject ?? '').startsWith(subject) && (!whose || account.owns(item.claim) || (whose === 'free' && !item.claim));
  }

  // What has become one's own, or free, comes to those that are asked for by whose they are.
  async #gained(id: string): Promise<void> {
    const item = await call<Item>('GET', '/v1/inbox/' + id + query({ human: account.viewer })).catch(() => undefined);
    if (item && this.#matches(item) && !this.item(id) && !this.done[id]) this.waiting = [...this.waiting, item];
  }

  // How many there are and of which machine, to who looks elsewhere: every half minute at most.
  #heard(e: InboxEvent, again = false): void {
    this.#meanwhile?.push(e);
    if (!again) this.#counting?.push(e);
    this.#tally(e);
    switch (e.kind) {
      case 'question.opened':
        if (!e.question || this.item(e.questionId)) break;
        if (!again) this.opened(e.question); // whatever is filtered
        if (this.#matches(e.question)) this.waiting = [...this.waiting, e.question];
        break;
      case 'question.changed':
        if (e.question) this.take(e.question);
        break;
      case 'question.closed':
      case 'review.closed':
        this.finish(e.questionId);
        break;
      case 'claim.changed': {
        const item = this.item(e.questionId);
        if (item) this.take({ ...item, claim: e.claim });
        else if (this.#filters.whose) void this.#gained(e.questionId);
      }
    }
    this.seq++;
  }
}

export const inbox = new Inbox();

/** A count as it is shown. */
export const shown = (n: number): string => (n >= counted ? counted + '+' : String(n));

/** The title of a page, with how many questions wait. */
export const titled = (page: string): string => `${inbox.count > 0 ? `(${shown(inbox.count)}) ` : ''}${page} · ${t('app.name')}`;
