import { call } from '../api/client';
import type { Session } from '../api/types';
import { clean, moment, t } from '../text/text';

/** What became of a question that is not asked any more, in a line; its id has that of the session. */
export async function becameOf(questionId: string): Promise<string> {
  const [session = '', round = ''] = questionId.split('.');
  try {
    const now = await call<Session>('GET', `/v1/sessions/${encodeURIComponent(session)}`);
    const step = now.history.find((h) => h.roundId === round);
    if (step) return t('question.became', { who: clean(step.specialistId ?? ''), transition: clean(step.transitionName), at: moment(step.executionTimestamp) });
    if (now.status !== 'needs_human') return t('question.ended', { status: now.status.replace('_', ' ') });
  } catch {
    // nor may they know more
  }
  return t('question.gone');
}
