package serving

import (
	"iter"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/client"
)

// What dialai webhooks can be told to do.

func (w *webhooks) createCommand() *cobra.Command {
	var in api.NewWebhook
	cmd := &cobra.Command{
		Use:   "create <url>",
		Short: "Make a webhook, and show its secret once",
		Long: `Have an address told what happens from now on. The secret by which it verifies what
it is sent is printed once. With --quiet nothing else is printed, for scripts. An
address that is private, or not reached by https, has to be allowed by
DIALAI_WEBHOOK_ALLOW, here and where the server runs.`,
		Example: `  dialai webhooks create https://example.com/hook --type session.needs_human
  dialai webhooks create https://example.com/all --type '*' --machine 'claims-*'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.URL = args[0]
			if len(in.Types) == 0 {
				return command.Hinted(command.Usage("dialai webhooks create needs a --type"), "of what it is told: --type session.needs_human, say, or --type '*' for all")
			}
			return w.at(cmd, command.Starts, func(h Hooks) error {
				made, err := h.CreateWebhook(cmd.Context(), in, client.Write{})
				if err != nil {
					return err
				}
				return w.MadeWebhook(w.Out, made)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&in.Types, "type", nil, "of what it is told, such as `session.needs_human`; * is all (may be repeated)")
	flags.StringSliceVar(&in.Machines, "machine", nil, "`names` of machines; * stands for any characters (may be repeated; default: all)")
	flags.StringSliceVar(&in.Include, "include", nil, "what is in it beside references: `metaJson` or proposals (may be repeated)")
	_ = flags.SetAnnotation("type", command.Needed, []string{})
	command.Complete(cmd, "include", "metaJson", "proposals")
	return cmd
}

func (w *webhooks) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the webhooks",
		Long:    "List the webhooks in the order in which they were made: where to, of what they are\ntold, and how it goes with them.",
		Example: "  dialai webhooks list\n  dialai webhooks list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []api.Webhook
			err := w.at(cmd, command.Reads, func(h Hooks) (err error) {
				list, err = all(h.Webhooks(cmd.Context()))
				return err
			})
			if err != nil {
				return err
			}
			return w.Webhooks(w.Out, list)
		},
	}
}

// all returns what is yielded.
func all[T any](from iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range from {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// one returns a command that does something with a webhook, and prints how it goes with it.
func (w *webhooks) one(cmd *cobra.Command, does command.Access, do func(cmd *cobra.Command, h Hooks, id string) (api.Webhook, error)) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return w.at(cmd, does, func(h Hooks) error {
			shown, err := do(cmd, h, args[0])
			if err != nil {
				return err
			}
			return w.Webhook(w.Out, shown)
		})
	}
	return cmd
}

func (w *webhooks) showCommand() *cobra.Command {
	return w.one(&cobra.Command{
		Use:     "show <webhook-id>",
		Short:   "Show a webhook and how its deliveries go",
		Long:    "Show a webhook: of what it is told, how much it is still to be told, and what went wrong.",
		Example: "  dialai webhooks show wh_5d0c61f2a7b94e08c3d1",
	}, command.Writes, func(cmd *cobra.Command, h Hooks, id string) (api.Webhook, error) { return h.Webhook(cmd.Context(), id) })
}

func (w *webhooks) switchCommand(name string, on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name + " <webhook-id>",
		Short:   "Switch a webhook off",
		Long:    "Switch a webhook off: nothing is sent to it. What happens meanwhile is not lost.",
		Example: "  dialai webhooks " + name + " wh_5d0c61f2a7b94e08c3d1",
	}
	if on {
		cmd.Short = "Switch a webhook on again"
		cmd.Long = "Switch a webhook on again, whoever has switched it off. It is told what has happened\nsince."
	}
	return w.one(cmd, command.Writes, func(cmd *cobra.Command, h Hooks, id string) (api.Webhook, error) {
		return h.ChangeWebhook(cmd.Context(), id, api.WebhookChange{Enabled: &on})
	})
}

func (w *webhooks) deleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete <webhook-id>",
		Short:   "Delete a webhook",
		Long:    "Forget a webhook, and what it was still to be told.",
		Example: "  dialai webhooks delete wh_5d0c61f2a7b94e08c3d1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.at(cmd, command.Writes, func(h Hooks) error {
				if err := h.DeleteWebhook(cmd.Context(), args[0]); err != nil {
					return err
				}
				return w.Unhooked(w.Out, args[0])
			})
		},
	}
}

func (w *webhooks) rotateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rotate <webhook-id>",
		Short:   "Give a webhook another secret, and show it once",
		Long:    "Give a webhook another secret, which is printed once. For a day the one before signs\nwhat is sent, too, so that there is time to take up the new one.",
		Example: "  dialai webhooks rotate wh_5d0c61f2a7b94e08c3d1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.at(cmd, command.Writes, func(h Hooks) error {
				made, err := h.RotateWebhook(cmd.Context(), args[0], client.Write{})
				if err != nil {
					return err
				}
				return w.MadeWebhook(w.Out, made)
			})
		},
	}
}

func (w *webhooks) testCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "test <webhook-id>",
		Short:   "Send a test message",
		Long:    "Send a webhook a message of the type webhook.test. A server that runs sends it within\na second; dialai webhooks show says whether it has arrived.",
		Example: "  dialai webhooks test wh_5d0c61f2a7b94e08c3d1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.at(cmd, command.Writes, func(h Hooks) error {
				d, err := h.TestWebhook(cmd.Context(), args[0], client.Write{})
				if err != nil {
					return err
				}
				return w.Deliveries(w.Out, []api.Delivery{d})
			})
		},
	}
}

func (w *webhooks) replayCommand() *cobra.Command {
	var after int64
	cmd := w.one(&cobra.Command{
		Use:     "replay <webhook-id>",
		Short:   "Send past messages again",
		Long:    "Tell a webhook again what happened after a place in the log, under the same ids as\nbefore.",
		Example: "  dialai webhooks replay wh_5d0c61f2a7b94e08c3d1 --after 1200",
	}, command.Writes, func(cmd *cobra.Command, h Hooks, id string) (api.Webhook, error) {
		if after < 0 {
			return api.Webhook{}, command.Usage("--after is %d: a place is not negative", after)
		}
		return h.ReplayWebhook(cmd.Context(), id, after, client.Write{})
	})
	cmd.Flags().Int64Var(&after, "after", 0, "the `place` in the log (data.place of messages) behind which it begins; 0 is the beginning")
	return cmd
}

func (w *webhooks) deliveriesCommand() *cobra.Command {
	var status string
	cmd := &cobra.Command{
		Use:     "deliveries <webhook-id>",
		Short:   "List pending and dead deliveries",
		Long:    "List what a webhook is still to be told (pending), and what it could not be told for\nmore than a day (dead), which is kept for 30 days. What has arrived is not in the list.",
		Example: "  dialai webhooks deliveries wh_5d0c61f2a7b94e08c3d1 --status dead",
		RunE: func(cmd *cobra.Command, args []string) error {
			if status != "" && status != "pending" && status != "dead" {
				return command.Usage("--status is %q; it may be pending or dead", status)
			}
			var list []api.Delivery
			err := w.at(cmd, command.Writes, func(h Hooks) (err error) {
				list, err = all(h.Deliveries(cmd.Context(), args[0], status))
				return err
			})
			if err != nil {
				return err
			}
			return w.Deliveries(w.Out, list)
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "only those that are `pending` or dead (default: both)")
	command.Complete(cmd, "status", "pending", "dead")
	return cmd
}

func (w *webhooks) redeliverCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "redeliver <webhook-id> <delivery-id>",
		Short:   "Send a delivery again, at once",
		Long:    "Make a delivery at once, whether it is dead or still to be made, and again as often\nas a new one.",
		Example: "  dialai webhooks redeliver wh_5d0c61f2a7b9 msg_0f3a1c52-8f1e-8d60-b1a9-3c5e7d2f4a68",
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.at(cmd, command.Writes, func(h Hooks) error {
				d, err := h.Redeliver(cmd.Context(), args[0], args[1], client.Write{})
				if err != nil {
					return err
				}
				return w.Deliveries(w.Out, []api.Delivery{d})
			})
		},
	}
}
