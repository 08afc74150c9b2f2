import { expect, test, vi } from 'vitest';

vi.stubGlobal('location', { search: '' });
const { faults } = await import('../../parts/valid');
const { fit } = await import('./fit');

test('what is made up fits, and has what is required and what has a default', () => {
  const refund = { type: 'object', required: ['amount', 'reason'], properties: { order: { type: 'string', default: 'unknown' }, amount: { type: 'number', exclusiveMinimum: 0 }, reason: { type: 'string' }, orders: { type: 'integer', minimum: 0, default: 0 }, more: { type: 'string' } } };
  expect(fit(refund)).toEqual({ order: 'unknown', amount: 1, reason: 'x', orders: 0 });
  for (const schema of [refund, { type: 'integer', maximum: -3 }, { type: 'number', exclusiveMaximum: 0 }, { type: 'string', minLength: 5 }, { enum: ['a', 'b'] }, { type: 'array', items: { type: 'integer' }, minItems: 2 }, { type: 'object', required: ['a'], properties: { a: { type: 'object', required: ['b'], properties: { b: { type: 'boolean' } } } } }]) {
    expect([schema, faults(schema as never, fit(schema))]).toEqual([schema, []]);
  }
});
