import { expect, test, vi } from 'vitest';

vi.stubGlobal('location', { search: '' });
await import('../../text/machine');
const { percent } = await import('./scale');

test('a small promise is not told to be larger, nor a large confidence to be certain', () => {
  const cases: [number, string][] = [[0, '0%'], [0.0001, '< 0.1%'], [0.005, '0.5%'], [0.05, '5%'], [0.0825, '8.3%'], [0.126, '13%'], [0.5, '50%'], [0.9, '90%'], [0.955, '95.5%'], [0.999, '99.9%'], [0.99999, '> 99.9%'], [1, '100%']];
  for (const [v, want] of cases) expect([v, percent(v)]).toEqual([v, want]);
});
