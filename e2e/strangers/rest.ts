// A client whose types others have made of docs/openapi.json (openapi-typescript, in api.ts): it
// starts a session, looks at its question, rules, and prints what it met as JSON.
//
//	node rest.js '{"url": "http://…", "key": "…", "machine": {…}, "transition": "pay"}'

import type { components, operations } from "./api.js";

declare const process: { argv: string[] };

type Schemas = components["schemas"];
type JSONOf<T> = T extends { content: { "application/json": infer B } } ? B : never;
type Taken<O extends keyof operations> = operations[O] extends { requestBody: infer B } ? JSONOf<B> : undefined;
type Answers<O extends keyof operations> = JSONOf<operations[O]["responses"][keyof operations[O]["responses"]]>;
type Problem = Schemas["Error"];

const given = JSON.parse(process.argv[2]!) as { url: string; key: string; machine: unknown; transition: string };

async function call<O extends keyof operations>(_: O, method: string, path: string, body: Taken<O>): Promise<Answers<O> | Problem> {
  const init: RequestInit = { method, headers: { Authorization: `Bearer ${given.key}`, "Content-Type": "application/json", Accept: "application/json, application/problem+json" } };
  if (body !== undefined) init.body = JSON.stringify(body);
  const answer = await fetch(given.url + path, init);
  return (await answer.json()) as Answers<O> | Problem;
}

function well<T extends object>(answer: T | Problem): T {
  if ("retryable" in answer) throw new Error(`${answer.code}: ${answer.detail}`);
  return answer;
}

const started = well(await call("start-session", "POST", "/v1/sessions?wait=20s", { machine: given.machine, metaJson: { amount: 120 } }));
const id = started.session.sessionId;
const inbox = well(await call("list-inbox", "GET", "/v1/inbox", undefined));
const question = inbox.items.find((item) => item.sessionId === id);
if (!question) throw new Error("the question is not in the inbox");
const word: Schemas["Ruling"] = { transitionName: given.transition, roundId: question.roundId, questionDigest: question.digest, reasoning: "seen" };
const refused = await call("decide", "POST", `/v1/sessions/${id}/decisions`, { ...word, questionDigest: "sha256:0" });
const ruled = well(await call("decide", "POST", `/v1/sessions/${id}/decisions?wait=20s`, word));
console.log(
  JSON.stringify({
    choices: question.transitions.map((t) => t.name),
    refused: "code" in refused ? refused.code : "",
    executed: ruled.arbitration.executed,
    status: ruled.session.status,
    state: ruled.session.currentState,
  }),
);
