/** Whether a time of day, 07:30, lies between two, over midnight if need be. */
export function between(at: string, from: string, to: string): boolean {
  return from <= to ? from <= at && at < to : from <= at || at < to;
}
