// Verifies a message as a receiver does, and signs one as a sender does.
const { readFileSync } = require("fs");
const { Webhook } = require("standardwebhooks");
const given = JSON.parse(readFileSync(0, "utf8"));
const w = new Webhook(given.secret);
w.verify(given.body, given.headers);
const at = new Date();
console.log(JSON.stringify({ timestamp: String(Math.floor(at.getTime() / 1000)), signature: w.sign("msg_1", at, given.body) }));
