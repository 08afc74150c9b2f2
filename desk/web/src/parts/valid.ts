import { kindOf, stringify } from '../api/json';
import type { Key } from '../text/text';

// Whether a value is as a schema wants it, as far as that can be said here: what has a pattern, or
// refers to another schema, only the server says. Numbers are compared as they are written.

/** What is wrong at a place of a value; what is missing is wrong where it should be. */
export interface Fault {
  at: string; // as a JSON pointer
  why: Key;
  n: string | number;
}

type Of = Record<string, unknown>;

export function faults(schema: unknown, value: unknown, at = ''): Fault[] {
  if (schema === false) return [{ at, why: 'form.bad', n: '' }];
  if (kindOf(schema) !== 'object') return [];
  const s = schema as Of;
  const list = own(s, value, at);
  if (kindOf(value) === 'object' && list.length === 0) list.push(...members(s, value as Of, at));
  if (kindOf(value) === 'array' && list.length === 0) list.push(...elements(s, value as unknown[], at));
  return list.length > 0 ? list : together(s, value, at);
}

/** What is wrong with a value itself, whatever is in it; undefined if nothing is. */
export function faultOf(schema: unknown, value: unknown): Fault | undefined {
  return kindOf(schema) === 'object' ? own(schema as Of, value, '')[0] : undefined;
}

function own(s: Of, value: unknown, at: string): Fault[] {
  const types = s.type === undefined ? [] : Array.isArray(s.type) ? s.type : [s.type];
  if (types.length > 0 && !types.some((t) => isOf(t, value))) return [{ at, why: types[0] === 'number' ? 'form.badNumber' : types[0] === 'integer' ? 'form.badInteger' : 'form.bad', n: '' }];
  if (Array.isArray(s.enum) && !s.enum.some((v) => same(v, value))) return [{ at, why: 'form.bad', n: '' }];
  if ('const' in s && !same(s.const, value)) return [{ at, why: 'form.bad', n: '' }];
  const list: Fault[] = [];
  const check = (name: string, why: Key, wrong: (limit: unknown) => boolean) => {
    if (kindOf(s[name]) === 'number' && wrong(s[name])) list.push({ at, why, n: stringify(s[name]) });
  };
  switch (kindOf(value)) {
    case 'number':
      check('minimum', 'form.min', (l) => compare(value, l) < 0);
      check('maximum', 'form.max', (l) => compare(value, l) > 0);
      check('exclusiveMinimum', 'form.above', (l) => compare(value, l) <= 0);
      check('exclusiveMaximum', 'form.below', (l) => compare(value, l) >= 0);
      check('multipleOf', 'form.multiple', (l) => !multiple(value, l));
      break;
    case 'string': {
      const length = [...(value as string)].length; // as the server counts
      check('minLength', 'form.short', (l) => length < Number(stringify(l)));
      check('maxLength', 'form.long', (l) => length > Number(stringify(l)));
      break;
    }
    case 'array': {
      const of = value as unknown[];
      check('minItems', 'form.few', (l) => of.length < Number(stringify(l)));
      check('maxItems', 'form.many', (l) => of.length > Number(stringify(l)));
      if (s.uniqueItems === true && of.some((v, i) => of.slice(0, i).some((o) => same(v, o)))) list.push({ at, why: 'form.twice', n: '' });
      break;
    }
    case 'object': {
      const n = Object.keys(value as Of).length;
      check('minProperties', 'form.few', (l) => n < Number(stringify(l)));
      check('maxProperties', 'form.many', (l) => n > Number(stringify(l)));
    }
  }
  return list;
}

function members(s: Of, value: Of, at: string): Fault[] {
  const list: Fault[] = [];
  const of = (kindOf(s.properties) === 'object' ? s.properties : {}) as Of;
  const need = (names: unknown) => {
    for (const name of Array.isArray(names) ? (names as string[]) : []) if (!Object.hasOwn(value, name)) list.push({ at: `${at}/${name}`, why: 'form.missing', n: '' });
  };
  need(s.required);
  for (const [name, names] of Object.entries((s.dependentRequired ?? {}) as Of)) if (Object.hasOwn(value, name)) need(names);
  for (const [name, member] of Object.entries(value)) {
    if (Object.hasOwn(of, name)) list.push(...faults(of[name], member, `${at}/${name}`));
    else if (s.patternProperties === undefined && s.additionalProperties !== undefined) list.push(...faults(s.additionalProperties, member, `${at}/${name}`));
    if (s.propertyNames !== undefined) list.push(...faults(s.propertyNames, name, `${at}/${name}`));
  }
  return list;
}

function elements(s: Of, value: unknown[], at: string): Fault[] {
  const first = Array.isArray(s.prefixItems) ? s.prefixItems : [];
  const list = value.flatMap((v, i) => faults(i < first.length ? first[i] : s.items, v, `${at}/${i}`));
  if (s.contains !== undefined && s.minContains === undefined && !value.some((v) => faults(s.contains, v).length === 0)) list.push({ at, why: 'form.bad', n: '' });
  return list;
}

// What schemas say together.
function together(s: Of, value: unknown, at: string): Fault[] {
  const good = (of: unknown) => faults(of, value).length === 0;
  const bad: Fault[] = [{ at, why: 'form.bad', n: '' }];
  if (Array.isArray(s.allOf)) {
    const list = s.allOf.flatMap((of) => faults(of, value, at));
    if (list.length > 0) return list;
  }
  if (Array.isArray(s.anyOf) && !s.anyOf.some(good)) return bad;
  if (Array.isArray(s.oneOf) && s.oneOf.filter(good).length !== 1) return bad;
  if (s.not !== undefined && good(s.not)) return bad;
  if (s.if !== undefined) return faults(good(s.if) ? s.then : s.else, value, at);
  return [];
}

function isOf(type: unknown, value: unknown): boolean {
  const kind = value === undefined ? 'nothing' : kindOf(value);
  return type === 'integer' ? kind === 'number' && multiple(value, 1) : type === kind;
}

/** Whether two values are the same as JSON has it, however their numbers are written. */
export function same(a: unknown, b: unknown): boolean {
  const kind = kindOf(a);
  if (kind !== kindOf(b)) return false;
  if (kind === 'number') return compare(a, b) === 0;
  if (kind === 'array') return (a as unknown[]).length === (b as unknown[]).length && (a as unknown[]).every((v, i) => same(v, (b as unknown[])[i]));
  if (kind !== 'object') return a === b || kind === 'null';
  const [of, to] = [a as Of, b as Of];
  return Object.keys(of).length === Object.keys(to).length && Object.keys(of).every((name) => Object.hasOwn(to, name) && same(of[name], to[name]));
}

// A number as digits and how many of them stand behind the point; what is too far from 1 is not
// written out.
function decimal(value: unknown): [bigint, number] | undefined {
  const m = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(stringify(value));
  if (!m) return;
  const [, sign = '', whole = '', rest = '', exponent = '0'] = m;
  const places = rest.length - Number(exponent);
  if (Math.abs(places) > 1000) return;
  const digits = BigInt(sign + whole + rest);
  return places < 0 ? [digits * 10n ** BigInt(-places), 0] : [digits, places];
}

function aligned(a: unknown, b: unknown): [bigint, bigint] | undefined {
  const [x, y] = [decimal(a), decimal(b)];
  if (!x || !y) return;
  const places = Math.max(x[1], y[1]);
  return [x[0] * 10n ** BigInt(places - x[1]), y[0] * 10n ** BigInt(places - y[1])];
}

function compare(a: unknown, b: unknown): number {
  const both = aligned(a, b);
  if (!both) return Number(stringify(a)) - Number(stringify(b));
  return both[0] < both[1] ? -1 : both[0] > both[1] ? 1 : 0;
}

function multiple(a: unknown, of: unknown): boolean {
  const both = aligned(a, of);
  return both === undefined || both[1] === 0n || both[0] % both[1] === 0n;
}
