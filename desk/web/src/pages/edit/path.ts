import { syntaxTree } from '@codemirror/language';
import type { EditorState } from '@codemirror/state';
import type { SyntaxNode } from '@lezer/common';

// Where in a document the cursor is, as the path of members to it.

export interface Place {
  path: string[];
  /** What is written there: the name of a member, or its value. */
  what: 'member' | 'value';
  from: number; // where the word begins
}

const bare = (text: string): string => text.replace(/^["']|["']$/g, '');

export function placeOf(state: EditorState, pos: number): Place {
  const word = /["']?[\w$-]*$/.exec(state.doc.lineAt(pos).text.slice(0, pos - state.doc.lineAt(pos).from))?.[0] ?? '';
  const from = pos - word.length;
  const node = syntaxTree(state).resolveInner(pos, -1);
  const path: string[] = [];
  let what: Place['what'] = 'member';
  let first = true;
  for (let n: SyntaxNode | null = node; n; n = n.parent) {
    if (n.name === 'Property' || n.name === 'Pair') {
      const key = n.firstChild;
      const end = key?.to ?? n.from;
      const colon = state.doc.sliceString(end, Math.min(pos, n.to)).includes(':');
      if (first) what = colon && !inside(n, pos) ? 'value' : 'member';
      if (key && (colon || !first)) path.unshift(bare(state.doc.sliceString(key.from, key.to)));
      first = false;
    } else if (n.name === 'Array' || n.name === 'BlockSequence' || n.name === 'FlowSequence') path.unshift('0');
    else if ((n.name === 'Object' || n.name === 'BlockMapping' || n.name === 'FlowMapping') && first) first = false;
  }
  return { path, what, from };
}

// inside reports whether a place is in an object or a list that a member has for its value.
function inside(n: SyntaxNode, pos: number): boolean {
  const value = n.lastChild;
  return value !== null && /Object|Array|Mapping|Sequence/.test(value.name) && pos > value.from;
}
