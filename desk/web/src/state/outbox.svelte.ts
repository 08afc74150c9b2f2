import { call, Problem, Unreachable } from '../api/client';
import { kindOf, numberOf } from '../api/json';
import type { Explanation, Item, Ruled } from '../api/types';
import type { Became } from './became';
import { inbox } from './inbox.svelte';
import { drafts, kept } from './kept.svelte';

// Words that are held back for some seconds before they are sent, so that they can be taken back.
// Each is sent with the digest of the question that was seen and a key of its own, so that a word
// that may have arrived is sent again without harm. Nothing is sent by a tab that is closed: the
// draft stays as long as the tab does, and says so; to a new one only that there was one is known.
// What is said of a closed round goes the same way.

/** What a word is about: a question, or a round to look at again. */
export type Asked = Pick<Item, 'questionId' | 'digest' | 'sessionId' | 'roundId' | 'machineName' | 'state' | 'subject' | 'prompt'>;

export interface Word {
  question: Asked;
  review?: boolean;
  seen?: boolean; // who reviews knows how it came out
  transition: string;
  reason: string;
  payload?: unknown;
  human: string;
  bulk?: boolean;
  looked?: number; // for how long it was looked at, in ms
}

export interface Held extends Word {
  id: string;
  until: number; // by this computer's clock
}

export interface Outcome {
  question: Asked;
  transition: string;
  pending: boolean;
  pick: string;
  p?: number; // of the pick
  margin?: number; // of its votes
  reviewed?: { agrees: boolean; was: string; moved: { who: string; from: number; to: number }[] };
  agreed: string[];
  differed: string[];
}

/** What became of a word that was not taken. */
export type Refusal =
  | { kind: 'changed'; question: Item }
  | { kind: 'decided'; what: string }
  | { kind: 'refused'; why: string }
  | { kind: 'offline' };

class Outbox {
  held = $state<Held[]>([]);
  outcome = $state<Outcome>();
  refused = $state<Record<string, Refusal>>({});
  told = $state<Record<string, string>>({}); // of words that were not taken: what they were about
  unsent = $state(drafts.unsent());
  lost = $state<string[]>([]); // addresses of questions on which a word was held by a tab that was closed for good
  now = $state(Date.now());
  readonly given = new Set<string>(); // questions on which there is a word: whose claim goes with them
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    this.#missed();
    addEventListener('storage', (e) => e.key === 'dialai.held' && this.#missed()); // another tab holds one, which may be closed
  }

  // A word that another tab holds is sent by then, or its tab is gone.
  #missed(): void {
    for (const [address, until] of Object.entries(kept.held)) {
      if (this.held.some((h) => addressOf(h) === address)) continue; // by this one
      const left = until + 5000 - Date.now();
      if (left > 0) {
        setTimeout(() => this.#missed(), left + 100);
        continue;
      }
      kept.hold(address);
      if (!Object.keys(this.unsent).some((id) => address.endsWith('/' + id))) this.lost = [...this.lost, address];
    }
  }

  /** Holds a word back, and sends it when its time has come. */
  hold(word: Word, seconds: number): void {
    const id = word.question.questionId;
    this.#forget(id);
    this.given.add(id);
    draft(word, about(word.question));
    const held = { ...word, id: crypto.randomUUID(), until: Date.now() + seconds * 1000 };
    kept.hold(addressOf(word), held.until);
    this.held = [...this.held, held];
    if (seconds <= 0) void this.send(held.id);
    this.#timer ??= setInterval(() => this.#due(), 100);
  }

  #due(): void {
    this.now = Date.now();
    for (const h of this.held) if (this.now >= h.until) void this.send(h.id);
    if (this.held.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Takes the newest word back that is held. */
  undo(id?: string): Held | undefined {
    const held = id ? this.held.find((h) => h.id === id) : this.held.at(-1);
    if (!held) return;
    this.held = this.held.filter((h) => h !== held);
    kept.hold(addressOf(held));
    this.given.delete(held.question.questionId);
    draft(held);
    return held;
  }

  async send(id: string): Promise<void> {
    const held = this.held.find((h) => h.id === id);
    if (!held) return;
    this.held = this.held.filter((h) => h !== held);
    const question = held.question.questionId;
    kept.hold(addressOf(held), Date.now() + 60_000); // it may not arrive, either
    const refused = await this.post(held, held.id);
    kept.hold(addressOf(held));
    if (!refused) {
      drafts.drop(question);
      return;
    }
    draft(held);
    this.given.delete(question);
    this.refused = { ...this.refused, [question]: refused };
    this.told = { ...this.told, [question]: about(held.question) };
  }

  /** Whoever has read what became of a word need not be told again. */
  heard(question: string): void {
    const without = (of: Record<string, string>) => Object.fromEntries(Object.entries(of).filter(([id]) => id !== question));
    this.told = without(this.told);
    this.unsent = without(this.unsent);
    this.lost = this.lost.filter((id) => id !== question);
  }

  /** Sends a word, and returns why it was not taken. */
  async post(word: Word, key: string): Promise<Refusal | undefined> {
    const q = word.question;
    const body: Record<string, unknown> = { transitionName: word.transition, roundId: q.roundId, questionDigest: q.digest };
    if (word.human) body.specialistId = word.human;
    if (word.reason) body.reasoning = word.reason;
    if (word.payload !== undefined) body.metaJson = word.payload;
    if (word.looked) body.looked = word.looked;
    if (word.bulk) body.bulk = true;
    for (let attempt = 0; ; attempt++) {
      try {
        if (word.review) {
          this.outcome = await (await import('./review')).review(word, key);
          inbox.finish(q.questionId);
          return undefined;
        }
        const ruled = await call<Ruled>('POST', `/v1/sessions/${q.sessionId}/decisions`, body, { idempotencyKey: key });
        inbox.finish(q.questionId);
        await this.#learn(word, ruled);
        return undefined;
      } catch (error) {
        if (error instanceof Unreachable && attempt < 2) {
          await new Promise((again) => setTimeout(again, 300));
          continue;
        }
        const refused = refusalOf(error);
        return refused.kind === 'decided' && !word.review ? { kind: 'decided', what: (await became(q.questionId)).line } : refused;
      }
    }
  }

  async #learn(word: Word, ruled: Ruled): Promise<void> {
    const { question: q, transition } = word;
    const executed = (ruled.arbitration as { executed?: boolean }).executed ?? false;
    const outcome: Outcome = { question: q, transition, pending: !executed, pick: '', agreed: [], differed: [] };
    if (executed) {
      try {
        const why = await call<Explanation>('GET', `/v1/sessions/${q.sessionId}/explain?round=${q.roundId}`);
        outcome.pick = why.ruling?.pick ?? '';
        const j = why.verdict?.judgement;
        if (j) outcome.p = numberOf(j.P[j.options.indexOf(outcome.pick)]);
        else if (why.verdict?.threshold !== undefined) outcome.margin = why.verdict.margin;
        for (const v of why.votes ?? []) (v.transition === transition ? outcome.agreed : outcome.differed).push(v.specialist);
      } catch {
        // what was learned is on the session's page
      }
    }
    if (!word.bulk) this.outcome = outcome;
  }

  /** Says at a question why something was not taken. */
  /** What was asked for of a question was not done; of one that is not open here, the foot says so. */
  refuse(question: string, error: unknown, elsewhere?: Asked): void {
    this.refused = { ...this.refused, [question]: refusalOf(error) };
    if (elsewhere) this.told = { ...this.told, [question]: about(elsewhere) };
  }

  clear(question: string): void {
    this.#forget(question);
  }

  #forget(question: string): void {
    if (!(question in this.refused)) return;
    const { [question]: _, ...rest } = this.refused;
    this.refused = rest;
  }
}

/** What became of a question; '' if that cannot be said now. */
export const became = (id: string): Promise<Became> => import('./became').then((m) => m.becameOf(id)).catch(() => ({ line: '' }));

export const addressOf = (word: Word): string => addressAt(word.question.questionId, word.review);
/** Where a question is, whatever is filtered. */
export const addressAt = (id: string, review = drafts.of(id)?.review): string => `/desk/${review ? 'reviews' : 'q'}/${encodeURIComponent(id)}`;
const draft = (of: Word, unsent?: string): void => drafts.keep(of.question.questionId, { digest: of.question.digest, choice: of.transition, reason: of.reason, payload: of.payload, review: of.review, unsent });
const about = (q: Asked): string => q.subject || q.prompt || q.state;

export function refusalOf(error: unknown): Refusal {
  if (error instanceof Unreachable) return { kind: 'offline' };
  if (!(error instanceof Problem)) return { kind: 'refused', why: String(error) };
  const question = error.body.question;
  if (error.code === 'stale_question' && kindOf(question) === 'object') return { kind: 'changed', question: question as Item };
  if (['stale_round', 'not_running', 'reviewed'].includes(error.code) || error.status === 404) return { kind: 'decided', what: error.detail || error.title };
  const reasons = Array.isArray(error.body.reasons) ? (error.body.reasons as { message?: string }[]).map((r) => r.message ?? '').filter(Boolean) : [];
  return { kind: 'refused', why: [error.detail || error.title, ...reasons, error.hint].filter(Boolean).join(' · ') };
}

export const outbox = new Outbox();
export const holdSeconds = (): number => kept.settings.hold;
