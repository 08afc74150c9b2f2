var e=`# An on-call loop: diagnose, mitigate, verify, again until it holds.
#
#   dialai incident-response.yaml --meta attemptsNeeded=2
#
# A change that was applied has ten minutes to take effect: the state "settling" is a wait,
# which nobody but its timer ends, so the run ends there with exit code 5. dialai tick, once a
# minute, carries it on when the time has come, and so does
#
#   dialai resume SESSION --wait
#
# Who is on call and does not answer within a quarter of an hour is not waited for: the lead is
# asked.
#
# The guards bound it: so many steps, so much money, and not the same state too
# often. What they stop stays where it is, and a human may decide how it goes on.
machineName: incident-response
initialState: alert
goalState: resolved
guards:
  limits: { max_steps: 40 }
  cost: { max_dollars_per_task: 5 }
  loop_detection: { max_state_visits: 6, cycle: { repeats: 7 } }
states:
  alert:
    irreversible: false
    prompt: Is this real?
    transitions:
      acknowledge: diagnosing
      dismiss: dismissed
  diagnosing:
    prompt: What is the cause?
    transitions:
      bad_deploy: mitigating
      overload: mitigating
      unknown: escalated
  mitigating:
    prompt: Apply the smallest change that may help.
    transitions:
      applied: settling
  # Nobody is listed here, so nothing happens before the timer.
  settling:
    due: { in: 10m, then: check }
    transitions: { check: verifying }
    specialists: []
  verifying:
    prompt: Does it hold?
    transitions:
      holds: reviewing
      still_failing: diagnosing
    specialists:
      - role: proposer
        specialistId: probe
        strategyFn: '= double(visits) >= metaJson.attemptsNeeded ? "holds" : "still_failing"'
  # Nobody is listed here but a human, so the session waits in the inbox.
  escalated:
    prompt: Nobody knows the cause. What now?
    transitions:
      retry: diagnosing
      accept: dismissed
      page: paged
    due: { in: 15m, remind: [5m], then: page }
    specialists:
      - { role: proposer, specialistId: on-call, isHuman: true }
  paged:
    prompt: Nobody knows the cause, and who is on call has not answered. What now?
    transitions:
      retry: diagnosing
      accept: dismissed
    due: 1h
    specialists:
      - { role: proposer, specialistId: lead, isHuman: true }
  reviewing:
    irreversible: false
    transitions: { close: resolved }
  dismissed: { final: true }
  resolved: {}
specialists:
  - role: proposer
    specialistId: runbook
    strategyFnName: firstAvailable
  - role: arbiter
    specialistId: arbiter
    strategyFnName: alignmentMargin
`;export{e as default};