// The checks of one step in plain JavaScript, as a step guard in that language does
// them, without n-grams: for the ratio in docs/performance.md. It reads the steps
// that BenchmarkCheck writes:
//
//   go test -run '^$' -bench 'Check/b_strict,' ./guard -args -inputs /tmp/steps.json
//   node bench/js/check.mjs /tmp/steps.json
//
// The configuration is the published reference one with limits raised; it has no
// JSON Schema, so none is checked. Arguments arrive as objects here and as bytes
// there. With a further argument, ajv, the arguments of all three tools are held to the
// schema of input g, compiled by ajv; it is not a dependency of the project, so copy
// this file into an empty folder and run there:
//
//   npm install ajv && node check.mjs /tmp/steps.json ajv

import { readFileSync } from "node:fs";

const config = {
  maxSteps: 1e9, maxTokensPerStep: 4000, maxTotalTokens: 1e12, outputMin: 1, outputMax: 100000,
  forbidden: [/as an ai language model/i, /lorem ipsum/i],
  allowed: new Set(["search", "read_file", "write_file", "run_tests", "deploy"]),
  blastRadius: { write_file: 1e9, deploy: 1 },
  mutex: [["deploy", "run_tests"]],
  sequence: [{ tool: "deploy", requiresPrev: "run_tests" }],
  prices: { "gpt-4o": [2.5, 10], "gpt-4o-mini": [0.15, 0.6], "claude-sonnet-4-6": [3, 15], "claude-haiku-4-5": [1, 5] },
  maxDollars: 1e6, maxStateVisits: 3, maxOutputRepeats: 3, maxAttempts: 2, history: 50,
};

const schema = {
  type: "object", required: ["path", "query"], additionalProperties: false, properties: {
    path: { type: "string", minLength: 1, maxLength: 200 }, query: { type: "string", maxLength: 500 },
    offset: { type: "integer", minimum: 0 }, limit: { type: "integer", minimum: 1, maximum: 500 },
    recursive: { type: "boolean" }, tags: { type: "array", items: { type: "string" }, maxItems: 10 },
  },
};
let validate = () => true;
if (process.argv[3] === "ajv") {
  const { default: Ajv } = await import("ajv");
  validate = new Ajv().compile(schema);
}

// stable writes a value with the keys of its objects sorted.
function stable(v) {
  if (v === null || typeof v !== "object") return JSON.stringify(v);
  if (Array.isArray(v)) return "[" + v.map(stable).join(",") + "]";
  return "{" + Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + stable(v[k])).join(",") + "}";
}

function newTask() {
  return { steps: 0, tokens: 0, dollars: 0, tools: new Map(), last: "", states: [], output: "", streak: 0 };
}

// check judges a step and, if it is ok, counts it. It returns the reasons.
function check(task, step) {
  const reasons = [];
  const own = step.tokens_in + step.tokens_out;
  if (task.steps + 1 > config.maxSteps) reasons.push("max_steps");
  if (own > config.maxTokensPerStep) reasons.push("max_tokens_step");
  if (task.tokens + own > config.maxTotalTokens) reasons.push("max_tokens_total");
  const length = step.output.length; // not in code points: counting those takes almost as long as all else
  if (length < config.outputMin) reasons.push("length_min");
  if (length > config.outputMax) reasons.push("length_max");
  for (const pattern of config.forbidden) if (pattern.test(step.output)) reasons.push("forbidden_pattern");
  const counts = new Map();
  for (const call of step.tool_calls) {
    if (!config.allowed.has(call.name)) reasons.push("tool_not_allowed");
    if (!validate(call.args)) reasons.push("tool_args_invalid");
    counts.set(call.name, (counts.get(call.name) ?? 0) + 1);
  }
  for (const group of config.mutex) {
    if (group.filter((t) => counts.has(t) || task.tools.has(t)).length > 1 && group.some((t) => counts.has(t))) reasons.push("tool_mutex");
  }
  for (const [tool, n] of counts) if ((task.tools.get(tool) ?? 0) + n > (config.blastRadius[tool] ?? Infinity)) reasons.push("tool_blast_radius");
  for (const rule of config.sequence) if (counts.has(rule.tool) && !task.tools.has(rule.requiresPrev)) reasons.push("tool_sequence");
  const price = config.prices[step.model];
  const dollars = price ? (step.tokens_in * price[0] + step.tokens_out * price[1]) / 1e6 : 0;
  if (task.dollars + dollars > config.maxDollars) reasons.push("cost_cap");
  const streak = step.output === task.output ? task.streak + 1 : 1;
  if (streak > config.maxOutputRepeats) reasons.push("loop_repeat_output");
  let last = task.last;
  for (const call of step.tool_calls) {
    const key = stable({ name: call.name, args: call.args });
    if (key === last) reasons.push("loop_repeat_tool");
    last = key;
  }
  let visits = 1;
  for (const state of task.states) if (state === step.state) visits++;
  if (visits > config.maxStateVisits) reasons.push("loop_state_cycle");
  if ((step.attempt ?? 0) > config.maxAttempts) reasons.push("retry_exhausted");
  if (reasons.length > 0) return reasons;
  task.steps++;
  task.tokens += own;
  task.dollars += dollars;
  for (const [tool, n] of counts) task.tools.set(tool, (task.tools.get(tool) ?? 0) + n);
  task.last = last;
  task.output = step.output;
  task.streak = streak;
  task.states.push(step.state);
  if (task.states.length > config.history) task.states.shift();
  return reasons;
}

const steps = JSON.parse(readFileSync(process.argv[2], "utf8"));
const task = newTask();
let next = 0;
function run(n) {
  for (let i = 0; i < n; i++) {
    const reasons = check(task, steps[next++ % steps.length]);
    if (reasons.length > 0) throw new Error(reasons.join());
  }
}

run(20000); // until it is compiled
const took = [];
for (let i = 0; i < 100000; i++) {
  const start = process.hrtime.bigint();
  run(1);
  took.push(Number(process.hrtime.bigint() - start));
}
took.sort((a, b) => a - b);
let least = Infinity;
for (let i = 0; i < 400; i++) {
  const start = process.hrtime.bigint();
  run(50);
  least = Math.min(least, Number(process.hrtime.bigint() - start) / 50);
}
const p = (q) => took[Math.floor(took.length * q)];
console.log(`p50 ${p(0.5)} ns, p95 ${p(0.95)} ns, p99 ${p(0.99)} ns, least ${Math.round(least)} ns`);
