import { call } from '../../api/client';

// What may be written where, as the schema of machine files has it, which is asked for with the first
// editor. Without it nothing is offered, and all else works.

type Node = Record<string, unknown>;

/** What may be written at a place. */
export interface Offer {
  label: string;
  info: string;
}

let root: Node = {};
void call<Node>('GET', '/machine.schema.json').then(
  (schema) => (root = schema),
  () => {},
);

function resolved(node: unknown): Node[] {
  if (typeof node !== 'object' || node === null) return [];
  const n = node as Node;
  const list: Node[] = [n];
  if (typeof n.$ref === 'string') list.push(...resolved(n.$ref.split('/').slice(1).reduce<unknown>((at, part) => (at as Node | undefined)?.[part], root)));
  for (const name of ['anyOf', 'oneOf', 'allOf']) for (const part of (n[name] as unknown[] | undefined) ?? []) list.push(...resolved(part));
  return list;
}

function within(nodes: Node[], part: string): Node[] {
  return nodes.flatMap((n) => {
    const own = (n.properties as Node | undefined)?.[part];
    if (own) return resolved(own);
    for (const [pattern, of] of Object.entries((n.patternProperties as Node | undefined) ?? {})) if (new RegExp(pattern, 'u').test(part)) return resolved(of);
    if (typeof n.additionalProperties === 'object') return resolved(n.additionalProperties);
    if (/^\d+$/.test(part) && n.items) return resolved(n.items);
    return [];
  });
}

const at = (path: string[]): Node[] => path.reduce(within, resolved(root));

/** The names of members that an object at a path may have. */
export function membersAt(path: string[]): Offer[] {
  const all = new Map<string, string>();
  for (const n of at(path)) for (const [name, of] of Object.entries((n.properties as Node | undefined) ?? {})) if (!all.has(name)) all.set(name, about(of));
  return [...all].map(([label, info]) => ({ label, info }));
}

/** The values that a member at a path may have, of those that can be listed. */
export function valuesAt(path: string[]): Offer[] {
  const all = new Set<string>();
  for (const n of at(path)) {
    for (const v of (n.enum as unknown[] | undefined) ?? []) all.add(String(v));
    if (n.const !== undefined) all.add(String(n.const));
    if (n.type === 'boolean') all.add('true').add('false');
  }
  return [...all].map((label) => ({ label, info: '' }));
}

function about(of: unknown): string {
  for (const n of resolved(of)) if (typeof n.description === 'string') return n.description;
  return '';
}
