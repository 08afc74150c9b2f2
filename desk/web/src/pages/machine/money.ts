import { isRaw } from '../../api/json';
import { t } from '../../text/text';
import { dollars } from '../../text/sessions';

export { dollars };

/** An amount in billionths of a dollar, of which sums are exact: as the server adds. */
export function billionths(value: unknown): bigint {
  const text = isRaw(value) ? value.rawJSON : String(value);
  const [whole = '0', part = ''] = (/e/i.test(text) ? Number(text).toFixed(9) : text).split('.');
  const sign = whole.startsWith('-') ? -1n : 1n;
  return sign * (BigInt(whole.replace('-', '') || '0') * 1_000_000_000n + BigInt((part + '000000000').slice(0, 9)));
}

const least = 1000n; // billionths: what is written to six digits
const forms = [2, 4, 6].map((digits) => new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: digits, maximumFractionDigits: digits }));

/** How all amounts of one column are written: each to as many digits as the one that needs most. */
export function column(sums: bigint[]): (sum: bigint) => string {
  const finest = sums.every((v) => v % 10_000_000n === 0n) ? 0 : sums.every((v) => v % 100_000n === 0n) ? 1 : 2;
  const form = forms[sums.every((v) => v === 0n || v >= 1_000_000_000n) ? 0 : finest] ?? forms[2];
  return (v) => (v > 0n && v < least ? t('chart.below', { p: form?.format(1e-6) ?? '' }) : (form?.format(Number(v) / 1e9) ?? ''));
}
