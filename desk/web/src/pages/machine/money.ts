import { isRaw } from '../../api/json';
import { dollars } from '../../text/sessions';

export { dollars };

/** An amount in billionths of a dollar, of which sums are exact: as the server adds. */
export function billionths(value: unknown): bigint {
  const text = isRaw(value) ? value.rawJSON : String(value);
  const [whole = '0', part = ''] = (/e/i.test(text) ? Number(text).toFixed(9) : text).split('.');
  const sign = whole.startsWith('-') ? -1n : 1n;
  return sign * (BigInt(whole.replace('-', '') || '0') * 1_000_000_000n + BigInt((part + '000000000').slice(0, 9)));
}

/** Billionths as people write them. */
export const written = (sum: bigint): string => dollars(Number(sum) / 1e9);
