// Package undertaking carries a long piece of work through many sessions of coding agents,
// one after the other, until a check passes and a human agrees.
//
// An undertaking is a session of the engine. Each turn of each agent ends with a move, and a
// move is a specialist proposing a transition; "done" is only a proposal, and a human's word
// a ruling. So what guards, records, learns and asks humans is the engine; this package adds
// what it is that is asked: it opens sessions of agents, prompts them, watches how full their
// contexts get, hands over from one to the next, and keeps what they did in the agent_log.
//
//	logs ──fold──▶ State ──Loop──▶ agents, checks, Runner
//	  ▲                                     │
//	  └──────────── appended first ◀────────┘
//
// [Loop] is one goroutine that owns all of it. Everything else hands it events: agents,
// checks, permissions, the clock, and the store, which it looks at each second, because
// rulings may come from anywhere.
package undertaking
