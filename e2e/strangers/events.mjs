// The EventSource that others have written: it follows a stream, and prints each event as a line of
// JSON, until it is killed.
//
//	node events.mjs http://…/v1/events?after=0 KEY kind,kind

import { EventSource } from "eventsource";

const [url, key, kinds] = process.argv.slice(2);
const source = new EventSource(url, {
  fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${key}` } }),
});
for (const kind of [...kinds.split(","), "reset"]) {
  source.addEventListener(kind, (e) => console.log(JSON.stringify({ kind, id: e.lastEventId, data: JSON.parse(e.data) })));
}
source.addEventListener("open", () => console.log(JSON.stringify({ kind: "open" })));
