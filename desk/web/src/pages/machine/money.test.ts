import { expect, test, vi } from 'vitest';
import { parse } from '../../api/json';

vi.stubGlobal('location', { search: '' });
const { billionths, written } = await import('./money');

test('amounts are added exactly, however they are written', () => {
  expect(['0.1', '0.2', '1e-9', '-0.000000003', '1234.000000001'].map((text) => billionths(parse(text)))).toEqual([100_000_000n, 200_000_000n, 1n, -3n, 1_234_000_000_001n]);
  expect(written(billionths(0.1) + billionths(0.2))).toBe('$0.30');
});
