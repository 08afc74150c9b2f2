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

Names are shown to people who decide by them, so no name holds a character that cannot
be seen or that changes how others are shown: control characters (C0, DEL, C1), format
characters (Unicode category Cf: zero-width characters, bidirectional controls, soft
hyphens, tags), line and paragraph separators, noncharacters, halves of surrogate pairs,
bytes that are not UTF-8, what fonts leave out or draw as a blank (fillers, variation
selectors, the blank of Braille, the null notehead of music), and spaces but U+0020. Names
are all keys of a file and all texts that are not prose: targets, ids, models, addresses, variables. Prose is ~prompt~, ~description~,
~strategyFn~, ~forbidden_patterns~, what stands below a JSON Schema, and extensions
(~x-~); it may have tabs, line feeds, carriage returns, all spaces and blanks, variation
selectors and the joiners U+200C and U+200D as well. Anything else is an error (~hidden-character~), also in files with guards and
prices. A definition that a store holds already stays as it is.

## How much is read

Every file is read by one reader. What you name yourself, on the command line or in a
variable, may be a file, a pipe or a device (~/dev/stdin~, ~<(…)~, ~-~); what the program
finds in a folder that you name, or a machine file names, is a regular file. A file that a
machine file names (~guards~) is below its folder, links resolved, unless
~--allow-outside~ says otherwise. Logs and traces are of any length, and read a line at a
time.

| file | at most |
|---|---|
| machine file, guards file, prices file, certificate or key | 1 MiB |
| list of workers | 16 MiB |
| cassette, order of cassettes, file of vectors, list of prices of others | 64 MiB |
| data file | 1 GiB |

## What order means

The order in which you write states, transitions and specialists is kept, and it
means something. Names that look like numbers are not sorted either.

- **Transitions**: ~firstAvailable~ proposes the first one, ~lastAvailable~ the last
  one; every list that is shown has this order.
- **Specialists**: proposers are asked, and heard by the arbiter, in the order of
  the list, humans before the others. It decides between equals. (Only
  ~firstProposal~ looks at who answered first; so does every arbiter in the mode
  ~eager~.) The first arbiter that is not disabled decides.
- **States**: only the order of lists and drawings.

A file in another order is another definition. Sessions keep the definition they
were started with; a changed file affects new ones only.

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

A panel is asked so that its members check each other. If two of three services fail,
the third must not decide as if it had been the panel: a round is decided without a
human only if its **quorum** is reached. Without ~quorum~ that is a majority of the
proposers that were asked; one answer is enough under ~firstProposal~, in the mode
~eager~ and for a champion that is asked alone.

~~~yml
quorum: 2                # or any, majority, all; a state's own beats the machine's
specialists:
  - { role: proposer, specialistId: fraud-rule, strategyFn: '= metaJson.score > 0.9 ? "refuse" : "pay"', required: true }
~~~

Who failed, timed out, answered what is not legal, or could not be paid for has not
answered. Humans are not counted, and neither is who is asked only to learn from. A
number is not lowered to the size of the panel, and ~dialai lint~ says where it is above.
Who proposes before anybody is asked is one of the panel: the others count too. A proposer that is ~required~ must have
answered whatever the quorum, be it switched off: it is asked in the first wave, beside
a champion, and is never left out because it tells little. A champion decides alone only
where a declared quorum allows it; else the others are asked too. Asking stops early
only once the quorum is reached.

Below it the session waits for a human (~no_quorum~), and says who did not answer; where
proposals are withheld it says only how many. ~dialai resume~ asks again who failed. What
a human proposes needs no quorum: that is no automatic decision.

### What decides first

Of several reasons not to execute what an arbiter elected, the first that holds is the
code of the session:

| | holds if | code |
|---|---|---|
| 1 | nobody proposed anything | ~no_proposals~ |
| 2 | what a human proposed has won | none: it is executed, 3 to 6 do not count |
| 3 | asking was given up because nothing can reach the bar, or asking on costs more than a human | that of the arbiter (~cannot_reach~, ~below_tau~) |
| 4 | the quorum is not reached, or who is required has not answered | ~no_quorum~ |
| 5 | the arbiter finds no consensus; a human sent the state back; the transition is irreversible, in this order | that of the arbiter; ~calibrating~; ~irreversible~ |
| 6 | the parameters of the transition ask for a payload, and nobody who proposed it gave one | ~no_payload~ |
| 7 | the guards, then an audit before execution | theirs; ~audit~ |

## Expressions

A ~strategyFn~ that begins with ~=~ is a rule in [CEL](https://cel.dev), at most 1,024
characters long. It is checked when the file is loaded, and limited in cost when
it runs. The text of an expression is the reasoning of what it proposes.

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

Numbers of ~metaJson~ are floating-point: comparing them with whole numbers is fine,
arithmetic needs a point (~metaJson.amount * 2.0~). A member that is not there is an
error: the ask fails, and counts as not answered. ~has(metaJson.amount)~ tests
for it.

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

A field whose name begins with ~x-~ is yours and is ignored, in every object of
this page but [batch loop guard](#batch-loop-guard) and [ladder](#ladder). Names of
states and transitions are names: a state ~x-ray~ is a state. Any other field that
is not on this page is an error, with a hint if it looks like a slip.

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

Nobody is asked, so the session waits at once, and ~dialai inbox~ lists it.
`
