import { parse, stringify } from './json';

// The one way to the server: the public API, as any program calls it. A sign-in is a cookie that
// no script reads and a token that is sent along; the server's Date is the clock that ages go by.

/** An answer that is no success, as the server writes it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly hint: string,
    readonly requestId: string,
    readonly body: Record<string, unknown> = {},
  ) {
    super(detail || title);
  }
}

/** The server was not reached. */
export class Unreachable extends Error {}

/** What the rest of the page wants to know of each answer. */
export const heard = {
  token: '' as string,
  date: (_at: number): void => {},
  signedOut: (): void => {},
  issuer: (_is: boolean): void => {}, // people can log in at an issuer
  reached: (_is: boolean): void => {},
};

export interface Options {
  signal?: AbortSignal;
  idempotencyKey?: string;
  noneMatch?: string; // * if there is to be nothing yet
  keepalive?: boolean;
  ifMatch?: string;
}

export async function call<T>(method: string, path: string, body?: unknown, options: Options = {}): Promise<T> {
  const text = await ask(method, path, body, options);
  return (text === '' ? undefined : parse(text)) as T;
}

/** The lines of an answer that has one value a line. */
export async function lines<T>(path: string, options: Options = {}): Promise<T[]> {
  const text = await ask('GET', path, undefined, options);
  return text.split('\n').filter(Boolean).map((line) => parse(line) as T);
}

async function ask(method: string, path: string, body: unknown, options: Options): Promise<string> {
  const headers: Record<string, string> = { Accept: 'application/json, application/jsonl, application/x-ndjson;q=0.9' };
  if (heard.token) headers['Dialai-Desk'] = heard.token;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (options.ifMatch) headers['If-Match'] = options.ifMatch;
  if (options.noneMatch) headers['If-None-Match'] = options.noneMatch;
  if (options.idempotencyKey) headers['Idempotency-Key'] = options.idempotencyKey;
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : stringify(body), signal: options.signal, keepalive: options.keepalive, cache: 'no-store' });
    text = await answer.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    heard.reached(false);
    throw new Unreachable('the server cannot be reached');
  }
  heard.reached(true);
  const date = Date.parse(answer.headers.get('Date') ?? '');
  if (!Number.isNaN(date)) heard.date(date);
  if (answer.ok) return text;
  const problem = problemOf(answer.status, text);
  if (answer.status === 401) heard.issuer((answer.headers.get('Link') ?? '').includes('/desk/login'));
  if (answer.status === 401 && !path.startsWith('/desk/')) heard.signedOut();
  throw problem;
}

function problemOf(status: number, text: string): Problem {
  let body: Record<string, unknown> = {};
  try {
    const value = parse(text);
    if (typeof value === 'object' && value !== null) body = value as Record<string, unknown>;
  } catch {
    // whoever answered is no dialai
  }
  const of = (name: string) => (typeof body[name] === 'string' ? (body[name] as string) : '');
  return new Problem(status, of('code'), of('title') || `HTTP ${status}`, of('detail'), of('hint'), of('requestId'), body);
}

/** A query of the members that are not empty. */
export function query(members: Record<string, string | number | boolean | undefined>): string {
  const list = Object.entries(members).filter(([, v]) => v !== undefined && v !== '' && v !== false);
  return list.length === 0 ? '' : '?' + new URLSearchParams(list.map(([k, v]) => [k, String(v)])).toString();
}
