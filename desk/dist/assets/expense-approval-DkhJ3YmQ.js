var e=`# Pays small expenses by itself, and asks finance above a limit: one above 250, two above
# 1,000, and never who asks for the money. What finance has not answered within a day goes to
# the director, who needs nobody's approval.
#
#   dialai expense-approval.yaml --as ann --meta amount=80 --meta receipt=true
#   dialai expense-approval.yaml --as ann --meta amount=800 --meta receipt=true
#   dialai expense-approval.yaml --as ann --meta amount=4200 --meta receipt=true
#
# Then, for the last one:
#
#   dialai inbox
#   dialai decide SESSION approve_large --as bob
#   dialai decide SESSION approve_large --as cyd
#
# Somebody has to look at the clock: dialai tick, once a minute, does what has come by then.
machineName: expense-approval
initialState: submitted
goalState: paid
input:
  type: object
  properties:
    amount: { type: number, minimum: 0 }
    receipt: { type: boolean, default: false }
    purpose: { type: string }
subject: '= has(data.amount) ? "Expense of " + string(data.amount) : "Expense"'
groups:
  finance: [ann, bob, cyd]
states:
  submitted:
    irreversible: false
    prompt: Is the claim complete?
    transitions:
      accept: checked
      return: returned
    specialists:
      - role: proposer
        specialistId: completeness-rule
        strategyFn: '= has(data.amount) && data.receipt == true ? "accept" : "return"'
  checked:
    prompt: Within the limit of 250, or does somebody have to look at it?
    transitions:
      approve: { target: approved, when: '= has(data.amount) && data.amount <= 250.0' } # nobody gets past finance here
      ask: finance
    specialists:
      - role: proposer
        specialistId: limit-rule
        strategyFn: '= data.amount <= 250.0 ? "approve" : "ask"'
  # Whoever has not answered in a day is not waited for any longer.
  finance:
    prompt: May this be paid?
    deciders: [group:finance]
    due: { in: 24h, remind: [4h], then: escalate }
    transitions:
      approve:
        target: approved
        when: '= has(data.amount) && data.amount <= 1000.0'
        approvals: { count: 1, exclude: [starter] }
        set: { approvedBy: '= by' }
      approve_large:
        target: approved
        description: Above 1,000, or if nothing says how much, two of finance have to
        when: '= !has(data.amount) || data.amount > 1000.0'
        approvals: { count: 2, exclude: [starter] }
        set: { approvedBy: '= by' }
      reject: { target: rejected, description: Do not pay it }
      escalate: { target: director, description: Let the director decide }
  director:
    prompt: Finance has not answered within a day. May this be paid?
    deciders: [dora]
    due: 48h
    transitions:
      approve: { target: approved, approvals: { exclude: [starter] }, set: { approvedBy: '= by' } }
      reject: rejected
  approved:
    transitions:
      pay: { target: paid, irreversible: false } # until the next bank run
    specialists:
      - role: proposer
        specialistId: payments
        strategyFnName: firstAvailable
  paid: {}
  returned: { final: true }
  rejected: { final: true }
specialists:
  - { role: proposer, specialistId: ann, isHuman: true }
  - { role: proposer, specialistId: bob, isHuman: true }
  - { role: proposer, specialistId: cyd, isHuman: true }
  - { role: proposer, specialistId: dora, isHuman: true }
  - role: arbiter
    specialistId: arbiter
    strategyFnName: alignmentMargin
    threshold: 0.5
`;export{e as default};