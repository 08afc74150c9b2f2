package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (a *app) specialistsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "specialists <machine>",
		Short: "List or switch the specialists of a machine",
		Long: `List the specialists registered for a machine name, its champions, and who is
switched off. A specialist that is off is not asked, not heard and does not
decide, in any session of that machine; its alignment is kept.`,
		Example: `  dialai specialists triage
  dialai specialists disable triage ai-router
  dialai specialists enable triage ai-router`,
		Args:              arguments,
		ValidArgsFunction: a.completeMachineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				roster, err := e.store.Roster(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if len(rosterLines(roster)) == 0 {
					if err := e.knows(cmd.Context(), args[0]); err != nil {
						return err
					}
				}
				return a.printRoster(out, roster)
			})
		},
	}
	cmd.AddCommand(
		a.switchCommand("enable", "Switch a specialist on again", true),
		a.switchCommand("disable", "Switch a specialist off", false),
	)
	return cmd
}

func (a *app) switchCommand(name, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " <machine> <specialist>", Short: short,
		Long:              short + ", for every session of a machine of that name.\nWho did it is recorded; dialai log --machine shows it.",
		Example:           "  dialai specialists " + name + " triage ai-router",
		Args:              arguments,
		ValidArgsFunction: a.completeSpecialists,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), writes, func(e *engine, out *bufio.Writer) error {
				err := e.Switch(cmd.Context(), args[0], args[1], runner.Switching{On: on, Actor: session.LocalActor(osUser())})
				switch {
				case err != nil || a.flags.quiet:
					return err
				case a.flags.json:
					return a.printSwitched(cmd.Context(), e, out, args[0], args[1])
				}
				_, err = fmt.Fprintf(out, "%s is %sd in machine %s.\n", clean(args[1]), name, clean(args[0]))
				return err
			})
		},
	}
}

// rosterLine is a specialist as --json shows it.
type rosterLine struct {
	SpecialistID string       `json:"specialistId"`
	Role         machine.Role `json:"role,omitempty"`
	Registered   bool         `json:"registered"`
	Disabled     bool         `json:"disabled"`
	ChampionOf   []string     `json:"championOf,omitempty"` // states; "" is the machine
}

// printSwitched prints the line of a specialist that was switched.
func (a *app) printSwitched(ctx context.Context, e *engine, out io.Writer, machineName, id string) error {
	roster, err := e.store.Roster(ctx, machineName)
	if err != nil {
		return err
	}
	for _, line := range rosterLines(roster) {
		if line.SpecialistID == id {
			return printJSON(out, line)
		}
	}
	return printJSON(out, rosterLine{SpecialistID: id}) // declared in the file, and on
}

func rosterLines(r *session.Roster) []*rosterLine {
	var list []*rosterLine
	index := map[string]*rosterLine{}
	get := func(id string) *rosterLine {
		if index[id] == nil {
			index[id] = &rosterLine{SpecialistID: id}
			list = append(list, index[id])
		}
		return index[id]
	}
	for i := range r.Specialists {
		e := get(r.Specialists[i].SpecialistID)
		e.Role, e.Registered = r.Specialists[i].Role, true
	}
	for _, id := range slices.Sorted(maps.Keys(r.Off)) {
		get(id).Disabled = true
	}
	for _, state := range slices.Sorted(maps.Keys(r.Champions)) {
		e := get(r.Champions[state].ID)
		e.ChampionOf = append(e.ChampionOf, state)
	}
	return list
}

func (a *app) printRoster(out io.Writer, r *session.Roster) error {
	list := rosterLines(r)
	if a.flags.json {
		return printLines(out, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "Nobody is registered, switched off or champion.")
		return err
	}
	rows := [][]string{{"SPECIALIST", "ROLE", "ORIGIN", "SWITCHED", "CHAMPION OF"}}
	for _, e := range list {
		origin, switched := "machine file", "on"
		if e.Registered {
			origin = "registered"
		}
		if e.Disabled {
			switched = "off"
		}
		rows = append(rows, []string{e.SpecialistID, string(e.Role), origin, switched, championOf(e.ChampionOf)})
	}
	return table(out, rows)
}

// championOf names the states in which a specialist is champion.
func championOf(states []string) string {
	for i, s := range states {
		if s == "" {
			states[i] = "(every state)"
		}
	}
	return strings.Join(states, ", ")
}
