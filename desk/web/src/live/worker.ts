import { Hub, type Ask } from './hub';

// The hub, in a worker that all tabs share. A tab that has gone without a word holds a lock no more.

declare const self: { onconnect: (e: MessageEvent) => void };

const hub = new Hub();

self.onconnect = (e) => {
  const port = e.ports[0];
  if (!port) return;
  const tab = (tell: unknown) => port.postMessage(tell);
  port.onmessage = (m: MessageEvent<Ask & { lock?: string }>) => {
    if (m.data.lock) void navigator.locks?.request(m.data.lock, () => hub.hear(tab, { kind: 'bye' }));
    hub.hear(tab, m.data);
  };
};
