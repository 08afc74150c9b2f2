import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { minify } from 'terser';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

// What the built files were made of, for a test without Node: the sums of all sources, by path.
function sources(): Plugin {
  const root = import.meta.dirname;
  const sums: Record<string, string> = {};
  const add = (dir: string) => {
    for (const name of readdirSync(join(root, dir)).sort()) {
      const path = dir ? `${dir}/${name}` : name;
      if (name === 'node_modules' || name === 'schema.d.ts' || name.startsWith('.') || name.endsWith('.test.ts')) continue;
      if (statSync(join(root, path)).isDirectory()) add(path);
      else sums[path] = createHash('sha256').update(readFileSync(join(root, path))).digest('hex');
    }
  };
  return {
    name: 'sources',
    apply: 'build',
    closeBundle() {
      add('');
      sums['openapi.json'] = createHash('sha256').update(readFileSync(join(root, '../../docs/openapi.json'))).digest('hex');
      for (const name of readdirSync(join(root, '../../machines')).sort()) {
        if (/\.(json|yaml)$/.test(name)) sums['machines/' + name] = createHash('sha256').update(readFileSync(join(root, '../../machines', name))).digest('hex');
      }
      writeFileSync(join(root, '../dist/build.json'), JSON.stringify(sums, null, 1) + '\n');
    },
  };
}

// What the bundler's minifier leaves, another finds: 2 KB of 300, gzipped, which one of them alone does not.
function smaller(): Plugin {
  return {
    name: 'smaller',
    apply: 'build',
    async generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type === 'chunk') chunk.code = (await minify(chunk.code, { module: true, ecma: 2020, compress: { passes: 3 } })).code!;
      }
    },
  };
}

// The class of a component's own styles: short, and of it alone.
const classes = new Map<string, string>();
function cssHash({ hash, filename = '' }: { hash: (text: string) => string; filename?: string }): string {
  const name = 's' + hash(filename).slice(0, 4);
  if ((classes.get(name) ?? filename) !== filename) throw new Error(`${filename} and ${classes.get(name)} have the class ${name}: take one letter more`);
  classes.set(name, filename);
  return name;
}

export default defineConfig({
  base: '/desk/',
  plugins: [svelte({ compilerOptions: { cssHash } }), smaller(), sources()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shell', test: /src[\\/]App\.svelte$/ }, { name: 'samples', test: /[\\/]machines[\\/]/ }] } } }, // what is alike is packed together
  },
  worker: { format: 'es' },
  test: { include: ['src/**/*.test.ts'] },
});
