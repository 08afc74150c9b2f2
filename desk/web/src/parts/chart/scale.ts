import { language, t } from '../../text/text';

export { share } from '../../text/sessions';

// Scales of charts: where a value lies, at which round numbers a scale is marked, and how it is written.

export type Scale = (value: number) => number;

export function linear([d0, d1]: [number, number], [r0, r1]: [number, number]): Scale {
  const span = d1 - d0;
  return (v) => (span === 0 ? (r0 + r1) / 2 : r0 + ((v - d0) / span) * (r1 - r0));
}

/** Round numbers from one value to another, about so many. */
export function ticks(from: number, to: number, count = 4): number[] {
  if (!(to > from)) return [from];
  const rough = (to - from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999) ?? rough;
  const list: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) list.push(Number((i * step).toPrecision(12)));
  return list;
}

/** A path through points; where a value is missing there is a gap. */
export function path(points: (readonly [number, number] | undefined)[]): string {
  let text = '';
  let pen = 'M';
  for (const p of points) {
    if (!p) {
      pen = 'M';
      continue;
    }
    text += `${pen}${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
    pen = 'L';
  }
  return text;
}

/** The outline of a band between two lines. */
export function band(points: (readonly [number, number, number] | undefined)[]): string {
  let text = '';
  let run: (readonly [number, number, number])[] = [];
  const close = () => {
    if (run.length > 0) text += path(run.map(([x, low]) => [x, low])) + path(run.toReversed().map(([x, , high]) => [x, high])).replace('M', 'L') + 'Z';
    run = [];
  };
  for (const p of points) {
    if (p) run.push(p);
    else close();
  }
  close();
  return text;
}

const percents = [0, 1].map((digits) => new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: digits }));

/** A share in percent: near 0 and 100 with a digit more, and never rounded to either. */
export function percent(v: number): string {
  const p = v * 100;
  const off = Math.min(p, 100 - p);
  const written = (of: number, digits: number): string => percents[digits]?.format(of) ?? '';
  if (off > 0 && off < 0.05) return p < 50 ? t('chart.below', { p: written(0.001, 1) }) : t('chart.above', { p: written(0.999, 1) });
  return written(v, off < 10 ? 1 : 0);
}

/** From one value to another, as they are written. */
export const range = (from: string, to: string): string => (from === to ? from : t('chart.range', { from, to }));
