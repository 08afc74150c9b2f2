var e=`# Refunds: three rules propose, and a clerk decides until the record shows how far
# the rules can be left alone. The promise: at most one in ten of the decisions that
# nobody was asked about is one the clerk would have made otherwise, with confidence
# 0.9. A share of those decisions is looked at later (dialai trust audit).
#
# A state with a collapse goes further: once one rule alone has proven that it agrees
# with the clerk, only that one is asked, until an audit, a contradiction or a human
# ends it. Rulings in it are blind: proposals are shown after the decision.
#
# What is known of a claim is its input. A decision writes what is refunded, and by
# whom, into the data of the session, and above 100 the clerk may refund a part:
#
#   dialai refund-desk.yaml --meta order=A-17 --meta amount=20 --meta reason=late
#   dialai refund-desk.yaml --meta order=A-18 --meta amount=240 --meta reason=wrong_colour
#   dialai decide SESSION partly --data amount=120
#
#   dialai trust list refund-desk       what everybody's word counts for
#   dialai collapse plan refund-desk    what is missing for the next stage
#   dialai risk refund-desk             the promise, and what came of it
machineName: refund-desk
initialState: claimed
goalState: closed
risk: { maxError: 0.1, confidence: 0.9 }
input:
  type: object
  required: [amount, reason]
  properties:
    order: { type: string, default: unknown }
    amount: { type: number, exclusiveMinimum: 0 }
    reason: { type: string }
    orders: { type: integer, minimum: 0, default: 0 } # of this customer, before
subject: '= "Refund of " + string(data.amount) + " for order " + data.order'
states:
  claimed:
    prompt: Is the amount to be refunded for this reason?
    collapse: { target: 0.85 }
    transitions:
      refund:
        target: closed
        irreversible: false
        set: { refunded: '= data.amount', decidedBy: '= by' }
      refuse:
        target: closed
        irreversible: false
        set: { refunded: 0, decidedBy: '= by' }
      partly:
        target: closed
        description: Refund a part, half of it if no amount is given, and never more than all of it
        irreversible: false
        when: '= data.amount > 100'
        set: { refunded: '= !has(payload.amount) ? data.amount / 2.0 : payload.amount < data.amount ? payload.amount : data.amount', decidedBy: '= by' }
        parameters:
          type: object
          properties:
            amount: { type: number, exclusiveMinimum: 0 }
  closed: {}
specialists:
  - role: proposer
    specialistId: small-amounts
    strategyFn: '= data.amount <= 30 ? "refund" : "refuse"'
  - role: proposer
    specialistId: good-reasons
    strategyFn: '= data.reason in ["damaged", "late", "wrong_item"] ? "refund" : "refuse"'
  - role: proposer
    specialistId: known-customers
    strategyFn: '= data.orders >= 5 ? "refund" : "refuse"'
  - role: proposer
    specialistId: clerk
    isHuman: true
  - role: arbiter
    specialistId: record
    strategyFnName: bayes
`;export{e as default};