import '../text/pages';
import { call, query } from '../api/client';
import type { List, ReviewItem, Session } from '../api/types';
import { clean, moment, t } from '../text/text';
import { account } from './account.svelte';

export interface Became {
  line: string;
  review?: boolean;
}

/** The closed round of that id, if who has signed in is to look at it again. */
export async function reviewOf(id: string): Promise<ReviewItem | undefined> {
  const page = await call<List<ReviewItem>>('GET', '/v1/reviews' + query({ human: account.viewer, session: id.split('.')[0] ?? '', limit: 200 }));
  return page.items.find((r) => r.questionId === id && account.concerns(r.humans));
}

/** What became of a question that is not asked any more, in a line, and whether it waits for a review; its id has that of the session. */
export async function becameOf(questionId: string): Promise<Became> {
  const [session = '', round = ''] = questionId.split('.');
  try {
    if (await reviewOf(questionId)) return { line: t('reviews.waits'), review: true }; // blind, as there
    const now = await call<Session>('GET', `/v1/sessions/${encodeURIComponent(session)}`);
    const step = now.history.find((h) => h.roundId === round);
    if (step) return { line: t('question.became', { who: clean(step.specialistId ?? ''), transition: clean(step.transitionName), at: moment(step.executionTimestamp) }) };
    if (now.status !== 'needs_human') return { line: t('question.ended', { status: now.status.replace('_', ' ') }) };
  } catch {
    // nor may they know more
  }
  return { line: t('question.gone') };
}
