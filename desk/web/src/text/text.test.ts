import { expect, test, vi } from 'vitest';
import words from './en.json';

vi.stubGlobal('location', { search: '' });
const { clean, filled, lasting, moment, t } = await import('./text');

test('a text takes what is given with it, once, and as it is', () => {
  expect(filled('{a} and {b}', { a: '{b}', b: '$&' })).toBe('{b} and $&');
  expect(filled('{a}', {})).toBe('');
  expect(t('question.approvals', { have: 1, need: 2000 })).toBe('1 of 2,000 approvals');
});

test('texts have the form of their number', () => {
  expect([0, 1, 2].map((n) => t('question.withheld', { n }).split(' ').slice(0, 3).join(' '))).toEqual(['0 proposals are', '1 proposal is', '2 proposals are']);
});

test('a span is two units at most', () => {
  const [s, m, h, d] = [1000, 60_000, 3_600_000, 86_400_000];
  expect([-5, 0, 59 * s, m, 59 * m + 59 * s, h, h + m, 11 * h + m, d, d + h, 20 * d + h].map(lasting)).toEqual(['0 s', '0 s', '59 s', '1 min', '59 min', '1 h', '1 h 1 min', '11 h', '1 d', '1 d 1 h', '20 d']);
});

test('what is no moment stays as it is', () => {
  expect(moment('soon')).toBe('soon');
});

test('what is obeyed and not seen is seen', () => {
  expect(clean('a\u0000b\u001b[1m\u007f\u009b')).toBe('a␀b␛[1m␡⟨U+009B⟩');
  expect(clean('\u202egnp\u2066\u200b\ufeff\u00ad\u{e0041}')).toBe('⟨U+202E⟩gnp⟨U+2066⟩⟨U+200B⟩⟨U+FEFF⟩⟨U+00AD⟩⟨U+E0041⟩');
  expect(clean('tab\tand\nline, 👨\u200d👧, é, ع')).toBe('tab\tand\nline, 👨\u200d👧, é, ع');
});

// The sources, by their paths.
const sources = import.meta.glob<string>('../**/*.{svelte,ts}', { query: '?raw', import: 'default', eager: true });

test('every text is used somewhere', () => {
  const text = Object.entries(sources).map(([path, source]) => (/\.(test|d)\.ts$/.test(path) ? '' : source)).join('\n');
  expect(text.length).toBeGreaterThan(50_000);
  const built = [...text.matchAll(/`([\w.]+\.)\$\{/g)].map((m) => m[1] ?? ''); // live.${state}
  expect(Object.keys(words).filter((key) => !text.includes(`'${key}'`) && !built.some((b) => key.startsWith(b)))).toEqual([]);
});
