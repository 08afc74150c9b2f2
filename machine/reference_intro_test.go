package machine_test

// introduction is the part of docs/machine-file.md that is written by hand, with
// ~ where that has a backtick. The tests beside TestReference hold it to what the
// loader does.
const introduction = `# Machine file

For somebody who writes one. The introduction is written by hand, everything from
[Every object](#every-object) on is generated from the JSON Schema that
~dialai schema~ prints (~go generate ./machine~).

A machine file is JSON (~.json~) or YAML (~.yaml~, ~.yml~), UTF-8, at most 1 MiB.
~dialai init~ writes one to begin with, ~dialai lint FILE~ checks one, ~dialai graph
FILE~ draws one. An editor helps if the file names its schema:

~~~json
{
  "$schema": "https://raw.githubusercontent.com/dialai/dialai/main/schema/machine.schema.json",
  "machineName": "expenses",
  "initialState": "submitted",
  "goalState": "paid",
  "states": {
    "submitted": {
      "prompt": "May this be paid?",
      "transitions": { "approve": "paid", "ask": "manager" }
    },
    "manager": {
      "prompt": "Above the limit. May it be paid?",
      "transitions": { "approve": "paid", "reject": "rejected" },
      "specialists": [{ "role": "proposer", "specialistId": "boss" }]
    },
    "paid": {},
    "rejected": { "final": true }
  },
  "specialists": [
    { "role": "proposer", "specialistId": "limit", "strategyFn": "= metaJson.amount < 100 ? \"approve\" : \"ask\"" },
    { "role": "proposer", "specialistId": "boss", "isHuman": true },
    { "role": "arbiter", "specialistId": "margin", "strategyFnName": "alignmentMargin", "threshold": 0.5 }
  ]
}
~~~

## What a text may hold

People decide by the names that they see. So a name holds no character that is invisible or
changes how others look:

- control characters (C0, DEL, C1) and format characters (Unicode category Cf: zero-width
  characters, bidirectional controls, soft hyphens, tags);
- line and paragraph separators, and all spaces but U+0020;
- noncharacters, halves of surrogate pairs, and bytes that are not UTF-8;
- characters that fonts leave out or draw as a blank (fillers, variation selectors, the blank
  of Braille, the null notehead of music).

Names are all keys of a file and all texts that are not prose: targets, ids, models,
addresses, variables. Prose is ~prompt~, ~description~, ~strategyFn~, ~forbidden_patterns~,
what stands below a JSON Schema, and extensions (~x-~). Prose may also hold tabs, line feeds,
carriage returns, all spaces and blanks, variation selectors, and the joiners U+200C and
U+200D. Any other character is an error (~hidden-character~), also in files with guards and
prices. Definitions that a store already holds stay as they are.

## How much is read

A file that you name yourself, on the command line or in a variable, may be a file, a pipe or
a device (~/dev/stdin~, ~<(…)~, ~-~). A file that a machine file names, or that the program
finds in a folder that you name, must be a regular file. A file that a machine file names
(~guards~) must be below the machine file's folder, after links are resolved, unless you say
~--allow-outside~. Logs and traces may have any length; the program reads them line by line.

| file | at most |
|---|---|
| key of a server | 4 KiB |
| specification | 128 KiB |
| session input | 256 KiB |
| machine file, guards file, prices file, certificate or key, settings of a server, tokens of a server, permissions file, dump of an undertaking | 1 MiB |
| list of workers, script of an agent | 16 MiB |
| cassette, order of cassettes, file of vectors, list of prices of others | 64 MiB |
| data file | 1 GiB |

## What order means

dialai keeps the order in which you write states, transitions and specialists, also of names
that look like numbers. The order has a meaning:

- **Transitions**: ~firstAvailable~ proposes the first one, ~lastAvailable~ the last
  one; every list that you are shown has this order.
- **Specialists**: the engine asks proposers in the order of the list, and the arbiter gets
  their proposals in that order, those of humans first. The order decides between equals.
  (Only under ~firstProposal~ and in the mode ~eager~ does it matter who answered first.) The
  first enabled arbiter decides.
- **States**: the order matters only to lists and drawings.

A file in another order is another definition. Sessions keep the definition with which they
were started, so a changed file affects only new sessions.

## Who takes part in a state

Without a list of its own, a state has the specialists of the machine. With one,
exactly the proposers of its list take part, in its order; ~[]~ is nobody. An entry
of only ~role~ and ~specialistId~ is a **reference** to a specialist of the machine,
such as ~boss~ above; it may also say ~enabled~ or ~disabled~, for this state only.
Any other entry declares a specialist that acts in this state and nowhere else. The
arbiter is the first enabled one of the state's list, else that of the machine.
Humans of the machine may decide in every state, listed or not.

A specialist says in exactly one way how it is asked:

| way | fields |
|---|---|
| a rule in the file | ~strategyFn~, beginning with ~=~ |
| a Go function of your program | ~strategyFn~, the name it is registered under |
| built in | ~strategyFnName~ |
| a service, see [webhooks.md](webhooks.md) | ~strategyWebhookUrl~ and ~webhookTokenName~ |
| a model | ~contextFn~ or ~contextWebhookUrl~, with ~modelId~ |
| a person | ~isHuman~; nothing else is needed |

What a model needs besides is in the environment: see [models.md](models.md).

## How many must answer

The members of a panel check each other. If two of three services fail, the third must not
decide as if it were the panel. So a round is decided without a human only if it reaches its
**quorum**. By default that is a majority of the proposers that were asked; one answer is
enough under ~firstProposal~, in the mode ~eager~, and for a champion that is asked alone.

~~~yml
quorum: 2                # or any, majority, all; a state's own beats the machine's
specialists:
  - { role: proposer, specialistId: fraud-rule, strategyFn: '= metaJson.score > 0.9 ? "refuse" : "pay"', required: true }
~~~

- A proposer has not answered if its ask failed, timed out, was not legal or could not be
  paid for.
- Humans do not count, nor do proposers that are asked only to learn from them.
- A number is not lowered to the size of the panel; ~dialai lint~ warns if it is above that.
- Who proposes before anybody is asked is one of the panel, and the others count, too.
- A ~required~ proposer must have answered whatever the quorum is, even if it is switched
  off. It is asked in the first wave, beside a champion, and is never left out because its
  answer would tell little.
- A champion decides alone only where a declared quorum allows it; otherwise the engine asks
  the others, too.
- The engine stops asking early only once the quorum is reached.

If a round does not reach its quorum, the session waits for a human (~no_quorum~) and says
who did not answer; where proposals are withheld it says only how many. ~dialai resume~ asks
those again who failed. What a human proposes needs no quorum, since that is no automatic
decision.

### What decides first

There may be several reasons not to execute what an arbiter chose. The first that holds
gives the session its code:

| | holds if | code |
|---|---|---|
| 1 | nobody proposed anything | ~no_proposals~ |
| 2 | what a human proposed has won | none: it is executed, 3 to 6 do not count; but where a second human may have to agree before it waits for a ruling (~ruling_needed~), and so does what others than [deciders](#who-may-rule) proposed (~deciders~) |
| 3 | the engine stopped asking because no answer could reach the threshold, or because more answers cost more than a human | that of the arbiter (~cannot_reach~, ~below_tau~) |
| 4 | the quorum is not reached, or a required proposer has not answered | ~no_quorum~ |
| 5 | the arbiter finds no consensus; a human sent the state back; the transition is irreversible, in this order | that of the arbiter; ~calibrating~; ~irreversible~ |
| 6 | the parameters of the transition ask for a payload, and nobody who proposed it gave one | ~no_payload~ |
| 7 | the guards, then an audit before execution | theirs; ~audit~ |

## What a session is about

A session is about one case: an invoice, a claim, a release. A machine can say what it must
start with, what that is in a few words, what its transitions write down, and on which of it
a transition may be chosen.

~~~yaml
machineName: invoices
initialState: received
goalState: paid
input:
  type: object
  required: [number, amount]
  properties:
    number: { type: string }
    amount: { type: number, minimum: 0 }
    currency: { type: string, default: EUR }
subject: '= "Invoice " + data.number'
states:
  received:
    prompt: May this be paid?
    transitions:
      pay: { target: paid, when: '= data.amount <= 1000', set: { paidBy: '= by', paidAt: '= now' } }
      ask: { target: manager, set: { asked: true } }
  manager:
    transitions:
      approve: { target: paid, set: { paidBy: '= by', amount: '= has(payload.amount) ? payload.amount : data.amount' } }
      refuse: refused
  paid: {}
  refused: { final: true }
specialists:
  - { role: proposer, specialistId: rule, strategyFn: '= data.amount <= 1000 ? "pay" : "ask"' }
  - { role: proposer, specialistId: boss, isHuman: true }
  - { role: arbiter, specialistId: first, strategyFnName: firstProposal }
~~~

~~~sh
dialai invoices.yaml --meta number=2026-0017 --meta amount=120
~~~

**~input~** is the JSON Schema of what a session starts with, its ~metaJson~; nothing counts
as ~{}~. If the schema is not satisfied, no session begins, and you are told everything that is
wrong at once (~invalid_input~). ~--input~ takes the whole object: a file in JSON or YAML,
~-~ for stdin, or the object itself. ~--meta key=value~ adds a member or replaces one. Where
the schema names one type for the member, the value is read by it, so ~number=42~ stays a
text; ~--meta key:=value~ is JSON in any case.

**Data.** What a session started with never changes. Its data do: they begin as a copy of
~metaJson~, completed by the ~default~s of the members of ~input~, and transitions write them.

**~set~** of a transition names the members that it writes: a JSON value, or an expression.
A text that begins with ~==~ is written without its first ~=~; of one that reads like an
expression, but does not begin with ~=~, ~dialai lint~ warns (~SET001~). All values are worked out from
the data as they were, then written together when the transition is executed. If an expression
fails, or the data would be larger than 256 KiB or nested deeper than 64 levels, the transition
is not executed. A decision of the engine then waits for a human (~set_failed~); the ruling of
a human is refused with the same code, so that another one can follow.

**~when~** of a transition is the condition on which it may be chosen. It is evaluated once,
when a round opens, and recorded. A transition whose condition does not hold, or fails, is
closed in that round: models are not offered it, proposals of it are not legal, and no human
can choose it. A question shows it with its condition. Where all are closed, the session fails
(~dead_end~). ~dialai lint~ warns of states that have only transitions with conditions
(~WHEN001~), and of conditions that read nothing, so hold always or never (~WHEN002~); what never
holds leads to no state.

**~subject~** says in a few words what a session is about. The text stands beside the id of
the session in lists and questions, cut at 120 characters. It is evaluated at the start and
whenever data are written, and recorded; where it fails it is empty.

With ~input~, ~dialai lint~ warns of expressions that read a member of ~data~ or ~metaJson~
that ~input~ does not declare and no ~set~ writes, that compare one with what ~input~ never
lets it be, or that yield one of a type that does not fit (~INPUT001~). It follows them into
objects, and into the elements of lists that ~items~ describes, filtered or not. A ~when~, ~set~ or ~due.at~ that
reads a member that is missing fails; lint names those that ~input~ does not require and gives
no default, where neither the expression nor, for ~set~, the transition's ~when~ tests for them
(~INPUT002~). What ~set~ reads of ~payload~ is held against the ~parameters~ of the transition in
the same way, with or without ~input~ (~PARAM002~). Words in ~input~ and ~parameters~ that JSON
Schema does not have check nothing (~unknown-keyword~); a ~default~ that its own schema refuses
is written all the same, and one of a required member never is (~INPUT003~).

## Who may rule

A human who takes part in a state may rule there. ~deciders~ leaves that to some of them, and
~approvals~ takes the word of several before a transition is executed.

~~~yaml
machineName: expenses
initialState: requested
goalState: paid
groups: { finance: [alice, bob, carol], legal: [lea] }
input: { type: object, required: [amount], properties: { amount: { type: number } } }
states:
  requested:
    prompt: May this be paid?
    deciders: ["group:finance", lea]
    transitions:
      pay: { target: paid, when: '= data.amount <= 1000', approvals: { exclude: [starter] } }
      payMuch: { target: paid, when: '= data.amount > 1000', approvals: { count: 2, from: ["group:finance"], exclude: [starter] } }
      payAbroad: { target: paid, approvals: { each: ["group:finance", "group:legal"], exclude: [starter] } }
      refuse: refused
  paid: {}
  refused: { final: true }
specialists:
  - { role: proposer, specialistId: alice, isHuman: true }
  - { role: proposer, specialistId: bob, isHuman: true }
  - { role: proposer, specialistId: carol, isHuman: true }
  - { role: proposer, specialistId: lea, isHuman: true }
  - { role: proposer, specialistId: dave, isHuman: true }
  - { role: arbiter, specialistId: judge }
~~~

**~deciders~** are ids of humans and groups (~group:NAME~). Others may only propose there, and
what they propose is not executed without a ruling (~deciders~). No human's proposal then
executes what is irreversible.

**~approvals~** is how many humans have to choose the transition, or more exactly: how many
(~count~), whose word counts (~from~), the groups of which one human each has to be among them
(~each~; whoever is in several groups stands for one of them, so ~count~ may not be lower than
there are groups), and who may not (~exclude~): ~starter~, as whom the session was started
(~dialai run --as ID~); ~previous~, who executed the step before; or a state, for who ruled
there last, also under another name if the session was [moved](cli.md#dialai-move) with
~--state~. A consensus never executes such a transition: the session needs a human
(~approvals~).

A ruling that does not complete the approvals is kept, and shown with its payload: approvals
agree only about the same payload. Until they are complete each may be given anew, or taken
back with ~dialai decide ID --withdraw~; meanwhile no consensus executes anything. A ruling
for a transition that takes no approvals is executed at once. Approvals that could never be
complete are a load error, and a question says who may still approve, who may not, and why;
~dialai lint~ warns where whoever may be excluded is one too many (~too-few-humans~). Where nobody
may rule on anything any more, the session needs a human with the code ~too_few_deciders~.

## By when

~due~ of a state says by when it is to be left, and what is executed if it is not.

~~~yaml
machineName: refunds
initialState: requested
goalState: paid
input: { type: object, properties: { deadline: { type: string, default: 72h } } }
states:
  requested:
    prompt: May this be paid back?
    due: { in: 24h, remind: [4h, 1h], then: escalate }
    transitions: { pay: cooling, escalate: management, refuse: refused }
  management:
    prompt: The desk did not answer in time. May this be paid back?
    due: { at: '= data.deadline' }
    specialists: [{ role: proposer, specialistId: mia, isHuman: true }]
    transitions: { pay: cooling, refuse: refused }
  cooling:
    due: { in: 1h, then: pay }
    specialists: []
    transitions: { pay: paid }
  paid: {}
  refused: { final: true }
specialists:
  - { role: proposer, specialistId: carol, isHuman: true }
  - { role: arbiter, specialistId: judge }
~~~

**The moment** is counted from the entry into the state: ~in~ is how long after it, ~at~ an
expression that yields a time or a duration. A plain duration, ~due: 24h~, is ~in~. It is worked
out once, when the session enters the state, and recorded; each entry counts anew, also from the
state itself, and a further attempt at a round does not. What lies in the past is due at once. If
~at~ fails there is no moment, and the question says why (~dueError~).

**Without ~then~** nothing is decided: a question past its moment is overdue, and stands first in
~dialai inbox~.

**With ~then~** the engine executes that transition when the moment has come and nothing else was
executed before: at the next step, by ~__timer~, through the guards as a ruling. It teaches
nothing and nobody is asked for it. Until then whoever may rule can; rulings that wait for others
hold it up no longer than that. It cannot be irreversible, take approvals or need a payload. Where
its condition does not hold, a guard refuses it, or it cannot set what it is to set
(~set_failed~), it is not tried again in that round, until somebody raises the limit or moves the
session. A session that was stopped has no timer until it is resumed.

**A wait** is a state with ~then~ for which neither its list nor, where it has none, that of the
machine names a proposer or a human, and that has no ~deciders~. Nobody is asked there, and
nothing happens before the timer: the session stays ~running~, and a run ends with exit code 5
and the code ~timer~. Where its timer can do nothing, it needs a human (~due_failed~, ~closed~,
~set_failed~).

**Reminders** are durations before the moment. Each is an event in the log, once; of several that
have passed by the next step the last. What would have come before the entry never comes.

No process has to stay for any of it: ~dialai tick~ does whatever has come, and ~--wait~ has a run
stay until the timer comes. Guards' limits of time do not count how long a session waits.

## Expressions

A text that begins with ~=~ is an expression in [CEL](https://cel.dev), at most 1,024
characters long. The loader checks it, and its cost is limited when it runs. As ~strategyFn~
it is a rule, and its text is the reasoning of its proposal.

Numbers of ~data~, ~metaJson~ and ~payload~ are floating-point. You may compare them and
calculate with them beside whole numbers, which then count as floating-point too: ~data.n / 2~
of 7 is 3.5, as ~7 / 2~ is 3; ~double(visits) / 2~ is not cut off. ~%~ takes both kinds.
~string(data.amount)~ writes a number as JSON does: ~25000000~, ~0.1~, and an exponent only from
1e21 on and below 0.000001. An expression that reads a missing member fails; test for the member
with ~has(data.amount)~.

Functions are those of CEL's standard library, such as ~size~, ~contains~, ~startsWith~, ~matches~,
~timestamp~ and ~duration~, and its macros for lists: ~all~, ~exists~, ~exists_one~, ~map~ and
~filter~, as in ~data.lines.filter(line, line.amount > 100).size()~. None adds up a list: let the
session start with the sum.

### Expressions of proposers

| variable | type | what it is |
|---|---|---|
| ~state~ | text | the name of the state |
| ~data~ | any JSON | the data of the session: what it was started with, and what transitions have set since |
| ~metaJson~ | any JSON | what the session was started with; ~{}~ if that was nothing |
| ~visits~ | whole number | how often the session has been in this state, now included |
| ~steps~ | whole number | how many transitions were executed so far |
| ~last~ | text | the transition that was executed last; empty before the first |

It yields the name of a transition. Names that are written in the expression itself
must be transitions of a state in which the specialist takes part.

- ~= metaJson.amount < 100 ? "approve" : "ask"~
- ~= has(metaJson.receipt) && metaJson.receipt ? "approve" : "reject"~
- ~= visits > 2 ? "ask" : "approve"~

If it fails, the proposer has not answered.

### Expressions of arbiters

| variable | type | what it is |
|---|---|---|
| ~proposals~ | whole number | how many proposals there are |
| ~humans~ | whole number | how many of them are by humans |
| ~leader~ | text or null | the transition with most proposals; null if two are equal |
| ~aheadBy~ | whole number | by how many proposals it leads; 0 if two are equal |
| ~heaviest~ | text or null | the transition with most weight; null if two are equal |
| ~margin~ | number | how far it leads, as a share of all weight |
| ~threshold~ | number | the threshold in force; 1 if nobody set one |
| ~none~ | null | what to yield if a human must decide |

It yields the name of a transition, whose heaviest proposal then wins, or ~none~. A
transition that nobody proposed is no consensus either.

- ~= aheadBy >= 2 ? leader : none~
- ~= margin >= threshold ? heaviest : none~
- ~= humans > 0 ? leader : (proposals == 1 ? leader : none)~

### Expressions of conditions

| variable | type | what it is |
|---|---|---|
| ~data~ | any JSON | the data of the session |
| ~metaJson~ | any JSON | what the session was started with; ~{}~ if that was nothing |
| ~visits~ | whole number | how often the session has been in this state, now included |
| ~steps~ | whole number | how many transitions were executed so far |
| ~last~ | text | the transition that was executed last; empty before the first |

It yields true or false.

- ~= data.amount <= 1000~
- ~= !has(data.asked) && visits < 3~
- ~= data.lines.all(line, line.checked)~

### Expressions of assignments

| variable | type | what it is |
|---|---|---|
| ~data~ | any JSON | the data of the session, before anything is written |
| ~metaJson~ | any JSON | what the session was started with; ~{}~ if that was nothing |
| ~payload~ | any JSON | the ~metaJson~ of what is executed; ~{}~ if it has none |
| ~by~ | text | whose proposal or ruling it is |
| ~human~ | true or false | whether that is a human |
| ~state~ | text | the state that is left |
| ~to~ | text | the state that is entered |
| ~visits~ | whole number | how often the session has been in the state that is left |
| ~steps~ | whole number | how many transitions were executed before this one |
| ~now~ | text | when the transition is executed, in RFC 3339 |

It yields any JSON: no bytes, no infinite number, no whole number beyond 2^53.

- ~= by + " on " + now~
- ~= data.total + payload.amount~
- ~= {"amount": payload.amount, "approved": human}~

### Expressions of subjects

| variable | type | what it is |
|---|---|---|
| ~data~ | any JSON | the data of the session |
| ~metaJson~ | any JSON | what the session was started with; ~{}~ if that was nothing |

It yields a text.

- ~= "Invoice " + data.number~
- ~= string(data.amount) + " EUR for " + data.buyer.name~
- ~= has(data.title) ? data.title : "no title"~

### Expressions of due

They see what conditions see, and

| variable | type | what it is |
|---|---|---|
| ~now~ | text | when the session entered the state, as in RFC 3339 |

They yield a text: a time as in RFC 3339, whose offset says in which zone it is, or a duration
from then on.

- ~= data.deadline~
- ~= data.urgent == true ? "30m" : "24h"~
- ~= string(timestamp(now) + duration("36h"))~

## Fields of your own

dialai ignores fields whose names begin with ~x-~, in every object of this page but
[batch loop guard](#batch-loop-guard) and [ladder](#ladder). States and transitions are no
fields: a state may be called ~x-ray~. Any other field that is not on this page is an error,
with a hint if it resembles a known one.

## YAML

~~~yaml
machineName: expenses-in-yaml
initialState: submitted
goalState: paid
states:
  submitted:
    prompt: &question May this be paid?
    transitions: { approve: paid, ask: manager }
  manager:
    prompt: *question
    transitions: { approve: paid, ask: submitted }
    specialists:
      - { role: proposer, specialistId: boss }
  paid: {}
specialists:
  - role: proposer
    specialistId: limit
    strategyFn: '= metaJson.amount < 100 ? "approve" : "ask"'
  - { role: proposer, specialistId: boss, isHuman: true }
  - { role: arbiter, specialistId: margin, strategyFnName: alignmentMargin }
~~~

- Quote expressions, best with ~'~: they hold colons and double quotes.
- Keys are text as written: ~no~, ~on~ and ~010~ are fine as names of states. Where
  they are values, as in ~goalState~, quote them.
- Aliases work, for whole values. Merge keys (~<<~), tags of your own and a second
  document are refused.

## A state that only people decide

~~~yaml
machineName: release
initialState: ready
goalState: live
states:
  ready:
    prompt: Release it?
    transitions:
      release: { target: live, irreversible: true }
      withdraw: withdrawn
    specialists:
      - { role: proposer, specialistId: owner, isHuman: true }
  withdrawn: { final: true }
  live: {}
specialists:
  - { role: arbiter, specialistId: margin }
~~~

The engine has nobody to ask, so the session waits at once, and ~dialai inbox~ lists it.
`
