import { kindOf, stringify } from '../api/json';

// Which field a form has for a schema. What has none is written as JSON, beside its schema.

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  oneOf?: Schema[];
  [other: string]: unknown;
}

export type Field = 'text' | 'long' | 'date' | 'datetime-local' | 'email' | 'url' | 'radio' | 'select' | 'number' | 'integer' | 'boolean' | 'list' | 'object' | 'json';

/** How deep objects may lie in each other that have fields. */
export const deepest = 3;

const combined = ['anyOf', 'allOf', 'not', 'if', '$ref', 'patternProperties', 'dependentRequired', 'dependentSchemas', 'propertyNames', 'contains', 'prefixItems', 'unevaluatedProperties', 'minProperties'];

export function fieldOf(schema: unknown, depth = 0): Field {
  if (kindOf(schema) !== 'object') return 'json';
  const s = schema as Schema;
  if (combined.some((name) => name in s)) return 'json';
  if (choicesOf(s).length > 0) return choicesOf(s).length <= 6 ? 'radio' : 'select';
  if (s.enum || s.oneOf || Array.isArray(s.type)) return 'json';
  switch (s.type) {
    case 'string':
      if (s.format === 'date' || s.format === 'email') return s.format;
      if (s.format === 'date-time') return 'datetime-local';
      if (s.format === 'uri') return 'url';
      return (s.maxLength ?? 200) > 120 && !s.format ? 'long' : 'text';
    case 'number':
    case 'integer':
    case 'boolean':
      return s.type;
    case 'array': {
      const item = fieldOf(s.items, depth + 1);
      return s.items && !['json', 'list', 'object'].includes(item) ? 'list' : 'json';
    }
    case 'object':
      return s.properties && depth < deepest ? 'object' : 'json';
  }
  return 'json';
}

/** The values among which one is chosen, with what they are called. */
export function choicesOf(s: Schema): { value: unknown; title: string }[] {
  const plain = (v: unknown) => ['string', 'number', 'boolean'].includes(kindOf(v));
  if (s.enum?.length && s.enum.every(plain)) return s.enum.map((value) => ({ value, title: kindOf(value) === 'number' ? stringify(value) : String(value) }));
  if (s.oneOf?.length && s.oneOf.every((o) => 'const' in o && plain(o.const))) return s.oneOf.map((o) => ({ value: o.const, title: o.title ?? (kindOf(o.const) === 'number' ? stringify(o.const) : String(o.const)) }));
  return [];
}

/** A schema that a value fits, and others of its shape: for a form where none is given. */
export function shapeOf(value: unknown): Schema {
  switch (kindOf(value)) {
    case 'object':
      return { type: 'object', properties: Object.fromEntries(Object.entries(value as object).map(([name, of]) => [name, shapeOf(of)])) };
    case 'array':
      return { type: 'array', items: shapeOf((value as unknown[])[0]) };
    case 'string': {
      const s = value as string;
      return s.length > 80 || s.includes('\n') ? { type: 'string' } : { type: 'string', format: 'line' };
    }
    case 'null':
      return {};
  }
  return { type: kindOf(value) };
}

/** What a form begins with: the defaults of the schema, and nothing else. */
export function defaultOf(schema: unknown): unknown {
  if (kindOf(schema) !== 'object') return undefined;
  const s = schema as Schema;
  if (s.default !== undefined) return s.default;
  if (s.const !== undefined) return s.const;
  if (fieldOf(s) !== 'object') return undefined;
  const members = Object.entries(s.properties ?? {}).map(([name, of]) => [name, defaultOf(of)] as const).filter(([, v]) => v !== undefined);
  return members.length > 0 ? Object.fromEntries(members) : undefined;
}
