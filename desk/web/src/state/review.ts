import { call, query } from '../api/client';
import { numberOf } from '../api/json';
import type { Explanation, List, Reviewed, Trusted } from '../api/types';
import type { Outcome, Word } from './outbox.svelte';

// What is said of a closed round, and what that moves: what everybody's word counts for, before and
// after.

const befores = new Map<string, Map<string, number>>(); // by the key of a word

async function trusted(word: Word): Promise<Map<string, number>> {
  try {
    const { machineName, state } = word.question;
    const list = await call<List<Trusted>>('GET', `/v1/machines/${encodeURIComponent(machineName)}/trust` + query({ state }));
    return new Map(list.items.filter((x) => !x.human && x.state === state).map((x) => [x.specialist, numberOf(x.trust)]));
  } catch {
    return new Map(); // it is on the machine's page
  }
}

/** What was executed in the round, of which alone it is asked: others may wait to be reviewed; '' if that is not to be seen yet. */
async function decidedIn(word: Word): Promise<string> {
  try {
    const why = await call<Explanation>('GET', `/v1/sessions/${word.question.sessionId}/explain` + query({ round: word.question.roundId }));
    return why.executed ?? '';
  } catch {
    return '';
  }
}

/** Sends a review; the same key sends the same one again. */
export async function review(word: Word, key: string): Promise<Outcome> {
  const { question: q, transition } = word;
  const before = befores.get(key) ?? (await trusted(word));
  befores.set(key, before); // if the answer is lost, the same is sent again, and may have moved it already
  const body = { transitionName: transition, ...(word.human && { specialistId: word.human }), ...(word.reason && { reasoning: word.reason }), ...(word.seen && { seen: true }), ...(word.looked && { looked: word.looked }) };
  const was = await call<Reviewed>('POST', '/v1/reviews/' + encodeURIComponent(q.questionId), body, { idempotencyKey: key });
  const decided = was.agrees ? transition : await decidedIn(word);
  const agrees = was.agrees || decided === transition; // of an adjudication the server says which of two humans it is
  befores.delete(key);
  const moved = [...(await trusted(word))].flatMap(([who, to]) => {
    const from = before.get(who) ?? to;
    return Math.abs(from - to) < 0.005 ? [] : [{ who, from, to }];
  });
  return { question: q, transition, pending: false, pick: '', agreed: [], differed: [], reviewed: { agrees, was: decided, moved } };
}
