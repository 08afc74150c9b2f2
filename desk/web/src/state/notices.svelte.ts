import type { Item } from '../api/types';
import '../text/pages';
import { t } from '../text/text';
import { account } from './account.svelte';
import { kept } from './kept.svelte';
import { between } from './quiet';

// Somebody who looks elsewhere is told, if they want that, how many questions came and of which
// machine: never what they say, only what they may decide, and not more often than each half minute.

const atMost = 30_000;

class Notices {
  #counts = new Map<string, number>();
  #next = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  opened(question: Item): void {
    if (!kept.settings.notify || document.visibilityState === 'visible' || account.couldSpeakAs(question.humans).length === 0) return;
    this.#counts.set(question.machineName, (this.#counts.get(question.machineName) ?? 0) + 1);
    this.#timer ??= setTimeout(() => this.#tell(), Math.max(0, this.#next - Date.now()));
  }

  #tell(): void {
    this.#timer = undefined;
    this.#next = Date.now() + atMost;
    const lines = [...this.#counts].map(([machine, n]) => t('notify.body', { n, machine }));
    this.#counts.clear();
    const { quietFrom, quietTo } = kept.settings;
    if (quietFrom && quietTo && between(new Date().toTimeString().slice(0, 5), quietFrom, quietTo)) return;
    if (document.visibilityState !== 'visible' && globalThis.Notification?.permission === 'granted') new Notification(t('notify.title'), { body: lines.join('\n'), tag: 'dialai' });
  }
}

export const notices = new Notices();
