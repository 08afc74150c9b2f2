import { numberOf } from '../api/json';
import words from './en.sessions.json';
import { learn } from './text';

// The words of the pages about sessions, and the numbers that they show.

learn(words);

const money2 = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 2 });
const money6 = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 6 });
const tiny = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumSignificantDigits: 2 });
const two = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 9 });
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hourCycle: 'h23' });
const day = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' });

/** Dollars: what is small keeps its digits. */
export function dollars(value: number): string {
  const v = numberOf(value);
  const of = Math.abs(v);
  return (of >= 1 ? money2 : of >= 1e-6 || of === 0 ? money6 : tiny).format(v);
}

/** A probability, a weight, a share. */
export const share = (value: number): string => two.format(numberOf(value));

export const amount = (value: number): string => whole.format(numberOf(value));

/** When something was, among others of the same day. */
export function instant(at: string): string {
  const ms = Date.parse(at);
  return Number.isNaN(ms) ? at : clock.format(ms);
}

export function dayOf(at: string): string {
  const ms = Date.parse(at);
  return Number.isNaN(ms) ? '' : day.format(ms);
}
