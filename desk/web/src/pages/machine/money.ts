import { isRaw } from '../../api/json';

/** Dollars as people write them: what is below a cent keeps two digits that say something. */
export function dollars(value: unknown): string {
  const v = isRaw(value) ? Number(value.rawJSON) : Number(value);
  if (!Number.isFinite(v)) return '–';
  if (v === 0) return '$0';
  return '$' + (Math.abs(v) >= 0.1 ? v.toFixed(2) : v.toPrecision(2).replace(/e.*/, ''));
}

/** A sum of amounts, in billionths of a dollar: exact, as the server adds. */
export function billionths(value: unknown): bigint {
  const text = isRaw(value) ? value.rawJSON : String(value);
  const [whole = '0', part = ''] = (/e/i.test(text) ? Number(text).toFixed(9) : text).split('.');
  const sign = whole.startsWith('-') ? -1n : 1n;
  return sign * (BigInt(whole.replace('-', '') || '0') * 1_000_000_000n + BigInt((part + '000000000').slice(0, 9)));
}
