import { expect, test, vi } from 'vitest';
import { parse } from '../../api/json';

vi.stubGlobal('location', { search: '' });
await import('../../text/machine');
const { billionths, column } = await import('./money');

test('amounts are added exactly, however they are written', () => {
  expect(['0.1', '0.2', '1e-9', '-0.000000003', '1234.000000001'].map((text) => billionths(parse(text)))).toEqual([100_000_000n, 200_000_000n, 1n, -3n, 1_234_000_000_001n]);
  const sum = billionths(0.1) + billionths(0.2);
  expect(column([sum])(sum)).toBe('$0.30');
});

test('what was spent is never written as nothing, and a column has one form', () => {
  expect(column([123n])(123n)).toBe('< $0.000001');
  expect([0n, 1_000_000n, 2_000_000n].map(column([0n, 1_000_000n, 2_000_000n]))).toEqual(['$0.0000', '$0.0010', '$0.0020']);
  expect([0n, 1_500_000n, 12_340_000_000n].map(column([0n, 1_500_000n, 12_340_000_000n]))).toEqual(['$0.0000', '$0.0015', '$12.3400']);
  expect([0n, 2_000_000_000n].map(column([0n, 2_000_000_001n]))).toEqual(['$0.00', '$2.00']);
  expect([123n, 5_000_001n].map(column([123n, 5_000_001n]))[1]).toBe('$0.005000');
});
