import { call } from '../api/client';

// Who looks at a question for longer is at it, for others to see, and is so until they go on, let go,
// or close the page. It is advice: whoever may rule does.

/** A question that somebody has open. */
export interface Attended {
  id: string;
  as: string;
  free: () => boolean; // nobody else is at it
  kept: () => boolean; // it is given to somebody, answered or over: the claim goes with it
}

export class Attending {
  #mine = false; // claimed by this page
  #let = false; // by who wants to be at it no more
  #first: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setInterval> | undefined;
  #sent: Promise<unknown> = Promise.resolve();
  #of: Attended;

  constructor(of: Attended) {
    this.#of = of;
    addEventListener('pagehide', this.#left);
    document.addEventListener('visibilitychange', this.#seen);
    this.#seen();
    this.#again = setInterval(() => this.#mine && this.#put(), 10 * 60_000);
  }

  #seen = (): void => {
    clearTimeout(this.#first);
    if (document.visibilityState === 'visible') this.#first = setTimeout(() => this.#put(), this.#mine ? 0 : 5000);
  };

  #left = (closed?: Event): void => {
    if (this.#mine && !this.#of.kept()) (closed ? call('DELETE', this.#at, undefined, { keepalive: true }) : this.#send(false)).catch(() => {});
    this.#mine = false;
  };

  // One after the other: a claim that is on its way must not arrive after the word that lets go.
  #send(is: boolean): Promise<unknown> {
    const send = () => (is ? call('PUT', this.#at, { specialistId: this.#of.as }) : call('DELETE', this.#at));
    return (this.#sent = this.#sent.then(send, send));
  }

  get #at(): string {
    return `/v1/inbox/${this.#of.id}/claim`;
  }

  #put(): void {
    if (document.visibilityState !== 'visible' || this.#let || !this.#of.free()) return;
    this.#mine = true;
    this.#send(true).catch(() => (this.#mine = false));
  }

  /** At it, or not, by one's own word. */
  async say(is: boolean): Promise<void> {
    clearTimeout(this.#first);
    this.#mine = is;
    this.#let = !is;
    await this.#send(is).catch(() => {}); // it is advice
  }

  leave(): void {
    clearTimeout(this.#first);
    clearInterval(this.#again);
    removeEventListener('pagehide', this.#left);
    document.removeEventListener('visibilitychange', this.#seen);
    this.#left();
  }
}
