import { expect, test, vi } from 'vitest';

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

// The sources, by their paths; and all words, by those of their files.
const sources = Object.entries(import.meta.glob<string>('../**/*.{svelte,ts}', { query: '?raw', import: 'default', eager: true })).filter(([path]) => !/\.(test|d)\.ts$/.test(path));
const files = import.meta.glob<Record<string, string | Record<string, string>>>('./en*.json', { import: 'default', eager: true });
const all = Object.entries(files).flatMap(([file, words]) => Object.entries(words).map(([key, entry]) => ({ file, key, forms: typeof entry === 'string' ? { other: entry } : entry })));
const code = sources.map(([, source]) => source).join('\n');
const built = [...code.matchAll(/`([a-z]\w*\.(?:\w+\.)*)\$\{[^`]*?\}`/g)].map((m) => m[1] ?? ''); // live.${state}

test('every text is used somewhere, and is in one file', () => {
  expect([Object.keys(files).length, all.length, code.length].map((n, i) => n > [3, 700, 300_000][i]!)).toEqual([true, true, true]);
  expect(all.filter(({ key }) => !code.includes(`'${key}'`) && !built.some((b) => key.startsWith(b))).map(({ file, key }) => `${file} ${key}`)).toEqual([]);
  expect(all.filter(({ key }, i) => all.findIndex((o) => o.key === key) !== i).map(({ key }) => key)).toEqual([]);
});

test('every text that is asked for is there', () => {
  const asked = [...code.matchAll(/\b(?:t|has)\(\s*'([\w.]+)'/g), ...code.matchAll(/\b(?:does|name|says): '(\w+\.[\w.]+)'/g)].map((m) => m[1] ?? '');
  expect(asked.length).toBeGreaterThan(400);
  expect([...new Set(asked)].filter((key) => !all.some((o) => o.key === key))).toEqual([]);
  expect([...new Set(built)].filter((b) => !all.some((o) => o.key.startsWith(b)))).toEqual([]);
});

test('the forms of a text are those of its language, and that of one takes nothing more', () => {
  const members = (of = ''): string[] => [...of.matchAll(/\{(\w+)\}/g)].map((m) => m[1] ?? '');
  expect(all.filter(({ forms }) => !['other', 'one,other'].includes(Object.keys(forms).sort().join()) || members(forms.one).some((m) => !members(forms.other).includes(m)) || Object.values(forms).some((of) => of.trim() === '')).map(({ key }) => key)).toEqual([]);
});

test('in the pseudo-language every text is longer by two fifths, and takes what is given with it', async () => {
  vi.resetModules();
  vi.stubGlobal('location', { search: '?lang=qps' });
  const pseudo = await import('./text');
  for (const words of Object.values(files)) pseudo.learn(words);
  expect(pseudo.rightToLeft).toBe(true);
  const wrong = all.filter(({ key, forms }) => {
    const given = Object.fromEntries([...Object.values(forms).join(' ').matchAll(/\{(\w+)\}/g)].map((m) => [m[1] ?? '', m[1] === 'n' ? 2 : `⟨${m[1]}⟩`]));
    const text = pseudo.t(key as Parameters<typeof t>[0], given);
    const plain = filled(forms.other ?? '', given);
    return !text.startsWith('[' + plain) || text.length < 1.4 * plain.length || /[{}]/.test(text) !== /[{}]/.test(plain);
  });
  expect(wrong.map(({ key }) => key)).toEqual([]);
});

// It reads every source: on a busy computer that takes longer than the five seconds that a test has by itself.
test('whatever is loaded has loaded its words with it', { timeout: 60_000 }, () => {
  const of = new Map(sources.map(([path, source]) => [path.replace('../', '').replace('./', 'text/'), source]));
  const resolved = (from: string, to: string): string | undefined => {
    const path = new URL(to, 'http://h/' + from).pathname.slice(1);
    return [path, path + '.ts', path + '.svelte', path + '.svelte.ts'].find((p) => of.has(p));
  };
  // What a file imports at once, and what that does.
  const reached = (from: string, seen = new Set<string>()): Set<string> => {
    if (!seen.has(from)) {
      seen.add(from);
      for (const [, to] of (of.get(from) ?? '').matchAll(/(?:^|\s)(?:import|from) '(\.[^']+)'/g)) {
        const next = resolved(from, to ?? '');
        if (next !== undefined) reached(next, seen);
      }
    }
    return seen;
  };
  const later = [...of].flatMap(([from, source]) => [...source.matchAll(/\bimport\('(\.[^']+)'\)/g)].map((m) => ({ from, root: resolved(from, m[1] ?? '') ?? '' }))).filter(({ root }) => root !== '');
  const roots = ['main.ts', ...new Set(later.map(({ root }) => root))];
  // What is there, each way that leads to a root, once that is loaded.
  const ways = (root: string): Set<string>[] => {
    if (root === 'main.ts') return [reached(root)];
    const from = roots.filter((r) => r !== root && later.some((l) => l.root === root && reached(r).has(l.from)));
    return from.flatMap(ways).map((before) => new Set([...before, ...reached(root)]));
  };
  const missing = roots.flatMap((root) => {
    const source = [...reached(root)].map((p) => of.get(p) ?? '');
    const used = all.filter(({ key }) => source.some((s) => s.includes(`'${key}'`)));
    const there = ways(root).map((way) => new Set([...way].flatMap((p) => [...(of.get(p) ?? '').matchAll(/from '\.\/(en[\w.]*\.json)'/g)].map((m) => './' + m[1]))));
    expect(there.length, root).toBeGreaterThan(0);
    return used.filter(({ file }) => there.some((learnt) => !learnt.has(file))).map(({ file, key }) => `${root} uses ${key} of ${file}`);
  });
  expect(later.length).toBeGreaterThan(8);
  expect(missing).toEqual([]);
});
