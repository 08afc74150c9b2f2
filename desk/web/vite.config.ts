import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
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

export default defineConfig({
  base: '/desk/',
  plugins: [svelte(), sources()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: 'es' },
  test: { include: ['src/**/*.test.ts'] },
});
