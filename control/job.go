package control

import "github.com/dialai/dialai/specialist"

// A job is work that takes longer than a request may: a process begins it, and whoever asked for
// it looks later what came of it. The process keeps the job while it lives; a job that has not
// ended is lost with it.
//
//	queued ---> running ---> done
//	   |           |-------> failed
//	   |           +-------> cancelled
//	   +--> failed, cancelled
//
// Each step says from which status it goes, so that of two that contradict each other one is
// refused: whoever cancels a job changes its status, and the process that works at it, be it
// another one, is refused when it next says how far it is.

// JobStatus is how far a job is.
type JobStatus string

// The statuses of a job.
const (
	JobQueued    JobStatus = "queued"
	JobRunning   JobStatus = "running"
	JobDone      JobStatus = "done"
	JobFailed    JobStatus = "failed"
	JobCancelled JobStatus = "cancelled"
)

// Ended reports whether nothing more becomes of a job.
func (s JobStatus) Ended() bool { return s != JobQueued && s != JobRunning }

// JobLost is the code of a job that has failed because its process is gone.
const JobLost = "lost"

// jobLost says so to people.
const jobLost = "the process that worked at it is gone"

// JobLifetime is how long a job is kept after it has ended, in milliseconds.
const JobLifetime specialist.Time = 7 * 24 * 60 * 60 * 1000

// A Job is what is kept of one.
type Job struct {
	ID        string
	Tenant    string
	Kind      string // what is done
	Machine   string // what it is about; "" for no machine, or all
	Request   []byte // what was asked for, as JSON; nil in lists
	CreatedBy string // the subject
	CreatedAt specialist.Time

	// What follows Commit ignores where a job is added.
	Process    string // that works at it
	Status     JobStatus
	StartedAt  specialist.Time // 0 means not yet
	EndedAt    specialist.Time // 0 means not yet, or that it is not known
	Done, Of   int64           // so much of so much is done; of what, the kind says. 0 of 0 is not known
	Outcome    Outcome         // once it has ended
	ResultSize int64           // of the result, in bytes
	Place      int64           // among all jobs
}

// An Outcome is what came of a job, beside its result. Of one that was lost, Code is JobLost.
type Outcome struct {
	ExitCode int    // with which the command would have ended
	Code     string // why it is not 0; "" if it is
	Detail   string // for people
	Hint     string
}

// A JobStep says how it goes on with a job. It is ErrStale unless the job has the status From;
// ErrNotFound if there is no job.
type JobStep struct {
	ID       string
	From, To JobStatus
	At       specialist.Time
	Done, Of int64 // as in Job; kept where To has ended

	// Of a step to JobDone, JobFailed or JobCancelled:
	Outcome Outcome
	Result  []byte // the lines of the command; nil is none
	Finding []byte // what the server makes more of later; nil is none
}

// Shown returns a job as each Store tells it: one that has not ended, and whose process is gone,
// is lost.
func (j Job) Shown(gone bool) Job {
	if gone && !j.Status.Ended() {
		j.Status, j.Outcome = JobFailed, Outcome{ExitCode: 1, Code: JobLost, Detail: jobLost}
	}
	return j
}
