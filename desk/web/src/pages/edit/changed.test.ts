import { expect, test } from 'vitest';
import { beside, changed } from './changed';

const many = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}`).join('\n');
const said = (was: string, is: string) => changed(was, is).map((c) => (c.kind === '⋯' ? `⋯${c.n}` : c.kind + c.line));

test('of lines far from a change it is said how many there are, and the end of a text is no line', () => {
  expect(said('a\nb\nc', 'a\nB\nc\n')).toEqual([' a', '-b', '+B', ' c']);
  expect(said(many(1, 20), many(1, 20).replace('line 10', 'other') + '\n')).toEqual(['⋯7', ' line 8', ' line 9', '-line 10', '+other', ' line 11', ' line 12', '⋯8']);
  expect(said('x\n' + many(1, 12) + '\ny', 'X\n' + many(1, 12) + '\nY')).toEqual(['-x', '+X', ' line 1', ' line 2', '⋯8', ' line 11', ' line 12', '-y', '+Y']);
  expect(said('a', 'a\n')).toEqual(['⋯1']);
});

test('texts that are too long to be compared are told as others, and nothing is left out', () => {
  const list = changed('same\n' + many(1, 3000) + '\nend', 'same\n' + many(3001, 6000) + '\nend');
  expect(list.filter((c) => c.kind === '-').length + list.filter((c) => c.kind === '+').length).toBe(6000);
  expect(list.filter((c) => c.kind === ' ').map((c) => c.line)).toEqual(['same', 'end']);
});

test('beside each other what was stands next to what is in its place', () => {
  const rows = beside(changed('a\nb\nc\nd', 'a\nB\nd\ne'));
  expect(rows.map(([l, r]) => [l?.line, r?.line])).toEqual([['a', 'a'], ['b', 'B'], ['c', undefined], ['d', 'd'], [undefined, 'e']]);
});
