import { Hub, type Ask, type Tell } from './hub';

// Where there is no shared worker, the tab that has a lock reads the streams, and tells the others;
// when it goes another has the lock, and is told by all what they follow. Where there are no locks
// every tab reads for itself.

type Say = (ask: Ask) => void;

/** What a tab says goes where it returns; what it is told comes to heard. topics are those that it follows. */
export function lead(heard: (tell: Tell) => void, topics: () => string[]): Say {
  if (!('BroadcastChannel' in globalThis) || !navigator.locks) {
    const hub = new Hub();
    return (ask) => hub.hear(heard, ask);
  }
  const channel = new BroadcastChannel('dialai');
  const own = crypto.randomUUID();
  let hub: Hub | undefined;
  let token = '';
  let led = false; // by another tab, of which nobody knows what it has not passed on
  const tabs = new Map<string, (tell: Tell) => void>([[own, heard]]);
  const hear = (from: string, ask: Ask) => {
    if (!hub) return;
    const tab = tabs.get(from) ?? ((tell: Tell) => channel.postMessage({ to: from, tell }));
    tabs.set(from, tab);
    hub.hear(tab, ask);
  };
  const again = (say: Say): void => {
    say({ kind: 'hello', token });
    for (const topic of topics()) say({ kind: 'follow', topic, again: led });
  };
  channel.onmessage = (m: MessageEvent<{ to?: string; from?: string; tell?: Tell; ask?: Ask; leads?: boolean }>) => {
    const d = m.data;
    if (d.to === own && d.tell) {
      led = true;
      heard(d.tell);
    } else if (d.from && d.ask) hear(d.from, d.ask);
    else if (d.leads) {
      again((ask) => channel.postMessage({ from: own, ask }));
      led = true;
    }
  };
  // A tab that the browser keeps asleep, to go back to, leads nobody and waits for nothing.
  let asleep = new AbortController();
  const want = (): void => {
    const { signal } = (asleep = new AbortController());
    const leads = () =>
      new Promise<void>((done) => {
        hub = new Hub();
        channel.postMessage({ leads: true });
        again((ask) => hear(own, ask));
        signal.addEventListener('abort', () => {
          hub?.end();
          hub = undefined;
          done();
        });
      });
    navigator.locks.request('dialai-leader', { signal }, leads).catch(() => {});
  };
  addEventListener('pagehide', () => asleep.abort());
  addEventListener('pageshow', (e) => e.persisted && want());
  want();
  return (ask) => {
    if (ask.kind === 'hello') token = ask.token;
    if (hub) hear(own, ask);
    else channel.postMessage({ from: own, ask });
  };
}
