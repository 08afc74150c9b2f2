package cli

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

func (a *app) graphCommand() *cobra.Command {
	var format, session, output string
	cmd := &cobra.Command{
		Use:   "graph [<machine-file>]",
		Short: "Draw a machine: as text, Mermaid, DOT, SVG or its layout",
		Long: `Draw a machine file: on a terminal with its characters, as a list where it is too narrow,
else as Mermaid. Below the names of transitions stand their conditions, the
approvals they take and what they set; below those of states their deciders.
What has no room there is in full where a pointer rests (SVG and DOT). Who is in a
group is in the legend. With --session the machine of that session is drawn, with
the way it came, where it stands, and the round in progress; a file need not be
named then. The layout is for programs that draw the machine themselves: the places
and words of what the SVG shows without a session, as docs/json.md describes it.`,
		Example: `  dialai graph machine.json
  dialai graph machine.json -o machine.svg
  dialai graph --session 0b9c1d3e --format svg > now.svg
  dialai graph machine.yaml --format dot | dot -Tpng > machine.png`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("format") {
				if format = formatOf(output); output == "" && render.IsTerminal(a.Out) {
					format = "text"
				}
				if !slices.Contains(graph.Formats(), format) {
					err := command.Usage("-o %s: no picture of dialai is called .%s: there are text, mermaid, dot and svg", output, format)
					return graphvizMakes(err, format, "name it .txt, .mmd, .dot or .svg, or say the format with --format")
				}
			}
			return a.graph(cmd.Context(), args, format, session, output)
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "mermaid", "the `format`: text, mermaid, dot, svg or layout; without it that of the name behind -o")
	cmd.Flags().StringVar(&session, "session", "", "draw where the session of this `id` stands")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `file` instead of stdout")
	command.Complete(cmd, "format", graph.Formats()...)
	return cmd
}

// graphvizMakes adds to an error how to get a picture that dialai does not make, or else
// another hint.
func graphvizMakes(err error, format, other string) error {
	if slices.Contains([]string{"png", "jpg", "jpeg", "gif", "pdf", "webp"}, format) {
		return command.Hinted(err, "Graphviz makes it: dialai graph FILE --format dot | dot -T%s", format)
	}
	return command.Hinted(err, "%s", other)
}

// formatOf returns the format of a picture in a file of that name.
func formatOf(output string) string {
	switch ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(output), ".")); ext {
	case "", "mmd", "mermaid", "md":
		return "mermaid"
	case "txt":
		return "text"
	case "gv":
		return "dot"
	default:
		return ext
	}
}

func (a *app) graph(ctx context.Context, args []string, format, session, output string) error {
	if err := command.OneOf("format", format, graph.Formats()...); err != nil {
		return graphvizMakes(err, strings.ToLower(format), "")
	}
	if session == "" && len(args) == 0 {
		return command.Usage("name a machine file, or a session with --session")
	}
	var m *machine.Machine
	var v graph.View
	if session != "" {
		err := a.with(ctx, command.Reads, func(e *engine, _ *bufio.Writer) error {
			s, err := e.session(ctx, session)
			if err != nil {
				return err
			}
			m = s.Machine()
			v, err = viewOf(ctx, e, s)
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(args) > 0 {
		file, err := a.LoadMachine(args[0])
		if err != nil {
			return err
		}
		if m != nil && file.Digest() != m.Digest() {
			return command.Usage("session %s does not run this file but an earlier or another one; leave the file out", session)
		}
		m = file
	}
	picture := graph.Draw(m, v, format)
	if format == "text" && output == "" {
		picture = []byte(graph.Terminal(m, v, render.TableWidth(a.Out)))
	}
	if output != "" {
		return os.WriteFile(output, picture, 0o644) //nolint:gosec // a picture to be looked at
	}
	_, err := a.Out.Write(picture)
	return err
}

// viewOf says what to point out of a session.
func viewOf(ctx context.Context, e *engine, s *session.Session) (graph.View, error) {
	v := graph.View{State: s.State.Name, Status: s.Status.String()}
	for _, t := range s.History() {
		v.Path = append(v.Path, graph.Step{From: t.Transition.From.Name, Transition: t.Transition.Name})
	}
	if len(s.Proposals()) == 0 && len(s.OpenAsks()) == 0 || s.Withheld("") != "" {
		return v, nil
	}
	weights, err := e.Weights(ctx, s)
	if err != nil {
		return v, err
	}
	v.Round = &graph.Round{Number: int(s.Round), Prompt: s.State.Prompt, Verdict: s.Outcome().Reason}
	for _, p := range s.Proposals() {
		v.Round.Proposals = append(v.Round.Proposals, graph.Proposal{Specialist: p.SpecialistID, Human: p.IsHuman, Transition: p.Transition.Name, Weight: weights[p.SpecialistID]})
	}
	for _, ask := range s.OpenAsks() {
		if ask.OfGuards() {
			continue
		}
		v.Round.Proposals = append(v.Round.Proposals, graph.Proposal{Specialist: ask.SpecialistID})
	}
	return v, nil
}
