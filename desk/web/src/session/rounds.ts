import type { LogEvent, TransitionRecord } from '../api/types';

// The rounds of a session, made of its events. Events may come without their texts: then only the
// kinds say what happened, and what the session itself knows of its rounds fills them in.

/** Somebody who was asked, and what came of it. */
export interface Ask {
  n: number;
  who: string;
  mode: string;
  role: string;
  at: string;
  deadline: string;
  shadow: boolean; // it is asked only to learn from
  wave: number; // from 1; 0 if all were asked at once
  answer: '' | 'proposed' | 'failed' | 'late' | 'withheld';
  transition: string;
  reasoning: string;
  payload: unknown;
  code: string;
  human: boolean;
  costUSD: unknown;
}

export interface Gate {
  transition: string;
  status: string;
  reasons: { code: string; message: string; limit: string; observed: string }[];
}

export interface Verdict {
  decided: boolean;
  code: string;
  arbiter: string;
  pick: string;
  p?: number;
  threshold?: number;
  margin?: number;
  reasoning: string;
  withheld: boolean;
}

/** What else happened: it was taken up again, moved, looked at. */
export interface Happened {
  seq: number;
  at: string;
  kind: string;
  who: string;
  note: string;
}

export interface Attempt {
  n: number; // from 0
  roundId: string;
  at: string;
  asks: Ask[];
  waves: number;
  withheld: number; // answers that are not shown
  verdicts: Verdict[];
  gates: Gate[];
  human?: { code: string; reason: string; at: string };
  words: { who: string; transition: string; payload: unknown }[]; // rulings that wait for others
  notes: Happened[];
  notices: string[];
  gaps: number[]; // spans of more than an hour in which nothing happened
}

export interface Round {
  number: number;
  state: string;
  attempts: Attempt[];
  first: number; // of its events
  last: number;
  at: string;
  until: string;
  due: string;
  executed: boolean;
  transition: string;
  to: string;
  by: string;
  payload: unknown;
  human: boolean;
  texts: boolean; // its events came with theirs
  gap: number; // how long nothing had happened before it, if that was long
  end?: { status: string; code: string; reason: string };
}

/** What a session says of itself. */
export interface Known {
  history: TransitionRecord[];
  currentState: string;
  round: number;
}

const hour = 3600_000;

type Data = Record<string, unknown>;
const text = (d: Data, name: string): string => (typeof d[name] === 'string' ? (d[name] as string) : '');
const number = (d: Data, name: string): number | undefined => (typeof d[name] === 'number' ? (d[name] as number) : undefined);
const list = (d: Data, name: string): Data[] => (Array.isArray(d[name]) ? (d[name] as unknown[]).filter((v): v is Data => typeof v === 'object' && v !== null) : []);
const actorOf = (d: Data): string => text(d, 'specialistId') || (typeof d.actor === 'object' && d.actor !== null ? text(d.actor as Data, 'subject') : text(d, 'actor'));

/** The rounds, the oldest first. */
export function roundsOf(events: LogEvent[], known: Known): Round[] {
  const rounds: Round[] = [];
  let round: Round | undefined;
  let attempt: Attempt | undefined;
  let before = NaN;
  for (const e of events) {
    const d: Data = typeof e.data === 'object' && e.data !== null ? (e.data as Data) : {};
    const at = Date.parse(e.at);
    const gap = at - before > hour ? at - before : 0;
    before = at;
    if (e.kind === 'round_opened') {
      if (!round || round.executed) {
        round = { number: 0, state: '', attempts: [], first: e.seq, last: e.seq, at: e.at, until: e.at, due: '', executed: false, transition: '', to: '', by: '', payload: undefined, human: false, texts: false, gap };
        rounds.push(round);
      } else if (attempt && gap) attempt.gaps.push(gap);
      round.texts = text(d, 'roundId') !== '';
      round.number = number(d, 'round') ?? round.number;
      round.state = text(d, 'state') || round.state;
      round.due = text(d, 'due') || round.due;
      attempt = { n: number(d, 'attempt') ?? round.attempts.length, roundId: text(d, 'roundId'), at: e.at, asks: [], waves: 0, withheld: 0, verdicts: [], gates: [], words: [], notes: [], notices: strings(d.notices), gaps: [] };
      round.attempts.push(attempt);
    } else if (round && attempt) {
      if (gap && !round.executed) attempt.gaps.push(gap);
      add(round, attempt, e, d);
    }
    if (round) {
      round.last = e.seq;
      round.until = e.at;
    }
  }
  fill(rounds, known);
  return rounds;
}

function strings(v: unknown): string[] {
  return Array.isArray(v) ? v.filter((s): s is string => typeof s === 'string') : [];
}

function add(round: Round, attempt: Attempt, e: LogEvent, d: Data): void {
  switch (e.kind) {
    case 'asked': {
      const asks = list(d, 'asks');
      if (asks.some((a) => typeof a.wave === 'object')) attempt.waves++;
      for (const a of asks) {
        const n = number(a, 'ask') ?? 0;
        const had = attempt.asks.find((o) => o.n === n);
        if (had) {
          had.deadline = text(a, 'deadline') || had.deadline;
          continue;
        }
        attempt.asks.push({
          n, who: text(a, 'specialistId'), mode: text(a, 'mode'), role: text(a, 'role'), at: e.at, deadline: text(a, 'deadline'), shadow: a.shadow === true, wave: attempt.waves,
          answer: '', transition: '', reasoning: '', payload: undefined, code: '', human: false, costUSD: undefined,
        });
      }
      return;
    }
    case 'proposed': {
      const ask = answered(attempt, d, e);
      [ask.answer, ask.transition, ask.reasoning, ask.payload, ask.human] = ['proposed', text(d, 'transitionName'), text(d, 'reasoning'), d.metaJson, d.isHuman === true];
      return;
    }
    case 'ask_failed': {
      const ask = answered(attempt, d, e);
      [ask.answer, ask.code, ask.reasoning] = ['failed', text(d, 'code'), text(d, 'message')];
      return;
    }
    case 'discarded':
      if (!text(d, 'roundId') || text(d, 'roundId') === attempt.roundId) {
        const ask = answered(attempt, d, e);
        [ask.answer, ask.transition, ask.code] = ['late', text(d, 'transitionName'), text(d, 'code')];
      }
      return;
    case 'answered':
      attempt.withheld++;
      return;
    case 'judged':
      attempt.verdicts.push(verdict(attempt, e, d));
      return;
    case 'gated':
      if (!text(d, 'status')) return; // what it says is withheld
      attempt.gates.push({
        transition: text(d, 'transitionName'), status: text(d, 'status'),
        reasons: list(d, 'reasons').map((r) => ({ code: text(r, 'code'), message: text(r, 'message'), limit: text(r, 'limit'), observed: text(r, 'observed') })),
      });
      return;
    case 'needs_human':
      attempt.human = { code: text(d, 'code'), reason: text(d, 'reason'), at: e.at };
      return;
    case 'ruled':
      attempt.words = [...attempt.words.filter((w) => w.who !== text(d, 'specialistId') || w.who === ''), { who: text(d, 'specialistId'), transition: text(d, 'transitionName'), payload: d.metaJson }];
      return;
    case 'executed':
      [round.executed, round.transition, round.to, round.by, round.human] = [true, text(d, 'transitionName'), text(d, 'toState'), text(d, 'specialistId'), d.isHuman === true];
      round.payload = d.metaJson;
      round.state = text(d, 'fromState') || round.state;
      return;
    case 'ended':
      round.end = { status: text(d, 'status'), code: text(d, 'code'), reason: text(d, 'reason') };
      return;
    case 'resumed':
      delete round.end;
      delete attempt.human;
      attempt.notes.push({ seq: e.seq, at: e.at, kind: e.kind, who: actorOf(d), note: text(d, 'note') });
      return;
    case 'moved':
    case 'reviewed':
    case 'retracted':
    case 'revealed':
    case 'reminded':
      attempt.notes.push({ seq: e.seq, at: e.at, kind: e.kind, who: actorOf(d), note: text(d, 'note') || text(d, 'reasoning') || text(d, 'transitionName') });
  }
}

/** Whose answer an event is. Whoever was not asked came by themselves. */
function answered(attempt: Attempt, d: Data, e: LogEvent): Ask {
  const n = number(d, 'ask');
  const who = text(d, 'specialistId');
  let ask = n === undefined ? attempt.asks.find((a) => a.who === who && who !== '' && a.role === '') : attempt.asks.find((a) => a.n === n);
  if (!ask) {
    ask = { n: n ?? 0, who, mode: text(d, 'mode'), role: text(d, 'role'), at: e.at, deadline: '', shadow: false, wave: 0, answer: '', transition: '', reasoning: '', payload: undefined, code: '', human: false, costUSD: undefined };
    attempt.asks.push(ask);
  }
  ask.costUSD = d.costUSD;
  return ask;
}

function verdict(attempt: Attempt, e: LogEvent, d: Data): Verdict {
  const why = typeof d.explanation === 'object' && d.explanation !== null ? (d.explanation as Data) : {};
  const options = strings(why.options);
  const P = Array.isArray(why.P) ? (why.P as unknown[]) : [];
  const risk = typeof why.risk === 'object' && why.risk !== null ? (why.risk as Data) : {};
  const winner = attempt.asks.filter((a) => a.answer === 'proposed')[number(d, 'winner') ?? -1];
  const pick = text(why, 'pick') || (d.consensusReached === true ? (winner?.transition ?? '') : '');
  const p = P[options.indexOf(pick)];
  return {
    decided: d.consensusReached === true, code: text(d, 'code'), arbiter: text(d, 'arbiterId'), pick,
    ...(typeof p === 'number' && { p }),
    ...(number(risk, 'tau') !== undefined ? { threshold: number(risk, 'tau') } : number(d, 'threshold') !== undefined && { threshold: number(d, 'threshold') }),
    ...(d.hasMargin === true && number(d, 'margin') !== undefined && { margin: number(d, 'margin') }),
    reasoning: text(d, 'reasoning'), withheld: e.withheld === true,
  };
}

/** What the session knows of rounds goes into those whose events came without texts. */
function fill(rounds: Round[], known: Known): void {
  const executed = rounds.filter((r) => r.executed).length;
  const before = known.history.length - executed; // of a fork: what came along
  let base = before + 1;
  const told = rounds.findIndex((r) => r.number > 0);
  if (told >= 0) base = (rounds[told]?.number ?? 1) - told;
  rounds.forEach((r, i) => {
    r.number ||= base + i;
    const h = r.executed ? known.history[before + i] : undefined;
    if (h) {
      r.state ||= h.fromState;
      r.transition ||= h.transitionName;
      r.to ||= h.toState;
      r.by ||= h.specialistId ?? '';
      r.payload ??= h.metaJson;
      r.human ||= h.isHuman;
      const last = r.attempts.at(-1);
      if (last) last.roundId ||= h.roundId;
    } else r.state ||= known.currentState;
    for (const a of r.attempts) {
      const open = a.asks.filter((k) => k.answer === '' && k.role === '');
      if (a.withheld >= open.length) for (const k of open) if (a.withheld > 0) k.answer = 'withheld';
    }
  });
}

export type Line = { kind: 'round'; round: Round } | { kind: 'gap'; ms: number; key: number } | { kind: 'older'; n: number };

/** What a list of rounds shows, the newest first: so many rounds, and how many are folded. */
export function linesOf(rounds: Round[], shown: number): Line[] {
  const lines: Line[] = [];
  const from = Math.max(0, rounds.length - shown);
  for (let i = rounds.length - 1; i >= from; i--) {
    const round = rounds[i];
    if (!round) continue;
    lines.push({ kind: 'round', round });
    if (round.gap > 0) lines.push({ kind: 'gap', ms: round.gap, key: round.first });
  }
  if (from > 0) lines.push({ kind: 'older', n: from });
  return lines;
}

/** How long an ask may still take; below 0 it is late. */
export function left(ask: Ask, now: number): number | undefined {
  const at = Date.parse(ask.deadline);
  return ask.answer === '' && !Number.isNaN(at) ? at - now : undefined;
}

/** How a round is named to the server: an attempt that is not the first has its number. */
export function nameOf(round: Round, attempt?: Attempt): string {
  return attempt && attempt.n > 0 ? `${round.number}.${attempt.n}` : String(round.number);
}
