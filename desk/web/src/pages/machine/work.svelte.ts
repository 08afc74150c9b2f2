import { call, lines } from '../../api/client';
import type { Job } from '../../api/types';

// A job of the server, how far it is, and in the end the lines of its result. It is looked at each
// second until it ends; without an id there is none.

export class Work<T> {
  job = $state.raw<Job>();
  result = $state.raw<T[]>();
  problem = $state.raw<Error>();

  constructor(readonly id: () => string) {
    $effect(() => {
      const of = id();
      [this.job, this.result, this.problem] = [undefined, undefined, undefined];
      if (!of) return;
      let timer: ReturnType<typeof setTimeout> | undefined;
      let gone = false;
      const at = '/v1/jobs/' + encodeURIComponent(of);
      const look = async () => {
        try {
          const now = await call<Job>('GET', at);
          if (gone) return;
          this.job = now;
          if (this.running) {
            timer = setTimeout(look, 1000);
            return;
          }
          const result = now.resultBytes ? await lines<T>(at + '/result') : [];
          if (!gone) this.result = result;
        } catch (error) {
          if (!gone) this.problem = error as Error;
        }
      };
      void look();
      return () => {
        gone = true;
        clearTimeout(timer);
      };
    });
  }

  get running(): boolean {
    return this.job?.status === 'queued' || this.job?.status === 'running';
  }

  async cancel(): Promise<void> {
    try {
      await call('DELETE', '/v1/jobs/' + encodeURIComponent(this.id()));
    } catch (error) {
      this.problem = error as Error;
    }
  }
}
