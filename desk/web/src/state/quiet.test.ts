import { expect, test } from 'vitest';
import { between } from './quiet';

test('quiet hours go over midnight', () => {
  const cases: [string, string, string, boolean][] = [['23:00', '22:00', '07:00', true], ['06:59', '22:00', '07:00', true], ['07:00', '22:00', '07:00', false], ['12:00', '22:00', '07:00', false], ['12:00', '11:00', '13:00', true], ['13:00', '11:00', '13:00', false], ['12:00', '12:00', '12:00', false]];
  for (const [at, from, to, is] of cases) expect([at, between(at, from, to)]).toEqual([at, is]);
});
