var e=`# Ten states from a commit to production.
#
#   dialai release-pipeline.yaml --meta tests=passed --meta risk=low
#   dialai release-pipeline.yaml --meta tests=passed --meta risk=high
machineName: release-pipeline
initialState: committed
goalState: released
states:
  committed:
    transitions: { build: built }
  built:
    irreversible: false
    prompt: Do the tests pass?
    transitions:
      pass: tested
      fail: failed
    specialists:
      - { role: proposer, specialistId: test-report, strategyFn: '= metaJson.tests == "passed" ? "pass" : "fail"' }
  tested:
    transitions: { scan: scanned }
  scanned:
    prompt: How risky is this release?
    transitions:
      low: staged
      high: approval
    specialists:
      - { role: proposer, specialistId: risk-rule, strategyFn: '= metaJson.risk == "low" ? "low" : "high"' }
  approval:
    prompt: A risky release needs a person. Go?
    transitions:
      go: staged
      no_go: failed
    specialists:
      - { role: proposer, specialistId: release-manager, isHuman: true }
  staged:
    transitions: { canary: canary }
  canary:
    irreversible: false
    prompt: Does the canary hold?
    transitions:
      promote: { target: rollout, description: Errors and latency are normal }
      roll_back: { target: failed, description: Something is wrong }
  rollout:
    irreversible: false
    transitions: { finish: released }
  failed: { final: true }
  released: {}
specialists:
  - { role: proposer, specialistId: pipeline, strategyFnName: firstAvailable }
  - { role: arbiter, specialistId: arbiter, strategyFnName: alignmentMargin, threshold: 0.5 }
`;export{e as default};