var e=`{
  "machineName": "data-labelling",
  "initialState": "unlabelled",
  "goalState": "done",
  "consensusThreshold": 0.6,
  "requireTrust": true,
  "states": {
    "unlabelled": {
      "prompt": "Is the text a complaint, a question or praise?",
      "transitions": { "complaint": "labelled", "question": "labelled", "praise": "labelled" }
    },
    "labelled": {
      "irreversible": false,
      "transitions": { "store": "done" },
      "specialists": [
        { "role": "proposer", "specialistId": "writer", "strategyFnName": "firstAvailable" },
        { "role": "arbiter", "specialistId": "writer-arbiter", "strategyFnName": "firstProposal" }
      ]
    },
    "done": {}
  },
  "specialists": [
    { "role": "proposer", "specialistId": "punctuation", "strategyFn": "= metaJson.text.endsWith(\\"?\\") ? \\"question\\" : metaJson.text.contains(\\"!\\") ? \\"praise\\" : \\"complaint\\"" },
    { "role": "proposer", "specialistId": "keywords", "strategyFn": "= metaJson.text.contains(\\"broken\\") || metaJson.text.contains(\\"late\\") ? \\"complaint\\" : metaJson.text.contains(\\"how\\") ? \\"question\\" : \\"praise\\"" },
    { "role": "proposer", "specialistId": "guess", "strategyFnName": "random" },
    { "role": "proposer", "specialistId": "annotator", "isHuman": true },
    { "role": "arbiter", "specialistId": "weighted", "strategyFnName": "alignmentMargin" }
  ]
}
`;export{e as default};