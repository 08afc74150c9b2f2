import { expect, test } from 'vitest';
import { kindOf, parse, stringify } from './json';

const exact = ['9007199254740993', '-9007199254740993', '123456789012345678901234567890', '0.1000000000000000055511151231257827', '1e400', '12.50'];

test.runIf('rawJSON' in JSON)('numbers that the browser cannot hold stay as they are written', () => {
  for (const number of exact) {
    expect(stringify(parse(`{"n":[${number}]}`))).toBe(number === '12.50' ? '{"n":[12.5]}' : `{"n":[${number}]}`);
    expect(kindOf(parse(number))).toBe('number');
  }
});

test('numbers that it can hold are numbers', () => {
  for (const [text, value] of [['0', 0], ['-1', -1], ['1.0', 1], ['1e2', 100], ['0.1', 0.1], ['9007199254740991', 9007199254740991], ['1.50', 1.5]] as const) expect(parse(text)).toBe(value);
});

test('a member may be called __proto__', () => {
  const value = parse('{"__proto__":{"x":1},"constructor":2}') as object;
  expect(Object.keys(value)).toEqual(['__proto__', 'constructor']);
  expect((value as { x?: number }).x).toBeUndefined();
  expect(stringify(value)).toBe('{"__proto__":{"x":1},"constructor":2}');
});

test('what is no JSON is refused', () => {
  for (const text of ['', '{', 'undefined', "{'a':1}", '01']) expect(() => parse(text)).toThrow();
});
