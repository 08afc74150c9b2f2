import { choicesOf, fieldOf, type Schema } from '../../parts/schema';
import { kindOf } from '../../api/json';

// A value that fits a schema, for a case that is made up: defaults where there are any, else the
// smallest that may stand there. What is not required stays away.

export function fit(schema: unknown, depth = 0): unknown {
  if (kindOf(schema) !== 'object') return undefined;
  const s = schema as Schema;
  if (s.default !== undefined) return s.default;
  if (s.const !== undefined) return s.const;
  const first = choicesOf(s)[0];
  if (first) return first.value;
  switch (fieldOf(s, depth)) {
    case 'object':
      return Object.fromEntries(
        Object.entries(s.properties ?? {})
          .map(([name, of]) => [name, s.required?.includes(name) || of.default !== undefined ? fit(of, depth + 1) : undefined] as const)
          .filter(([, v]) => v !== undefined),
      );
    case 'number':
    case 'integer': {
      const low = Number(s.minimum ?? (s.exclusiveMinimum === undefined ? 1 : Number(s.exclusiveMinimum) + 1));
      const high = Number(s.maximum ?? (s.exclusiveMaximum === undefined ? Infinity : Number(s.exclusiveMaximum) - 1));
      return high < low ? high : s.type === 'integer' ? Math.ceil(low) : low;
    }
    case 'boolean':
      return false;
    case 'date':
      return '2026-01-01';
    case 'datetime-local':
      return '2026-01-01T00:00:00Z';
    case 'email':
      return 'a@example.com';
    case 'url':
      return 'https://example.com';
    case 'text':
    case 'long':
      return 'x'.repeat(Math.max(1, Number(s.minLength ?? 1)));
    case 'list':
      return Array.from({ length: Number(s.minItems ?? 0) }, () => fit(s.items, depth + 1));
  }
  return undefined;
}
