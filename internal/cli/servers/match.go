package servers

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
)

const matchHelp = `Say which instance of its cluster a server is, where nobody can tell: the server is
unmatched (its record is of a version that remembered no UUIDs, and how its
creation ended is not known any more), or its instance was replaced, by a restore
of the instance say. SERVER is its name, id or instance; INSTANCE a name or a UUID.

Refused are an instance that is another server's or was made for one, and a server
that has its instance or is being changed. From then on what users ask of the
server is done to that instance. Who says it, and why (--reason), is an event.`

// serverMatch has a server be an instance.
func serverMatch(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "match SERVER INSTANCE", Short: "Say which instance a server is, where nobody can tell", Long: matchHelp, Args: shell.Exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := IDOf(cmd.Context(), sh, args[0])
			if err != nil {
				return err
			}
			var text json.RawMessage
			if err := sh.Ask(cmd.Context(), "MatchServer", &text, id, args[1], sh.Flags.DryRun, sh.UserTrail()); err != nil {
				return err
			}
			var m matched
			if err := json.Unmarshal(text, &m); err != nil {
				return err
			}
			return sh.Show(text, func() error { return sh.Printf("%s", m.text(sh.Flags.DryRun)) })
		},
	}
}

// matched is what a match did, or would do.
type matched struct {
	Server  string `json:"server"`
	Name    string `json:"name"`
	Backend string `json:"backend"`
	Before  place  `json:"before"`
	After   place  `json:"after"`
	Marked  bool   `json:"marked"`
}

// place is an instance.
type place struct {
	Instance string `json:"instance"`
	UUID     string `json:"uuid"`
}

func (p place) text() string { return p.Instance + ", UUID " + cmp.Or(p.UUID, "not known") }

// text tells it for a person.
func (m *matched) text(dry bool) string {
	verb := "is"
	if dry {
		verb = "would be"
	}
	text := "Server " + m.Server + " (" + m.Name + ") " + verb + "\n  " + m.After.text() + "\non the cluster " + cmp.Or(m.Backend, "own") + ", and was\n  " + m.Before.text() + "\n"
	if m.Marked {
		text += "The instance was made for this server, as its tag says.\n"
	}
	return text
}

// IDOf finds the server that a name, an id or an instance means.
func IDOf(ctx context.Context, sh *shell.Shell, key string) (string, error) {
	rows, err := Values(ctx, sh, "server", []string{"id", "name"}, []any{"|", []any{"=", "id", key}, []any{"=", "name", key}, []any{"=", "instance", key}})
	if err != nil {
		return "", err
	}
	switch len(rows) {
	case 0:
		return "", fault.New(fault.NotFound, "there is no server %q", key)
	case 1:
		return rows[0][0], nil
	}
	return "", fault.New(fault.Ambiguous, "%d servers are called %q", len(rows), key).WithHint("name it by its id or its instance; drover query server lists them")
}

// Values asks the controller for fields of items, as texts.
func Values(ctx context.Context, sh *shell.Shell, what string, fields []string, filter any) ([][]string, error) {
	var answer struct {
		Data [][][2]json.RawMessage `json:"data"`
	}
	if err := sh.Ask(ctx, "Query", &answer, what, fields, filter); err != nil {
		return nil, err
	}
	rows := make([][]string, len(answer.Data))
	for i, row := range answer.Data {
		rows[i] = make([]string, len(row))
		for k, cell := range row {
			_ = json.Unmarshal(cell[1], &rows[i][k]) // what is no text stays empty
		}
	}
	return rows, nil
}
