package graph_test

const review = `{ "machineName": "document-review", "initialState": "pending", "goalState": "approved",
  "states": {
    "pending": { "prompt": "Review the document. Approve or request changes?",
      "transitions": { "approve": "approved", "reject": "rejected" } },
    "approved": {}, "rejected": {} },
  "specialists": [
    { "role": "proposer", "specialistId": "ai-proposer", "strategyFnName": "firstAvailable" },
    { "role": "arbiter", "specialistId": "consensus-arbiter", "strategyFnName": "alignmentMargin", "threshold": 0.5 } ] }`

const triage = `{ "machineName": "support-triage", "initialState": "new", "goalState": "solved",
  "states": {
    "new": { "transitions": { "sort": "sorting", "spam": "closed" } },
    "sorting": { "transitions": { "assign to billing": "billing", "assign to tech": "technical" } },
    "billing": { "transitions": { "ask the customer": "waiting for customer", "refund": { "target": "solved", "irreversible": true },
      "explain": "solved", "wrong desk": "sorting" } },
    "technical": { "transitions": { "ask the customer": "waiting for customer", "fix": "solved", "wrong desk": "sorting" } },
    "waiting for customer": { "transitions": { "customer answered": "billing", "no answer": "closed" } },
    "solved": {}, "closed": { "final": true } } }`

const claim = `{ "machineName": "damage-claim", "initialState": "received", "goalState": "paid",
  "states": {
    "received": { "transitions": { "documents complete": "assessment", "documents missing": "waiting" } },
    "assessment": { "prompt": "Is the damage covered?", "transitions": {
      "pay": { "target": "paid", "irreversible": true }, "ask for evidence": "waiting", "refuse": "refused" } },
    "waiting": { "transitions": { "evidence arrived": "assessment", "deadline passed": "refused" } },
    "paid": {}, "refused": { "final": true } },
  "specialists": [
    { "role": "proposer", "specialistId": "maria", "isHuman": true },
    { "role": "proposer", "specialistId": "policy-model", "strategyFnName": "firstAvailable" } ] }`

const pipeline = `{ "machineName": "release-pipeline", "initialState": "plan", "goalState": "released",
  "states": {
    "plan": { "transitions": { "write": "write" } },
    "write": { "transitions": { "format": "format" } },
    "format": { "transitions": { "compile": "compile" } },
    "compile": { "transitions": { "unit test": "unit test", "broken": "write" } },
    "unit test": { "transitions": { "integrate": "integrate", "fix": "write" } },
    "integrate": { "transitions": { "review": "review", "fix": "write" } },
    "review": { "transitions": { "stage": "stage", "rethink": "plan" } },
    "stage": { "transitions": { "canary": "canary" } },
    "canary": { "transitions": { "release": { "target": "released", "irreversible": true }, "roll back": "review" } },
    "released": {} } }`

const loop = `{ "machineName": "essay", "initialState": "draft", "goalState": "published",
  "states": {
    "draft": { "transitions": { "improve": "draft", "hand in": "sign-off" } },
    "sign-off": { "transitions": { "publish": "published", "back to the author": "draft" },
      "specialists": [ { "role": "proposer", "specialistId": "editor", "isHuman": true } ] },
    "published": {} },
  "specialists": [ { "role": "proposer", "specialistId": "writer", "strategyFnName": "firstAvailable" } ] }`

const hostile = `{ "machineName": "%%{init: x}%% \"]]></svg>", "initialState": "[*]", "goalState": "end",
  "states": {
    "[*]": { "transitions": { "-->": "\"quoted\" \\ <b>&amp;", ";": "state", "style: x#y;": "note", ": end": "[*]" } },
    "\"quoted\" \\ <b>&amp;": { "transitions": { "\\N\\l": "end", "%% comment": "%%", "}": "end", "#35;": "[*]" } },
    "state": { "transitions": { "as s1": "日本語の状態名はとても長いことがあります" } },
    "note": { "transitions": { "right of s0": "a name that is very much longer than any box should ever be, and then some words more" } },
    "%%": {},
    "日本語の状態名はとても長いことがあります": { "transitions": { "👩‍👩‍👧‍👦 ﷽": "end" } },
    "a name that is very much longer than any box should ever be, and then some words more": { "final": true },
    "unreachable": { "transitions": { "never": "end" } },
    "end": { "transitions": { "too late": "note" } } } }`

// people has all that a machine says about the data and the people of its sessions.
const people = `{ "machineName": "expense-approval", "initialState": "requested", "goalState": "paid",
  "groups": { "finance": [ "ann", "bob", "cyd" ], "legal": [ "dan" ], "board": [ "eve", "ann" ] },
  "specialists": [
    { "role": "proposer", "specialistId": "rule", "strategyFnName": "firstAvailable" },
    { "role": "proposer", "specialistId": "ann", "isHuman": true }, { "role": "proposer", "specialistId": "bob", "isHuman": true },
    { "role": "proposer", "specialistId": "cyd", "isHuman": true }, { "role": "proposer", "specialistId": "dan", "isHuman": true },
    { "role": "proposer", "specialistId": "eve", "isHuman": true } ],
  "states": {
    "requested": { "deciders": [ "group:finance", "group:board", "dan" ], "transitions": {
      "pay small": { "target": "paid", "when": "= data.amount <= 1000", "set": { "approvedBy": "= by" } },
      "pay": { "target": "paid", "irreversible": true, "when": "= data.amount > 1000",
        "approvals": { "count": 2, "from": [ "group:finance" ], "exclude": [ "starter" ] }, "set": { "approvedBy": "= by", "approvedAt": "= now" } },
      "contract": { "target": "contract", "set": { "kind": "contract", "reviewer": "", "openedAt": "= now", "clauses": [], "deadline": null, "renewal": false } } } },
    "contract": { "transitions": {
      "sign": { "target": "paid", "approvals": { "each": [ "group:legal", "group:finance" ], "exclude": [ "previous", "requested" ] } },
      "ask again": { "target": "requested", "approvals": 1, "when": "= size(data.clauses) > 0 && data.clauses.exists(c, c.risk == 'high' && !c.accepted)" },
      "board": { "target": "paid", "approvals": { "count": 2, "each": [ "group:board" ] } },
      "drop": { "target": "dropped", "approvals": { "each": [ "group:legal" ] } } } },
    "paid": {}, "dropped": { "final": true } } }`
