import { Problem } from './client';

/** Asks again for a while where the server says that it was asked too often. */
export async function patient<T>(run: () => Promise<T>, times = 8): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 429 || tried >= times) throw error;
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}
