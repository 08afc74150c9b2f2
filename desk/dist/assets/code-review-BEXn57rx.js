var e=`{
  "machineName": "code-review",
  "initialState": "open",
  "goalState": "merged",
  "states": {
    "open": {
      "irreversible": false,
      "prompt": "Review the change: merge it, ask for changes, or close it?",
      "transitions": {
        "merge": { "target": "merged", "description": "It is ready", "irreversible": false },
        "request_changes": { "target": "changes", "description": "Something has to be mended first" },
        "close": { "target": "closed", "description": "It is not wanted" }
      }
    },
    "changes": {
      "prompt": "Has the author pushed the changes?",
      "transitions": { "pushed": "open", "abandon": "closed" },
      "specialists": [
        { "role": "proposer", "specialistId": "maintainer", "isHuman": true }
      ]
    },
    "closed": { "final": true },
    "merged": {}
  },
  "specialists": [
    { "role": "proposer", "specialistId": "tests", "strategyWebhookUrl": "http://127.0.0.1:8787/tests", "webhookTokenName": "REVIEW_WEBHOOK_TOKEN", "timeout": "30s" },
    { "role": "proposer", "specialistId": "reviewer", "strategyWebhookUrl": "http://127.0.0.1:8787/review", "webhookTokenName": "REVIEW_WEBHOOK_TOKEN", "timeout": "30s", "estimatedCostUSD": 0.02 },
    { "role": "proposer", "specialistId": "maintainer", "isHuman": true },
    { "role": "arbiter", "specialistId": "both-agree", "strategyFn": "= aheadBy >= 2 ? leader : none" }
  ]
}
`;export{e as default};