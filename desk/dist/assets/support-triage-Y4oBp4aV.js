var e=`# Routes a support ticket to the team that should answer it.
#
#   dialai support-triage.yaml --meta topic=invoice --meta urgent=false --meta plan=team
#
# Three rules read the session's metaJson and each proposes a team. A ticket goes
# where a majority of one sends it; if they disagree, a human decides, and
# dialai inbox shows the question.
machineName: support-triage
initialState: new
goalState: answered
states:
  new:
    prompt: Which team should answer this ticket?
    transitions:
      to_billing: { target: billing, description: "Invoices, refunds and plans" }
      to_technical: { target: technical, description: Something does not work }
      to_success: { target: success, description: Questions and wishes }
  billing:
    irreversible: false
    prompt: Can billing answer, or is this for engineers?
    transitions:
      answer: answered
      reroute: technical
    specialists:
      - role: proposer
        specialistId: billing-rule
        strategyFn: '= visits > 1 || metaJson.topic != "bug" ? "answer" : "reroute"'
  technical:
    irreversible: false
    prompt: Can support answer, or is it an incident?
    transitions:
      answer: answered
      page: { target: escalated, description: Wake somebody up, irreversible: false }
    specialists:
      - role: proposer
        specialistId: urgency-rule
        strategyFn: '= has(metaJson.urgent) && metaJson.urgent == true ? "page" : "answer"'
  success:
    irreversible: false
    transitions: { answer: answered }
    specialists:
      - { role: proposer, specialistId: success-team, strategyFnName: firstAvailable }
  escalated: { final: true }
  answered: {}
specialists:
  - role: proposer
    specialistId: topic-rule
    strategyFn: '= metaJson.topic in ["invoice", "refund", "plan"] ? "to_billing" : metaJson.topic == "bug" ? "to_technical" : "to_success"'
  - role: proposer
    specialistId: urgent-rule
    strategyFn: '= has(metaJson.urgent) && metaJson.urgent == true ? "to_technical" : metaJson.topic == "invoice" ? "to_billing" : "to_success"'
  - role: proposer
    specialistId: plan-rule
    strategyFn: '= has(metaJson.plan) && metaJson.plan == "free" ? "to_success" : metaJson.topic == "bug" ? "to_technical" : "to_billing"'
  - role: proposer
    specialistId: support-lead
    isHuman: true
  - role: arbiter
    specialistId: majority
    strategyFn: '= proposals > 0 && aheadBy >= 1 ? leader : none'
`;export{e as default};