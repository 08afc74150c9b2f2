// What differs between two texts, line by line: the longest common lines stay.

export interface Change {
  kind: ' ' | '+' | '-';
  line: string;
}

const most = 2000; // lines of each that are compared
const around = 2;

export function changed(was: string, is: string, language: 'json' | 'yaml'): Change[] {
  if (language === 'yaml') return []; // what is kept is JSON: the lines have nothing in common
  const a = was.split('\n').slice(0, most);
  const b = is.split('\n').slice(0, most);
  const common: Uint16Array[] = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const row = common[i];
      if (row) row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const all: Change[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      all.push({ kind: ' ', line: a[i++] ?? '' });
      j++;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) all.push({ kind: '-', line: a[i++] ?? '' });
    else all.push({ kind: '+', line: b[j++] ?? '' });
  }
  return all.filter((_, n) => all.slice(Math.max(0, n - around), n + around + 1).some((c) => c.kind !== ' '));
}
