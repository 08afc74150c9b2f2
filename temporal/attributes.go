package temporal

import (
	"cmp"
	"context"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// By what workflows are found in Temporal. A server refuses a workflow with an attribute that its namespace does not
// know, and a task of a workflow that sets one, so whoever starts a workflow asks which the namespace knows, and says it
// in the input: the workflow sets those and no others, for as long as it lives. What changes is set when it has
// changed, at one event of the history each time.

// The search attributes of workflows, all of the type Keyword.
const (
	AttributeMachine = "DialaiMachine" // the name of the machine
	AttributeStatus  = "DialaiStatus"  // the status of Status
	AttributeCode    = "DialaiCode"    // its code; not set if it has none
)

// attributes returns the search attributes of sessions that the namespace knows; none where that cannot be told, since
// who starts workflows need not be allowed to ask.
func (c *Client) attributes(ctx context.Context) (known []string) {
	has, err := c.Temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: cmp.Or(c.Namespace, client.DefaultNamespace)})
	if err != nil {
		return nil
	}
	for _, name := range []string{AttributeMachine, AttributeStatus, AttributeCode} {
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

// show sets the attributes of where the session stands, if that has changed.
func (s *sessionRun) show(ctx workflow.Context) error {
	is := Result{s.at.Status, s.at.Code}
	if s.in.Shown == is || !slices.Contains(s.in.Attributes, AttributeStatus) && !slices.Contains(s.in.Attributes, AttributeCode) {
		return nil
	}
	s.in.Shown = is
	return workflow.UpsertTypedSearchAttributes(ctx, set(s.in.Attributes, map[string]string{AttributeStatus: is.Status, AttributeCode: is.Code})...)
}
