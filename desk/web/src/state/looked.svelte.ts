// For how long something was looked at: what is in front of nobody's eyes does not count.

const longest = 86_400_000; // ms: a day, as the server takes

/** Measures from when the effect runs that calls it, until that runs again. */
export class Looked {
  #before = 0; // ms, until it was out of sight
  #since = 0; // when it came into sight; 0 while it is not

  begin(): () => void {
    const now = () => (document.visibilityState === 'visible' ? performance.now() : 0);
    [this.#before, this.#since] = [0, now()];
    const turned = () => ([this.#before, this.#since] = [this.ms, now()]);
    document.addEventListener('visibilitychange', turned);
    return () => document.removeEventListener('visibilitychange', turned);
  }

  get ms(): number {
    return Math.min(Math.round(this.#before + (this.#since && performance.now() - this.#since)), longest);
  }
}
