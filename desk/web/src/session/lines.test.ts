import { expect, test } from 'vitest';
import type { LogEvent } from '../api/types';
import { lineOf } from './lines';

const line = (kind: string, data: unknown) => lineOf({ v: 1, seq: 1, at: '', hash: '', kind, data } as LogEvent);

test('an event says in a few words what it is about', () => {
  expect(line('round_opened', { round: 3, attempt: 1, state: 'open' })).toBe('3.1 open');
  expect(line('asked', { asks: [{ specialistId: 'a' }, { specialistId: 'b' }] })).toBe('a, b');
  expect(line('proposed', { specialistId: 'a', transitionName: 'go' })).toBe('a: go');
  expect(line('executed', { fromState: 'x', toState: 'y', transitionName: 'go' })).toBe('x → y (go)');
  expect(line('ended', { status: 'stopped', code: 'max_steps', reason: 'too many' })).toBe('stopped max_steps · too many');
});

test('an event without texts, or of another version, says nothing', () => {
  for (const kind of ['round_opened', 'asked', 'proposed', 'judged', 'gated', 'executed', 'ended', 'something_new']) for (const data of [{}, null, 7, { asks: 'x' }]) expect(line(kind, data)).toBe('');
});
