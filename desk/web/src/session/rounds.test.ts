import { describe, expect, test } from 'vitest';
import type { LogEvent, TransitionRecord } from '../api/types';
import { left, linesOf, nameOf, roundsOf, type Known } from './rounds';

const start = Date.parse('2026-01-02T03:00:00Z');
let seq = 0;
const at = (min: number) => new Date(start + min * 60_000).toISOString();
const event = (min: number, kind: string, data: unknown = {}, more: Partial<LogEvent> = {}): LogEvent => ({ v: 1, hash: '', seq: ++seq, at: at(min), kind, data, ...more });
const opened = (min: number, round: number, attempt = 0, more: object = {}) => event(min, 'round_opened', { roundId: `r${round}.${attempt}`, round, attempt, state: 's' + round, ...more });
const executed = (min: number, round: number) => event(min, 'executed', { transitionName: 'go', fromState: 's' + round, toState: 's' + (round + 1), specialistId: 'one' });
const record = (round: number): TransitionRecord => ({ fromState: 's' + round, toState: 's' + (round + 1), roundId: 'r' + round, isHuman: false, transitionName: 'go', reasoning: '', executionTimestamp: at(0), specialistId: 'one' });
const known = (n: number): Known => ({ history: Array.from({ length: n }, (_, i) => record(i + 1)), currentState: 's' + (n + 1), round: n + 1 });

describe('rounds', () => {
  test('are numbered by their texts, and by those of others', () => {
    seq = 0;
    const events = [event(0, 'session_created'), event(0, 'round_opened'), event(0, 'executed'), event(0, 'learned'), opened(1, 2), executed(2, 2), event(2, 'round_opened')];
    const rounds = roundsOf(events, known(2));
    expect(rounds.map((r) => [r.number, r.state, r.transition, r.texts, r.first, r.last])).toEqual([
      [1, 's1', 'go', false, 2, 4],
      [2, 's2', 'go', true, 5, 6],
      [3, 's3', '', false, 7, 7],
    ]);
  });

  test('of a fork begin behind what came along', () => {
    const rounds = roundsOf([event(0, 'session_created'), event(0, 'round_opened'), event(1, 'executed'), event(1, 'round_opened')], known(5));
    expect(rounds.map((r) => [r.number, r.state])).toEqual([[5, 's5'], [6, 's6']]);
  });

  test('have attempts inside', () => {
    const rounds = roundsOf([opened(0, 1), event(0, 'gated', { transitionName: 'go', status: 'retry', reasons: [{ code: 'again', message: 'm', limit: '1', observed: '2' }] }), opened(0, 1, 1, { notices: ['try another'] }), executed(1, 1)], known(1));
    expect(rounds).toHaveLength(1);
    expect(rounds[0]?.attempts.map((a) => a.n)).toEqual([0, 1]);
    expect(rounds[0]?.attempts[0]?.gates[0]).toEqual({ transition: 'go', status: 'retry', reasons: [{ code: 'again', message: 'm', limit: '1', observed: '2' }] });
    expect(rounds[0]?.attempts[1]?.notices).toEqual(['try another']);
    expect(nameOf(rounds[0]!, rounds[0]!.attempts[1])).toBe('1.1');
    expect(nameOf(rounds[0]!, rounds[0]!.attempts[0])).toBe('1');
  });

  test('name waves and shadows', () => {
    const asked = (n: number, who: string, more: object = {}) => ({ ask: n, specialistId: who, mode: 'model', ...more });
    const [r] = roundsOf(
      [
        opened(0, 1),
        event(0, 'asked', { asks: [asked(1, 'a', { wave: { specialists: ['a', 'b', 'c'] } }), asked(2, 'b', { shadow: true })] }),
        event(0, 'proposed', { ask: 1, specialistId: 'a', transitionName: 'go' }),
        event(0, 'asked', { asks: [asked(3, 'c', { wave: { specialists: ['c'] } })] }),
      ],
      known(0),
    );
    expect(r?.attempts[0]?.waves).toBe(2);
    expect(r?.attempts[0]?.asks.map((a) => [a.who, a.wave, a.shadow, a.answer])).toEqual([['a', 1, false, 'proposed'], ['b', 1, true, ''], ['c', 2, false, '']]);
  });

  test('count deadlines down while nobody has answered', () => {
    const asks = [{ ask: 1, specialistId: 'a', deadline: at(2) }, { ask: 2, specialistId: 'b', deadline: at(2) }, { ask: 3, specialistId: 'c' }];
    const [r] = roundsOf([opened(0, 1), event(0, 'asked', { asks }), event(0, 'ask_failed', { ask: 2, specialistId: 'b', code: 'timeout' })], known(0));
    expect(r?.attempts[0]?.asks.map((a) => left(a, start))).toEqual([120_000, undefined, undefined]);
    expect(left(r!.attempts[0]!.asks[0]!, start + 180_000)).toBe(-60_000);
    const again = roundsOf([opened(0, 1), event(0, 'asked', { asks }), event(0, 'asked', { asks: [{ ask: 1, specialistId: 'a', deadline: at(9), accepted: true }] })], known(0));
    expect(again[0]?.attempts[0]?.asks).toHaveLength(3);
    expect(left(again[0]!.attempts[0]!.asks[0]!, start)).toBe(540_000);
  });

  test('tell nothing of answers that are withheld', () => {
    const asks = [{ ask: 1, specialistId: 'a' }, { ask: 2, specialistId: 'b' }];
    const some = roundsOf([opened(0, 1), event(0, 'asked', { asks }), event(0, 'answered', {}, { withheld: true })], known(0));
    expect(some[0]?.attempts[0]?.withheld).toBe(1);
    expect(some[0]?.attempts[0]?.asks.map((a) => a.answer)).toEqual(['', '']); // nobody says whose it is
    const all = roundsOf([opened(0, 1), event(0, 'asked', { asks }), event(0, 'answered', {}, { withheld: true }), event(0, 'answered', {}, { withheld: true }), event(0, 'judged', { arbiterId: 'x' }, { withheld: true })], known(0));
    expect(all[0]?.attempts[0]?.asks.map((a) => a.answer)).toEqual(['withheld', 'withheld']);
    expect(all[0]?.attempts[0]?.verdicts[0]?.withheld).toBe(true);
  });

  test('have the probability of what was picked beside what it is compared with', () => {
    const [r] = roundsOf([opened(0, 1), event(0, 'judged', { consensusReached: true, code: 'decided', explanation: { options: ['x', 'y'], P: [0.07, 0.93], pick: 'y', risk: { tau: 0.9 } } })], known(0));
    expect(r?.attempts[0]?.verdicts[0]).toMatchObject({ decided: true, pick: 'y', p: 0.93, threshold: 0.9 });
  });

  test('fold long gaps, inside and between', () => {
    const rounds = roundsOf([opened(0, 1), event(0, 'needs_human', { code: 'cold_start' }), executed(3000, 1), opened(3000, 2), executed(3001, 2), opened(3100, 3), event(3159, 'ended', { status: 'stopped', code: 'max_steps' })], known(2));
    expect(rounds[0]?.attempts[0]?.gaps).toEqual([3000 * 60_000]);
    expect(rounds.map((r) => r.gap)).toEqual([0, 0, 99 * 60_000]);
    expect(rounds[2]?.end).toEqual({ status: 'stopped', code: 'max_steps', reason: '' });
  });

  test('are listed the newest first, the older ones folded', () => {
    const events = Array.from({ length: 20 }, (_, i) => [event(i, 'round_opened'), event(i, 'executed')]).flat();
    const lines = linesOf(roundsOf(events, known(20)), 8);
    expect(lines.map((l) => (l.kind === 'round' ? l.round.number : l.kind === 'older' ? `> ${l.n}` : ''))).toEqual([20, 19, 18, 17, 16, 15, 14, 13, '> 12']);
    expect(linesOf(roundsOf(events, known(20)), 100)).toHaveLength(20);
    expect(linesOf([], 8)).toEqual([]);
  });

  test('take up again what had ended', () => {
    const [r] = roundsOf([opened(0, 1), event(0, 'ended', { status: 'stopped', code: 'max_steps' }), event(9, 'resumed', { actor: { subject: 'root' }, note: 'go on' })], known(0));
    expect(r?.end).toBeUndefined();
    expect(r?.attempts[0]?.notes[0]).toMatchObject({ kind: 'resumed', who: 'root', note: 'go on' });
  });

  test('take whoever was not asked, and words that wait', () => {
    const [r] = roundsOf([opened(0, 1), event(0, 'proposed', { specialistId: 'dave', isHuman: true, transitionName: 'go' }), event(1, 'ruled', { specialistId: 'carol', transitionName: 'x' }), event(2, 'ruled', { specialistId: 'carol', transitionName: 'y' })], known(0));
    expect(r?.attempts[0]?.asks).toMatchObject([{ who: 'dave', answer: 'proposed', transition: 'go', human: true }]);
    expect(r?.attempts[0]?.words).toEqual([{ who: 'carol', transition: 'y' }]);
  });

  test('of events that are no events break nothing', () => {
    expect(roundsOf([event(0, 'asked', null), event(0, 'round_opened', 7), event(0, 'asked', { asks: [1, null] }), event(0, 'judged', { explanation: { P: 'x' } }), event(0, 'later_kind', {})], known(0))).toHaveLength(1);
  });
});
