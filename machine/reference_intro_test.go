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
| machine file, guards file, prices file, certificate or key | 1 MiB |
| list of workers | 16 MiB |
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
| 2 | what a human proposed has won | none: it is executed, 3 to 6 do not count |
| 3 | the engine stopped asking because no answer could reach the threshold, or because more answers cost more than a human | that of the arbiter (~cannot_reach~, ~below_tau~) |
| 4 | the quorum is not reached, or a required proposer has not answered | ~no_quorum~ |
| 5 | the arbiter finds no consensus; a human sent the state back; the transition is irreversible, in this order | that of the arbiter; ~calibrating~; ~irreversible~ |
| 6 | the parameters of the transition ask for a payload, and nobody who proposed it gave one | ~no_payload~ |
| 7 | the guards, then an audit before execution | theirs; ~audit~ |

## Expressions

A ~strategyFn~ that begins with ~=~ is a rule in [CEL](https://cel.dev), at most 1,024
characters long. The loader checks it, and its cost is limited when it runs. The text of the
expression is the reasoning of its proposal.

### Expressions of proposers

| variable | type | what it is |
|---|---|---|
| ~state~ | text | the name of the state |
| ~metaJson~ | any JSON | what the session was started with; ~{}~ if that was nothing |
| ~visits~ | whole number | how often the session has been in this state, now included |
| ~steps~ | whole number | how many transitions were executed so far |
| ~last~ | text | the transition that was executed last; empty before the first |

It yields the name of a transition. Names that are written in the expression itself
must be transitions of a state in which the specialist takes part.

- ~= metaJson.amount < 100 ? "approve" : "ask"~
- ~= has(metaJson.receipt) && metaJson.receipt ? "approve" : "reject"~
- ~= visits > 2 ? "ask" : "approve"~

Numbers of ~metaJson~ are floating-point: you may compare them with whole numbers, but
arithmetic needs a point (~metaJson.amount * 2.0~). An expression that reads a missing member
fails, and counts as not answered; test for the member with ~has(metaJson.amount)~.

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
