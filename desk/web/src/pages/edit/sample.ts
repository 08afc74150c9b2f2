/** What the editor begins with. */
export const sample = `machineName: refunds
initialState: asked
goalState: closed
states:
  asked:
    prompt: Is the amount to be refunded?
    transitions:
      refund: closed
      refuse: closed
  closed: {}
specialists:
  - role: proposer
    specialistId: small-amounts
    strategyFn: '= data.amount <= 30 ? "refund" : "refuse"'
  - role: proposer
    specialistId: clerk
    isHuman: true
  - role: arbiter
    specialistId: record
    strategyFnName: bayes
`;

/** What a session of the sample is about. */
export const about = '{"amount": 80}';
