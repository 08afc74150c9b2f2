import type { Session } from '../api/types';

// The limits that are in force for a session where it stands: those of its state before those of its
// machine, and what humans have raised since.

export interface Limit {
  name: string; // where a guards section has it
  value: number;
  state: string; // whose it is; '' of the machine
  unit: 'dollars' | 'msec' | 'share' | 'count';
  code: string; // of what is refused because of it
}

// By name: the code of what is refused.
const codes: Record<string, string> = {
  'limits.max_steps': 'max_steps', 'limits.max_tokens_per_step': 'max_tokens_step', 'limits.max_total_tokens': 'max_tokens_total', 'limits.output_max': 'length_max',
  'cost.max_dollars_per_task': 'cost_cap', 'retry.max_attempts': 'retry_exhausted',
  'loop_detection.max_state_visits': 'loop_state_cycle', 'loop_detection.max_repeats': 'loop_repeat_output', 'loop_detection.max_output_repeats': 'loop_repeat_output',
  'budget.hard_limit_tokens': 'budget_tokens', 'budget.hard_limit_calls': 'budget_calls', 'budget.hard_limit_usd': 'budget_usd', 'budget.hard_limit_wall_ms': 'budget_wall', 'budget.round_limit_wall_ms': 'budget_wall',
  'budget.no_progress_ms': 'budget_no_progress', 'budget.probe_share_max': 'budget_probe_share', 'budget.soft_limit_tokens': '', 'budget.soft_limit_usd': '',
};
const radius = 'tool_calls.blast_radius.';

type Tree = Record<string, unknown>;
const tree = (v: unknown): Tree => (typeof v === 'object' && v !== null ? (v as Tree) : {});

function at(guards: unknown, name: string): number | undefined {
  const [section, ...rest] = name.startsWith(radius) ? ['tool_calls', 'blast_radius', name.slice(radius.length)] : name.split('.');
  const of = tree(tree(guards)[section ?? '']);
  const v = rest.length === 2 ? tree(of[rest[0] ?? ''])[rest[1] ?? ''] : of[rest[0] ?? ''];
  return typeof v === 'number' ? v : undefined;
}

export function unitOf(name: string): Limit['unit'] {
  return /_usd$|dollars/.test(name) ? 'dollars' : name.endsWith('_ms') ? 'msec' : name.endsWith('probe_share_max') ? 'share' : 'count';
}

/** The limits in force; the one that has stopped the session first. */
export function limitsOf(s: Pick<Session, 'machine' | 'currentState' | 'raised' | 'code'>): Limit[] {
  const machine = tree(s.machine);
  const own = tree(tree(machine.states)[s.currentState]).guards;
  const tools = [machine.guards, own].flatMap((g) => Object.keys(tree(tree(tree(g).tool_calls).blast_radius)));
  const names = [...Object.keys(codes), ...new Set(tools.map((tool) => radius + tool))];
  const list: Limit[] = [];
  for (const name of names) {
    const mine = at(own, name);
    let value = mine ?? at(machine.guards, name);
    if (value === undefined) continue;
    for (const r of s.raised ?? []) if (r.limit === name && (mine === undefined || r.state === s.currentState)) value = r.to;
    list.push({ name, value, state: mine === undefined ? '' : s.currentState, unit: unitOf(name), code: codes[name] ?? 'tool_blast_radius' });
  }
  return list.sort((a, b) => Number(stops(b, s.code)) - Number(stops(a, s.code)));
}

export function stops(limit: Limit, code: string | undefined): boolean {
  return limit.code !== '' && limit.code === code;
}
