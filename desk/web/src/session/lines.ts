import type { LogEvent } from '../api/types';

// What an event says in a few words, where its texts are known.

type Data = Record<string, unknown>;
const text = (d: Data, name: string): string => (typeof d[name] === 'string' ? (d[name] as string) : '');

export function lineOf(e: LogEvent): string {
  const d: Data = typeof e.data === 'object' && e.data !== null ? (e.data as Data) : {};
  const join = (...parts: string[]): string => parts.filter(Boolean).join(' ');
  switch (e.kind) {
    case 'round_opened':
      return join(d.round === undefined ? '' : `${String(d.round)}${d.attempt ? '.' + String(d.attempt) : ''}`, text(d, 'state'));
    case 'asked':
      return Array.isArray(d.asks) ? d.asks.map((a: unknown) => text((a ?? {}) as Data, 'specialistId')).filter(Boolean).join(', ') : '';
    case 'proposed':
    case 'ruled':
    case 'reviewed':
      return join(text(d, 'specialistId') && text(d, 'specialistId') + ':', text(d, 'transitionName'));
    case 'ask_failed':
    case 'discarded':
      return join(text(d, 'specialistId') && text(d, 'specialistId') + ':', text(d, 'code'), text(d, 'message'));
    case 'judged':
      return join(text(d, 'arbiterId') && text(d, 'arbiterId') + ':', text(d, 'code'));
    case 'gated':
      return join(text(d, 'transitionName') && text(d, 'transitionName') + ':', text(d, 'status'));
    case 'executed':
      return join(text(d, 'fromState') && `${text(d, 'fromState')} →`, text(d, 'toState'), text(d, 'transitionName') && `(${text(d, 'transitionName')})`);
    case 'needs_human':
    case 'ended':
      return join(text(d, 'status'), text(d, 'code'), text(d, 'reason') && '· ' + text(d, 'reason'));
    case 'session_created':
      return join(text(d, 'machineName'), text(d, 'subject') && '· ' + text(d, 'subject'));
    default:
      return join(text(d, 'specialistId'), text(d, 'note') || text(d, 'reason'));
  }
}
