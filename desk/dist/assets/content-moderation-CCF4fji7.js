var e=`{
  "machineName": "content-moderation",
  "initialState": "posted",
  "goalState": "published",
  "states": {
    "posted": {
      "irreversible": false,
      "prompt": "May this post stay up?",
      "transitions": {
        "publish": "published",
        "remove": { "target": "removed", "description": "It breaks the rules" },
        "age_gate": { "target": "published", "description": "Keep it, for adults" }
      }
    },
    "removed": {
      "prompt": "The author may appeal.",
      "transitions": {
        "uphold": { "target": "closed", "description": "The removal stands" },
        "restore": { "target": "published", "description": "The removal was wrong" }
      },
      "specialists": [
        { "role": "proposer", "specialistId": "moderator", "isHuman": true }
      ]
    },
    "closed": { "final": true },
    "published": {}
  },
  "specialists": [
    { "role": "proposer", "specialistId": "toxicity", "strategyFn": "= metaJson.toxicity > 0.8 ? \\"remove\\" : metaJson.toxicity > 0.5 ? \\"age_gate\\" : \\"publish\\"" },
    { "role": "proposer", "specialistId": "spam", "strategyFn": "= metaJson.spam > 0.9 ? \\"remove\\" : \\"publish\\"" },
    { "role": "proposer", "specialistId": "reports", "strategyFn": "= metaJson.reports >= 10.0 ? \\"remove\\" : \\"publish\\"" },
    { "role": "proposer", "specialistId": "moderator", "isHuman": true },
    { "role": "arbiter", "specialistId": "two-of-three", "strategyFn": "= aheadBy >= 1 ? leader : none" }
  ]
}
`;export{e as default};