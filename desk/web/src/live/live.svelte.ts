import workerURL from './worker.ts?sharedworker&url';
import { heard } from '../api/client';
import type { Ask, State, Tell } from './hub';
import type { StreamEvent } from './sse';

// How a tab follows streams: by the shared worker, or without one by a tab that leads.

type Follower = { event: (e: StreamEvent) => void; reset: () => void; open?: () => void };

class Live {
  state = $state<State>('connecting'); // of all that are followed, what is worth knowing
  #states = new Map<string, State>();
  #followers = new Map<string, Set<Follower>>();
  #say: ((ask: Ask & { lock?: string }) => void) | undefined;
  #signedOut = (): void => {};
  #token = '';

  /** Begins, or goes on with another token. */
  begin(token: string, signedOut: () => void): void {
    this.#signedOut = signedOut;
    this.#token = token;
    if (!this.#say) {
      this.#say = this.#worker() ?? this.#leader();
      const lock = 'dialai-tab-' + crypto.randomUUID();
      this.#say({ kind: 'hello', token });
      const say = this.#say;
      void navigator.locks?.request(lock, () => (say({ kind: 'hello', token: this.#token, lock }), new Promise(() => {}))); // not before it is held: whoever gets it takes this tab to be gone
      for (const topic of this.#followers.keys()) this.#say({ kind: 'follow', topic }); // asked for before there was anybody to ask
      addEventListener('pagehide', () => say({ kind: 'bye' }));
      addEventListener('pageshow', (e) => {
        if (e.persisted) for (const topic of this.#followers.keys()) say({ kind: 'follow', topic, again: true });
      });
    } else this.#say({ kind: 'hello', token });
  }

  /** Follows a stream until what it returns is called. What happens before it is open is not told. */
  follow(topic: string, event: (e: StreamEvent) => void, reset: () => void, open?: () => void): () => void {
    const follower = { event, reset, open };
    const list = this.#followers.get(topic) ?? new Set();
    this.#followers.set(topic, list.add(follower));
    if (this.#say && heard.token !== this.#token) this.begin(heard.token, this.#signedOut); // the old one would sign out again
    if (list.size === 1) this.#say?.({ kind: 'follow', topic });
    return () => {
      list.delete(follower);
      if (list.size === 0 && this.#followers.get(topic) === list) {
        this.#followers.delete(topic);
        this.#states.delete(topic);
        this.#look();
        this.#say?.({ kind: 'leave', topic });
      }
    };
  }

  #look(): void {
    const all = [...this.#states.values()];
    this.state = (['reconnecting', 'live', 'connecting', 'refused'] as const).find((s) => all.includes(s)) ?? this.state;
  }

  #heard = (tell: Tell): void => {
    if (tell.kind === 'signedOut') return this.#signedOut();
    if (tell.kind === 'state') {
      if (tell.state === 'live') heard.reached(true);
      else if (tell.state === this.#states.get(tell.topic) && tell.state === 'reconnecting') heard.reached(false); // once is no sign
      this.#states.set(tell.topic, tell.state);
      this.#look();
    }
    for (const f of this.#followers.get(tell.topic) ?? []) {
      if (tell.kind === 'event') f.event(tell.event);
      else if (tell.kind === 'reset') f.reset();
      else if (tell.state === 'live') f.open?.();
    }
  };

  #worker(): ((ask: Ask) => void) | undefined {
    if (!('SharedWorker' in globalThis)) return;
    try {
      const worker = new SharedWorker(trusted(workerURL) as string, { type: 'module', name: 'dialai' });
      worker.port.onmessage = (m: MessageEvent<Tell>) => this.#heard(m.data);
      worker.port.start();
      return (ask) => worker.port.postMessage(ask);
    } catch {
      return undefined;
    }
  }

  #leader(): (ask: Ask) => void {
    const leader = import('./leader').then(({ lead }) => lead(this.#heard, () => [...this.#followers.keys()]));
    return (ask) => void leader.then((say) => say(ask), () => {});
  }
}

/** The address of the worker, as the only one that the page's policy lets a script be loaded from. */
function trusted(url: string): unknown {
  const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(u: string): unknown } } }).trustedTypes;
  if (!types) return url;
  return types
    .createPolicy('desk-worker', {
      createScriptURL(u: string) {
        if (u !== workerURL) throw new TypeError('another script');
        return u;
      },
    })
    .createScriptURL(url);
}

export const live = new Live();
