// What differs between two texts, line by line: the longest common lines stay, and of those that are far
// from a change it is said how many there are.

export interface Change {
  kind: ' ' | '+' | '-' | '⋯';
  line: string;
  n?: number; // lines that are left out
}

const most = 2000; // lines of each that are compared; of more all are taken to be others
const around = 2;

export function changed(was: string, is: string): Change[] {
  const [a, b] = [lines(was), lines(is)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const same = (list: string[]): Change[] => list.map((line) => ({ kind: ' ', line }));
  return folded([...same(a.slice(0, head)), ...compared(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...same(a.slice(a.length - tail))]);
}

const lines = (text: string): string[] => text.replace(/\n$/, '').split('\n');

function compared(a: string[], b: string[]): Change[] {
  const small = a.length <= most && b.length <= most;
  const common: Uint16Array[] = small ? Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1)) : [];
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  if (small)
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        const row = common[i];
        if (row) row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
      }
    }
  const all: Change[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (small && i < a.length && j < b.length && a[i] === b[j]) {
      all.push({ kind: ' ', line: a[i++] ?? '' });
      j++;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) all.push({ kind: '-', line: a[i++] ?? '' });
    else all.push({ kind: '+', line: b[j++] ?? '' });
  }
  return all;
}

function folded(all: Change[]): Change[] {
  const near = new Set(all.flatMap((c, i) => (c.kind === ' ' ? [] : Array.from({ length: 2 * around + 1 }, (_, d) => i - around + d))));
  const list: Change[] = [];
  for (const [i, c] of all.entries()) {
    const last = list.at(-1);
    if (near.has(i)) list.push(c);
    else if (last?.kind === '⋯') last.n = (last.n ?? 0) + 1;
    else list.push({ kind: '⋯', line: '', n: 1 });
  }
  return list;
}

/** The same with both texts beside each other: what was, and what is in its place. */
export function beside(changes: Change[]): [Change | undefined, Change | undefined][] {
  const rows: [Change | undefined, Change | undefined][] = [];
  let free = 0; // the first row that still has room on the right
  for (const c of changes) {
    if (c.kind === '-') rows.push([c, undefined]);
    else if (c.kind !== '+') {
      rows.push([c, c]);
      free = rows.length;
    } else if (free < rows.length) (rows[free++] as (Change | undefined)[])[1] = c;
    else {
      rows.push([undefined, c]);
      free = rows.length;
    }
  }
  return rows;
}
