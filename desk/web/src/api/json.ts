// JSON without loss: a number that the browser's numbers cannot hold stays as it is written.
// Where a browser cannot tell how it was written, it is rounded as everywhere on the web.

interface Source {
  source?: string;
}

/** A number that is kept as its text. */
export interface RawNumber {
  rawJSON: string;
}

type Raw = typeof JSON & {
  rawJSON?(text: string): RawNumber;
  isRawJSON?(value: unknown): value is RawNumber;
};
const json = JSON as Raw;

export function parse(text: string): unknown {
  const keep = json.rawJSON;
  if (!keep) return JSON.parse(text);
  return JSON.parse(text, (_name: string, value: unknown, context?: Source) => {
    if (typeof value !== 'number' || context?.source === undefined) return value;
    const exact = Number.isFinite(value) && (Number.isSafeInteger(value) || digits(context.source) <= 15 || plain(context.source) === String(value));
    return exact ? value : keep(context.source);
  });
}

// digits is how many of a number say something: up to 15 of them a browser's numbers hold.
function digits(number: string): number {
  return plain(number).replace(/[eE].*$/, '').replace(/[-.]/g, '').replace(/^0+/, '').length;
}

// How a number is written does not matter where its value is the same: 1.0.
function plain(number: string): string {
  return number.includes('.') && !/[eE]/.test(number) ? number.replace(/\.?0+$/, '') : number;
}

export function isRaw(value: unknown): value is RawNumber {
  return json.isRawJSON?.(value) ?? false;
}

export function stringify(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent) ?? 'null';
}

/** What a value is, for tables and forms. */
export function kindOf(value: unknown): 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object' {
  if (value === null || value === undefined) return 'null';
  if (isRaw(value)) return 'number';
  if (Array.isArray(value)) return 'array';
  return typeof value as 'boolean' | 'number' | 'string' | 'object';
}

/** A number as those of browsers are, for what is drawn; NaN of what is none. */
export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : isRaw(value) ? Number(value.rawJSON) : NaN;
}
