import { expect, test } from 'vitest';
import { parse } from '../api/json';
import { choicesOf, defaultOf, fieldOf, shapeOf } from './schema';
import { faults, same } from './valid';

test('each schema has the field that is made for it', () => {
  for (const [schema, field] of [
    [{ type: 'string' }, 'long'], [{ type: 'string', maxLength: 40 }, 'text'], [{ type: 'string', format: 'date' }, 'date'], [{ type: 'string', format: 'date-time' }, 'datetime-local'],
    [{ type: 'string', format: 'email' }, 'email'], [{ type: 'string', format: 'uri' }, 'url'], [{ type: 'number' }, 'number'], [{ type: 'integer' }, 'integer'], [{ type: 'boolean' }, 'boolean'],
    [{ enum: ['a', 'b'] }, 'radio'], [{ enum: [1, 2, 3, 4, 5, 6, 7] }, 'select'], [{ oneOf: [{ const: 'a', title: 'A' }] }, 'radio'], [{ oneOf: [{ type: 'string' }] }, 'json'], [{ enum: [{}] }, 'json'],
    [{ type: 'array', items: { type: 'integer' } }, 'list'], [{ type: 'array' }, 'json'], [{ type: 'array', items: { type: 'object', properties: {} } }, 'json'],
    [{ type: 'object', properties: { a: {} } }, 'object'], [{ type: 'object' }, 'json'], [{}, 'json'], [true, 'json'], [{ type: ['string', 'null'] }, 'json'], [{ anyOf: [] }, 'json'], [{ $ref: '#/x' }, 'json'],
  ] as const)
    expect([schema, fieldOf(schema)]).toEqual([schema, field]);
  expect(fieldOf({ type: 'object', properties: {} }, 3)).toBe('json');
});

test('a form begins with the defaults of its schema, and nothing else', () => {
  expect(defaultOf({ type: 'object', properties: { a: { default: 1 }, b: { type: 'string' }, c: { type: 'object', properties: { d: { default: 'x' } } } } })).toEqual({ a: 1, c: { d: 'x' } });
  expect(defaultOf({ type: 'object', properties: { b: { type: 'string' } } })).toBeUndefined();
});

test('choices are called as the schema calls them', () => {
  expect(choicesOf({ oneOf: [{ const: 1, title: 'one' }, { const: 'b' }] }).map((c) => c.title)).toEqual(['one', 'b']);
});

test('a value is measured as the server does', () => {
  for (const [schema, good, bad] of [
    ['{"type":"number","minimum":1,"maximum":2}', '1 1.5 2 2.0', '0.999 2.001 "1" null'],
    ['{"exclusiveMinimum":0,"exclusiveMaximum":1}', '0.1 "x"', '0 1'],
    ['{"type":"integer"}', '1 1.0 1e2 9007199254740993', '1.5 "1" true'],
    ...('rawJSON' in JSON ? ([['{"maximum":9007199254740992}', '9007199254740992', '9007199254740993']] as const) : []),
    ['{"multipleOf":0.1}', '0.3 1.1 1', '0.35'],
    ['{"type":"string","minLength":2,"maxLength":2}', '"ab" "😀😀"', '"a" "abc" 12'],
    ['{"enum":["a",1,null]}', '"a" 1 1.0 null', '"b" 2'],
    ['{"const":{"a":[1]}}', '{"a":[1.0]}', '{"a":[1],"b":2}'],
    ['{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2,"uniqueItems":true}', '[1] [1,2]', '[] [1,2,3] [1,1.0] ["a"]'],
    ['{"type":"object","required":["a"],"properties":{"a":{"type":"string"}},"additionalProperties":false}', '{"a":""}', '{} {"a":1} {"a":"","b":1} {"toString":1}'],
    ['{"anyOf":[{"type":"string"},{"minimum":5}]}', '"x" 6', '4'],
    ['{"oneOf":[{"multipleOf":2},{"multipleOf":3}]}', '2 3', '6 1'],
    ['{"not":{"type":"null"}}', '1', 'null'],
    ['{"if":{"type":"string"},"then":{"maxLength":1},"else":{"minimum":1}}', '"a" 1', '"ab" 0'],
    ['{"dependentRequired":{"a":["b"]}}', '{} {"a":1,"b":1}', '{"a":1}'],
    ['{"type":"array","prefixItems":[{"type":"string"}],"items":false}', '["a"]', '[1] ["a","b"]'],
  ] as const) {
    for (const text of good.split(' ')) expect([schema, text, faults(parse(schema), parse(text))]).toEqual([schema, text, []]);
    for (const text of bad.split(' ')) expect([schema, text, faults(parse(schema), parse(text)).length > 0]).toEqual([schema, text, true]);
  }
});

test('a form is made of the shape of a value, which fits it', () => {
  for (const [text, fields] of [
    ['{"n":1,"sum":2.5,"who":"ada","late":true}', 'number number text boolean'],
    ['{"tags":["a"],"rows":[{}],"none":[],"nothing":null,"said":"a\\nb"}', 'list json json json long'],
    ['{"at":{"in":{"deep":{"deeper":1}}},"big":9007199254740993,"__proto__":1}', 'object number number'],
  ] as const) {
    const [value, shape] = [parse(text), shapeOf(parse(text))];
    expect([text, faults(shape, value)]).toEqual([text, []]);
    expect(Object.values(shape.properties ?? {}).map((of) => fieldOf(of, 1)).join(' ')).toBe(fields);
  }
});

test('values are the same whatever their members are called', () => {
  expect(same(parse('{"__proto__":1}'), parse('{"__proto__":1}'))).toBe(true);
  expect(same(parse('{"__proto__":1}'), parse('{"toString":1}'))).toBe(false);
});
