// Package params has the parameters that many operations of a server take. They are embedded
// in what an operation takes, for which their names have to be exported.
package params

// A Session names a session.
type Session struct {
	ID string `path:"id" doc:"the id of the session" maxLength:"100"`
}

// A Question names a question: a session and a round.
type Question struct {
	QuestionID string `path:"question" doc:"the id of the question: that of the session, a dot, and that of the round" maxLength:"200"`
}

// A Precondition is what a write says of the session that it means.
type Precondition struct {
	IfMatch string `header:"If-Match" doc:"the ETag of the session as it was seen; the write is refused if it has changed"`
}

// A Wait says how long to wait for what comes of a write.
type Wait struct {
	For string `query:"wait" doc:"wait up to so long, such as 30s, until the session has settled" maxLength:"20"`
}

// A Machine names a machine.
type Machine struct {
	Name string `path:"machine" doc:"the name of the machine" maxLength:"300"`
}

// A Page says which part of a list is wanted.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" doc:"50 without it"`
	Cursor string `query:"cursor" doc:"nextCursor of the page before" maxLength:"500"`
}

// A State names a state of a machine.
type State struct {
	StateName string `path:"state" doc:"the name of the state" maxLength:"300"`
}

// A Webhook names a webhook.
type Webhook struct {
	ID string `path:"webhook" doc:"the id of the webhook" maxLength:"100"`
}

// A Job names a job.
type Job struct {
	ID string `path:"job" doc:"the id of the job" maxLength:"100"`
}

// Follow says from where on a stream over many sessions is wanted, and what of it.
type Follow struct {
	After       string `query:"after" doc:"the id of the last event that was seen; 0 is the beginning, and without it the stream begins now" maxLength:"200"`
	Kinds       string `query:"kinds" doc:"only events of these kinds, with commas between" maxLength:"1000"`
	LastEventID string `header:"Last-Event-ID" doc:"as after" maxLength:"200"`
	Accept      string `header:"Accept" doc:"text/event-stream"`
}

// Texts says what is shown of texts.
type Texts struct {
	Payload string `query:"payload" enum:"redacted,full,none" doc:"what is shown of texts: redacted without it"`
}
