package temporal

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// By what workflows are found in Temporal. A server refuses a workflow with an attribute that its namespace does not
// know, and a task of a workflow that sets one, so whoever starts a workflow asks which the namespace knows, and says it
// in the input: the workflow sets those and no others, for as long as it lives. What holds at the start is set with the
// start, which takes no event of the history. What changes is set when the workflow waits and it has changed, all of it
// in one event.

// The search attributes of workflows, all of the type Keyword.
const (
	AttributeMachine = "DialaiMachine" // the name of the machine
	AttributeStatus  = "DialaiStatus"  // that of the session, in the words of session.Status
	AttributeCode    = "DialaiCode"    // the code of Status; not set if it has none
	AttributeTenant  = "DialaiTenant"  // whose the session is, as runner.Runner.Tenant says; not set where all are of one
)

// Shown is what search attributes are set to.
type Shown struct {
	Status string `json:"status"`
	Code   string `json:"code"`
	Tenant string `json:"tenant,omitempty"`
}

// values returns what the attributes that change are set to.
func (s Shown) values() map[string]string {
	return map[string]string{AttributeStatus: s.Status, AttributeCode: s.Code, AttributeTenant: s.Tenant}
}

// attributes returns the search attributes of sessions that the namespace knows; none where that cannot be told, since
// who starts workflows need not be allowed to ask.
func (c *Client) attributes(ctx context.Context) (known []string) {
	has, err := c.Temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: cmp.Or(c.Namespace, client.DefaultNamespace)})
	if err != nil {
		return nil
	}
	for _, name := range []string{AttributeMachine, AttributeStatus, AttributeCode, AttributeTenant} {
		if has.GetCustomAttributes()[name] == enums.INDEXED_VALUE_TYPE_KEYWORD {
			known = append(known, name)
		}
	}
	return known
}

// set returns how the known ones of some attributes are set; an empty value unsets one.
func set(known []string, values map[string]string) (updates []temporal.SearchAttributeUpdate) {
	for _, name := range known { // in their order: it is in histories
		value, is := values[name]
		switch key := temporal.NewSearchAttributeKeyKeyword(name); {
		case is && value != "":
			updates = append(updates, key.ValueSet(value))
		case is:
			updates = append(updates, key.ValueUnset())
		}
	}
	return updates
}

// statusOf returns the status of the session, which is running where it only waits for answers.
func statusOf(progress string) string {
	if progress == runner.WaitingStatus {
		return session.Running.String()
	}
	return progress
}

// show sets the attributes of where the session stands, if those that are known have changed.
func (s *sessionRun) show(ctx workflow.Context) error {
	if s.version != v2 {
		return s.showAll(ctx)
	}
	is := Shown{statusOf(s.at.Status), s.at.Code, cmp.Or(s.at.Tenant, s.in.Shown.Tenant)}
	values, were := is.values(), s.in.Shown.values()
	maps.DeleteFunc(values, func(name, value string) bool { return value == were[name] })
	s.in.Shown = is
	if updates := set(s.in.Attributes, values); len(updates) > 0 {
		return workflow.UpsertTypedSearchAttributes(ctx, updates...)
	}
	return nil
}

// showAll is show of v1: it sets all if one has changed.
func (s *sessionRun) showAll(ctx workflow.Context) error {
	is := Shown{Status: s.at.Status, Code: s.at.Code}
	if s.in.Shown == is || !slices.Contains(s.in.Attributes, AttributeStatus) && !slices.Contains(s.in.Attributes, AttributeCode) {
		return nil
	}
	s.in.Shown = is
	return workflow.UpsertTypedSearchAttributes(ctx, set(s.in.Attributes, map[string]string{AttributeStatus: statusOf(is.Status), AttributeCode: is.Code})...)
}
