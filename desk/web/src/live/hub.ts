import { Events, type StreamEvent } from './sse';

// The streams of all tabs. A browser has six connections to a server at most, so each stream is
// read once, for whoever follows it in whichever tab. It goes on behind the newest event that was
// seen; whoever was not there is told to load again what they show.

/** What a tab says. */
export type Ask = { kind: 'hello'; token: string } | { kind: 'follow'; topic: string; again?: boolean } | { kind: 'leave'; topic: string } | { kind: 'bye' };

/** What a tab is told. */
export type Tell =
  | { kind: 'event'; topic: string; event: StreamEvent }
  | { kind: 'state'; topic: string; state: State }
  | { kind: 'reset'; topic: string }
  | { kind: 'signedOut' };

/** How a stream stands. */
export type State = 'connecting' | 'live' | 'reconnecting' | 'refused';

export type Tab = (tell: Tell) => void;

interface Stream {
  tabs: Set<Tab>;
  state: State;
  missed: boolean; // something may have come meanwhile
  stop: AbortController;
}

export class Hub {
  #streams = new Map<string, Stream>();
  #token = '';

  hear(tab: Tab, ask: Ask): void {
    switch (ask.kind) {
      case 'hello':
        if (ask.token !== this.#token) {
          this.#token = ask.token;
          for (const topic of [...this.#streams.keys()]) this.#begin(topic);
        }
        return;
      case 'follow':
        return this.#follow(tab, ask.topic, ask.again ?? false);
      case 'leave':
        return this.#leave(tab, ask.topic);
      case 'bye':
        for (const topic of [...this.#streams.keys()]) this.#leave(tab, topic);
    }
  }

  /** Reads nothing any more. */
  end(): void {
    for (const stream of this.#streams.values()) stream.stop.abort();
    this.#streams.clear();
  }

  #follow(tab: Tab, topic: string, again: boolean): void {
    const stream = this.#streams.get(topic);
    if (stream) {
      stream.tabs.add(tab);
      tab({ kind: 'state', topic, state: stream.state });
      if (!again) return;
      if (stream.state === 'live') tab({ kind: 'reset', topic });
      else stream.missed = true;
      return;
    }
    this.#streams.set(topic, { tabs: new Set([tab]), state: 'connecting', missed: again, stop: new AbortController() });
    this.#begin(topic);
  }

  #leave(tab: Tab, topic: string): void {
    const stream = this.#streams.get(topic);
    if (stream?.tabs.delete(tab) && stream.tabs.size === 0) {
      stream.stop.abort();
      this.#streams.delete(topic);
    }
  }

  #begin(topic: string): void {
    const stream = this.#streams.get(topic);
    if (!stream) return;
    stream.stop.abort();
    stream.stop = new AbortController();
    void this.#read(topic, stream, stream.stop.signal);
  }

  #tell(stream: Stream, tell: Tell): void {
    for (const tab of stream.tabs) tab(tell);
  }

  #set(topic: string, stream: Stream, state: Stream['state']): void {
    stream.state = state;
    this.#tell(stream, { kind: 'state', topic, state });
  }

  async #read(topic: string, stream: Stream, signal: AbortSignal): Promise<void> {
    const events = new Events();
    for (let failed = 0; !signal.aborted; ) {
      let wait = events.retry;
      try {
        const headers: Record<string, string> = { Accept: 'text/event-stream' };
        if (this.#token) headers['Dialai-Desk'] = this.#token;
        if (events.id) headers['Last-Event-ID'] = events.id;
        const answer = await fetch(topic, { headers, signal, cache: 'no-store' });
        if (answer.status === 401) {
          this.#tell(stream, { kind: 'signedOut' });
          return;
        }
        if (answer.status === 403) {
          this.#set(topic, stream, 'refused'); // it will be again
          return;
        }
        if (!answer.ok || !answer.body) throw new Error(String(answer.status));
        if (stream.missed || (stream.state === 'reconnecting' && !events.id)) this.#tell(stream, { kind: 'reset', topic });
        stream.missed = false;
        this.#set(topic, stream, 'live');
        failed = 0;
        const text = new TextDecoder();
        for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
          for (const event of events.add(text.decode(piece, { stream: true }))) {
            if (event.kind === 'reset') {
              events.id = '';
              this.#tell(stream, { kind: 'reset', topic });
            } else if (event.kind === 'bye') wait = 200;
            else this.#tell(stream, { kind: 'event', topic, event });
          }
        }
      } catch {
        // it is tried again
      }
      if (signal.aborted) return;
      this.#set(topic, stream, 'reconnecting');
      await pause(Math.min(wait * 2 ** Math.min(failed++, 4), 30_000), signal);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true });
  });
}
