package session

import (
	"context"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
)

// What tenants use of their quotas, for all processes. A call reserves what it may cost before it is
// recorded, with those that are asked together; when it has ended it is charged, and what it held is
// given back. So no processes together spend what none of them could spend alone.

// ErrQuotaUnknown: what the tenant used before has to be read first. It is an [ErrBusy]: the
// step that meets it is tried again, and reads it then.
var ErrQuotaUnknown error = quotaUnknown{}

type quotaUnknown struct{}

func (quotaUnknown) Error() string {
	return "what the tenant has used of its quota is not known yet"
}

func (quotaUnknown) Is(target error) bool { return target == ErrBusy }

// A QuotaStore is a store that counts what tenants use of their quotas, once for all processes that share
// it. Where a store does not, each process counts for itself. Of a scope it looks at the tenant and
// the session. A nil quota limits nothing, and then nothing is counted.
//
// Windows go by the clock of the store, and count what was charged: they give nothing back. What a
// process holds that has ended is charged, once the store takes the process for dead.
// All methods may be called concurrently.
type QuotaStore interface {
	// RecallQuota makes sure that what the tenant did before counts: it calls past to read it, unless
	// the store has counted it all along. To recall it again changes nothing.
	RecallQuota(ctx context.Context, tenant string, q *spend.Quota, past func(context.Context) (spend.Past, error)) error
	// OpenQuota makes room for a session that is about to begin, or to go on. The error is a
	// [*spend.BudgetError] if its tenant has none. One that is open stays so.
	OpenQuota(ctx context.Context, s spend.Scope, q *spend.Quota) error
	// CloseQuota gives the room of a session back; one that is not open stays so. It returns
	// an error wrapping [spend.ErrOpenCalls], and changes nothing, while a call holds something.
	CloseQuota(ctx context.Context, s spend.Scope) error
	// ReserveQuota holds what all calls of a wave need or, if a window has no room for one of them
	// beside the others, nothing: then the error is a [*spend.BudgetError]. A session that is not
	// open is opened, if there is room. After another error nothing is held for long, and no call may be
	// made; it is ErrQuotaUnknown if RecallQuota has to be called again. The holds are in the order of the wave.
	ReserveQuota(ctx context.Context, s spend.Scope, q *spend.Quota, wave ...QuotaCall) ([]QuotaHold, error)
	// FindQuota returns the hold of a call of the session that was reserved under a name, and not
	// ended, or charged as expected because nobody said what it had cost; nil if there is none.
	FindQuota(ctx context.Context, s spend.Scope, call string) (QuotaHold, error)
	// EndQuota ends calls of a session. A hold that has been ended counts once. What the store
	// cannot be told now it is told with what comes next; if the process ends before, it is charged as expected.
	EndQuota(ctx context.Context, s spend.Scope, ends ...QuotaEnd)
}

// A QuotaCall is what one call may need of a quota.
type QuotaCall struct {
	Name string // to find it by, of those of its session; "" for never
	Need spend.Book
}

// A QuotaHold is what one call holds of a quota. It may be used concurrently.
type QuotaHold interface {
	// Start says that the call is being made: if nobody ever says what it cost, it is
	// charged as expected.
	Start()
}

// A QuotaEnd says what has become of a call.
type QuotaEnd struct {
	Hold QuotaHold // nil for a call that nobody reserved, which is charged
	// Settled says that Used is what the call cost; else what is held is given back, or
	// charged as expected if it was started.
	Settled bool
	Used    specialist.Usage // counts that are not given are as expected
}
