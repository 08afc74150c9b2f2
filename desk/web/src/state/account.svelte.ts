import { call, heard, Problem, Unreachable } from '../api/client';
import type { About, Claim } from '../api/types';
import { clock } from './clock.svelte';
import { kept } from './kept.svelte';
import { route } from './route.svelte';

// Who has signed in, what they may do, and whether the server is there. Nobody has to sign in where
// the server asks nobody who they are.

interface SignedIn {
  token: string;
  expiresAt: string;
  idleMsec: number;
}

class Account {
  about = $state<About>();
  phase = $state<'loading' | 'out' | 'in' | 'failed'>('loading');
  problem = $state<Error>();
  message = $state<'' | 'ended' | 'ticket'>('');
  offlineSince = $state(0);
  issuer = $state(false);
  idleMsec = $state(kept.idle);
  lastCall = $state(Infinity); // by the server's clock

  constructor() {
    heard.token = kept.token;
    heard.date = (at) => {
      clock.heard(at);
      this.lastCall = clock.now; // a stream that goes on is none
    };
    heard.issuer = (is) => (this.issuer = is);
    heard.signedOut = () => this.#ended();
    heard.reached = (is) => {
      if (is) this.offlineSince = 0;
      else if (this.offlineSince === 0) this.offlineSince = clock.now;
    };
  }

  async begin(): Promise<void> {
    const ticket = /^#t=(.+)$/.exec(location.hash)?.[1];
    if (ticket) {
      history.replaceState(null, '', location.pathname + location.search); // it is nobody else's to see
      try {
        await this.signIn({ ticket });
        if (kept.place) route.go(kept.place, true);
        kept.place = '';
        return;
      } catch {
        this.message = 'ticket';
      }
    }
    await this.look();
  }

  async look(): Promise<void> {
    this.phase = this.about ? this.phase : 'loading';
    try {
      this.about = await call<About>('GET', '/v1');
      this.phase = 'in';
    } catch (error) {
      if (error instanceof Problem && error.status === 401) this.phase = 'out';
      else if (!(error instanceof Unreachable) || !this.about) {
        this.phase = 'failed';
        this.problem = error as Error;
      }
    }
  }

  async signIn(by: { key: string } | { ticket: string }): Promise<void> {
    const made = await call<SignedIn>('POST', '/desk/session', by);
    kept.token = heard.token = made.token;
    this.idleMsec = kept.idle = made.idleMsec;
    this.message = '';
    await this.look();
  }

  async signOut(): Promise<void> {
    try {
      await call('DELETE', '/desk/session');
    } catch {
      // it is over here in any case
    }
    kept.forget();
    location.reload(); // whoever comes next finds nothing of what was loaded
  }

  #ended(): void {
    if (this.phase !== 'in') return;
    this.message = 'ended';
    this.phase = 'out';
  }

  may(permission: string): boolean {
    return this.about?.caller.permissions.includes(permission) ?? false;
  }

  /** As whom one speaks on a question of these humans: '' if there is a choice, or nobody. */
  speaksAs(humans: string[]): string {
    const mine = this.about?.caller.humans ?? [];
    const list = mine.includes('*') ? humans : humans.filter((h) => mine.includes(h));
    if (list.length === 1) return list[0] ?? '';
    return list.includes(kept.human) ? kept.human : '';
  }

  couldSpeakAs(humans: string[]): string[] {
    const mine = this.about?.caller.humans ?? [];
    return mine.includes('*') ? humans : humans.filter((h) => mine.includes(h));
  }

  /** Whether a claim is one's own, or makes a question so. */
  owns(claim?: Claim): boolean {
    const me = this.about?.caller;
    return claim !== undefined && ((claim.subject === me?.subject && !claim.for) || (me?.humans.includes(claim.specialistId ?? '') ?? false));
  }

  /** Whether what these humans may review concerns who has signed in: of who may not rule all does. */
  concerns(humans: string[]): boolean {
    return !this.may('rule') || this.couldSpeakAs(humans).length > 0;
  }

  /** What people call who has signed in. */
  get name(): string {
    const who = this.about?.caller;
    return who?.name || (who?.humans.length === 1 && who.humans[0] !== '*' ? (who.humans[0] ?? '') : (who?.subject ?? ''));
  }

  /** Whom a subject stands for: oneself has a name. */
  called(subject: string): string {
    return subject === this.about?.caller.subject ? this.name : subject;
  }

  /** The human as whom lists are looked at: the only one that the key names, else nobody. */
  get viewer(): string {
    const mine = this.about?.caller.humans ?? [];
    return mine.length === 1 && mine[0] !== '*' ? (mine[0] ?? '') : kept.human;
  }
}

export const account = new Account();
