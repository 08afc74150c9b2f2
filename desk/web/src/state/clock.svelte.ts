// Ages go by the server's clock, whatever that of this computer says. Every second is soon enough.

class Clock {
  #offset = 0;
  now = $state(Date.now());

  constructor() {
    setInterval(() => this.tick(), 1000);
  }

  tick(): void {
    this.now = Date.now() + this.#offset;
  }

  /** The server says what time it is, in whole seconds. */
  heard(at: number): void {
    const off = at - Date.now();
    if (Math.abs(off - this.#offset) > 1500) this.#offset = off;
    this.tick();
  }
}

export const clock = new Clock();
