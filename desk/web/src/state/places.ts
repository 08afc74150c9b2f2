import { call } from '../api/client';
import type { List, Machine } from '../api/types';

// What can be chosen in a filter: the machines that there are, and the states of one of them. What may
// not be seen, or does not come, is not there to choose.

export const machinesOf = (): Promise<string[]> => call<List<Machine>>('GET', '/v1/machines?limit=200').then((page) => page.items.map((m) => m.machineName), () => []);

export const statesOf = (machine: string): Promise<string[]> =>
  machine ? call<Machine>('GET', '/v1/machines/' + encodeURIComponent(machine)).then((m) => Object.keys((m.definition as { states?: object } | undefined)?.states ?? {}), () => []) : Promise.resolve([]);
