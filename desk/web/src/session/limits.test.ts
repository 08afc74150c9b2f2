import { expect, test } from 'vitest';
import { limitsOf, stops } from './limits';

const machine = {
  guards: { limits: { max_steps: 3 }, budget: { hard_limit_usd: 0.5, no_progress_ms: 1000 }, tool_calls: { blast_radius: { rm: 1 } } },
  states: { a: {}, b: { guards: { limits: { max_steps: 9 } } } },
};
const values = (currentState: string, raised: object[] = [], code = '') => limitsOf({ machine, currentState, raised, code } as never).map((l) => [l.name, l.value]);

test('limits are those of the machine, and of a state before', () => {
  expect(values('a')).toEqual([['limits.max_steps', 3], ['budget.hard_limit_usd', 0.5], ['budget.no_progress_ms', 1000], ['tool_calls.blast_radius.rm', 1]]);
  expect(values('b')[0]).toEqual(['limits.max_steps', 9]);
});

test('what was raised counts, but for a state with a limit of its own', () => {
  const raised = [{ limit: 'limits.max_steps', state: 'a', from: 3, to: 5 }];
  expect(values('a', raised)[0]).toEqual(['limits.max_steps', 5]);
  expect(values('b', raised)[0]).toEqual(['limits.max_steps', 9]);
});

test('the limit that has stopped it comes first', () => {
  const [first] = limitsOf({ machine, currentState: 'a', raised: [], code: 'budget_usd' } as never);
  expect(first).toMatchObject({ name: 'budget.hard_limit_usd', unit: 'dollars' });
  expect(stops(first!, 'budget_usd')).toBe(true);
});

test('a machine without guards has no limits', () => {
  expect(limitsOf({ machine: undefined, currentState: 'a', code: undefined } as never)).toEqual([]);
});
