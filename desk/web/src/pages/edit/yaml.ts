import { isRaw, stringify } from '../../api/json';

// A definition as YAML, as people write it: what could be read as something else is quoted.

const plain = /^[A-Za-z_][\w.-]*(?: [\w.()'/-]+)*\??$/; // no sign of YAML, and no number
const words = /^(?:true|false|null|yes|no|on|off|y|n)$/i;
const unseen = /[\u0000-\u001f\u007f-\u00a0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/;

function text(s: string): string {
  if (plain.test(s) && !words.test(s)) return s;
  if (s.includes('"') && !unseen.test(s)) return `'${s.replaceAll("'", "''")}'`;
  return JSON.stringify(s).replace(/[\u007f-\u00a0\u2028\u2029\ufeff\ufffe\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

const leaf = (v: unknown): boolean => typeof v !== 'object' || v === null || isRaw(v);
const scalar = (v: unknown): string => (typeof v === 'string' ? text(v) : stringify(v));

function block(value: unknown, indent: string): string {
  if (leaf(value)) return ' ' + scalar(value);
  if (Array.isArray(value)) {
    if (value.every(leaf)) return ` [${value.map(scalar).join(', ')}]`;
    return value.map((v) => `\n${indent}-` + (leaf(v) || Array.isArray(v) || Object.keys(v as object).length === 0 ? block(v, indent + '  ') : block(v, indent + '  ').replace(/^\n */, ' '))).join('');
  }
  const members = Object.entries(value as object);
  if (members.length === 0) return ' {}';
  return members.map(([name, v]) => `\n${indent}${text(name)}:` + block(v, indent + '  ')).join('');
}

export const toYaml = (value: unknown): string => block(value, '').trimStart() + '\n';
