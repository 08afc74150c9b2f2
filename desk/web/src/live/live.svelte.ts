import workerURL from './worker.ts?sharedworker&url';
import { heard } from '../api/client';
import { Hub, type Ask, type Tell } from './hub';
import type { StreamEvent } from './sse';

// How a tab follows streams: by the shared worker; without one by the tab that has the lock, which
// tells the others; without either by itself.

type Follower = { event: (e: StreamEvent) => void; reset: () => void };

class Live {
  state = $state<'connecting' | 'live' | 'reconnecting'>('connecting');
  #followers = new Map<string, Set<Follower>>();
  #say: ((ask: Ask & { lock?: string }) => void) | undefined;
  #signedOut = (): void => {};
  #token = '';

  /** Begins, or goes on with another token. */
  begin(token: string, signedOut: () => void): void {
    this.#signedOut = signedOut;
    this.#token = token;
    if (!this.#say) {
      this.#say = this.#worker() ?? this.#leader() ?? this.#alone();
      const lock = 'dialai-tab-' + crypto.randomUUID();
      this.#say({ kind: 'hello', token });
      const say = this.#say;
      void navigator.locks?.request(lock, () => (say({ kind: 'hello', token: this.#token, lock }), new Promise(() => {}))); // not before it is held: whoever gets it takes this tab to be gone
      for (const topic of this.#followers.keys()) this.#say({ kind: 'follow', topic }); // asked for before there was anybody to ask
    } else this.#say({ kind: 'hello', token });
    addEventListener('pagehide', () => this.#say?.({ kind: 'bye' }), { once: true });
    addEventListener('pageshow', (e) => {
      if (e.persisted) for (const topic of this.#followers.keys()) this.#say?.({ kind: 'follow', topic });
    });
  }

  /** Follows a stream until what it returns is called. */
  follow(topic: string, event: (e: StreamEvent) => void, reset: () => void): () => void {
    const follower = { event, reset };
    const list = this.#followers.get(topic) ?? new Set();
    this.#followers.set(topic, list.add(follower));
    if (list.size === 1) this.#say?.({ kind: 'follow', topic });
    return () => {
      list.delete(follower);
      if (list.size === 0 && this.#followers.get(topic) === list) {
        this.#followers.delete(topic);
        this.#say?.({ kind: 'leave', topic });
      }
    };
  }

  #heard = (tell: Tell): void => {
    if (tell.kind === 'signedOut') return this.#signedOut();
    if (tell.kind === 'state') {
      if (tell.state === 'live') heard.reached(true);
      else if (tell.state === this.state && tell.state === 'reconnecting') heard.reached(false); // once is no sign
      this.state = tell.state;
    }
    for (const f of this.#followers.get(tell.topic) ?? []) {
      if (tell.kind === 'event') f.event(tell.event);
      else if (tell.kind === 'reset') f.reset();
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

  #leader(): ((ask: Ask) => void) | undefined {
    if (!('BroadcastChannel' in globalThis) || !navigator.locks) return;
    const channel = new BroadcastChannel('dialai');
    const own = crypto.randomUUID();
    let hub: Hub | undefined;
    let token = '';
    const tabs = new Map<string, (tell: Tell) => void>([[own, this.#heard]]);
    const hear = (from: string, ask: Ask) => {
      if (!hub) return;
      const tab = tabs.get(from) ?? ((tell: Tell) => channel.postMessage({ to: from, tell }));
      tabs.set(from, tab);
      hub.hear(tab, ask);
    };
    channel.onmessage = (m: MessageEvent<{ to?: string; from?: string; tell?: Tell; ask?: Ask; leads?: boolean }>) => {
      const d = m.data;
      if (d.to === own && d.tell) this.#heard(d.tell);
      else if (d.from && d.ask) hear(d.from, d.ask);
      else if (d.leads) this.#again((ask) => channel.postMessage({ from: own, ask }), token);
    };
    void navigator.locks.request('dialai-leader', () => {
      hub = new Hub();
      channel.postMessage({ leads: true });
      this.#again((ask) => hear(own, ask), token);
      return new Promise(() => {});
    });
    return (ask) => {
      if (ask.kind === 'hello') token = ask.token;
      if (hub) hear(own, ask);
      else channel.postMessage({ from: own, ask });
    };
  }

  #again(say: (ask: Ask) => void, token: string): void {
    say({ kind: 'hello', token });
    for (const topic of this.#followers.keys()) say({ kind: 'follow', topic });
  }

  #alone(): (ask: Ask) => void {
    const hub = new Hub();
    return (ask) => hub.hear(this.#heard, ask);
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
