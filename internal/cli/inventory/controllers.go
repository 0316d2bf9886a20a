package inventory

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

// controllerDrain is what became of a controller that was to be drained, or to be no more.
type controllerDrain struct {
	Name    string `json:"name"`
	Drained bool   `json:"drained"`
	Changed bool   `json:"changed"`
	Leads   bool   `json:"leads"`
	To      string `json:"to,omitempty"`
	Why     string `json:"why,omitempty"`
}

// text tells it to a person; would is whether it was only to be told.
func (d controllerDrain) text(would bool) string {
	is, more := "is", "leads on, for no other could lead"
	if would {
		is = "would be"
	}
	switch {
	case !d.Changed && d.Drained:
		return fmt.Sprintf("%s is %s\n", d.Name, d.Why)
	case !d.Changed:
		return fmt.Sprintf("%s is not drained.\n", d.Name)
	case !d.Drained:
		return fmt.Sprintf("%s %s drained no more: it may lead again.\n", d.Name, is)
	case !d.Leads:
		return fmt.Sprintf("%s %s drained: it leads only if no other could.\n", d.Name, is)
	case d.To != "":
		more = "gives the lead to " + d.To
	}
	return fmt.Sprintf("%s %s drained, and %s.\n", d.Name, is, more)
}

func drainController(sh *shell.Shell, on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "undrain-controller NAME", Short: "Let a controller lead again", Args: shell.Exactly(1),
		Long: `undrain-controller ends what drain-controller began. The controller does not take the lead
by that: drover cluster master-failover does, asked of it.`,
	}
	method := "UndrainController"
	if on {
		method = "DrainController"
		cmd.Use, cmd.Short = "drain-controller NAME", "Have a controller leave the lead to others"
		cmd.Long = `drain-controller has a controller give the lead to one that stands by and is up to date,
once what runs has ended (for as long as stop-grace allows), and take it only if no
other could lead. It serves on, and forwards what it is asked. That outlasts its
restarts, until undrain-controller. Say why with --reason: cluster masters, cluster
health and the event tell it.`
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var d controllerDrain
		if err := sh.Ask(cmd.Context(), method, &d, args[0], sh.UserTrail(), sh.Flags.DryRun); err != nil {
			return err
		}
		return sh.Show(d, func() error { return sh.Printf("%s", d.text(sh.Flags.DryRun)) })
	}
	return shell.Heeding(shell.Changing, cmd)
}

// forgotten is a controller that was lost.
type forgotten struct {
	Name    string    `json:"name"`
	Address string    `json:"address"`
	Started time.Time `json:"started"`
	Drained bool      `json:"drained"`
}

func (f forgotten) text(would bool) string {
	is, more := "is", ""
	if would {
		is = "would be"
	}
	if f.Drained {
		more = ", drained as it is"
	}
	return fmt.Sprintf("%s (at %s, started %s) %s forgotten%s.\n", f.Name, f.Address, f.Started.Local().Format("2006-01-02 15:04"), is, more)
}

func forgetController(sh *shell.Shell) *cobra.Command {
	return shell.Heeding(shell.Changing, &cobra.Command{
		Use: "forget-controller NAME", Short: "Remove a controller that is lost from the list", Args: shell.Exactly(1),
		Long: `forget-controller removes a controller whose machine is gone for good, and that it was drained.
One that answers is refused: it leaves the list by itself when it is stopped. A
controller that lives, and that the leader did not reach, comes back by itself.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !sh.Flags.DryRun {
				if err := sh.Sure(shell.PathOf(cmd), args[0]); err != nil {
					return err
				}
			}
			var f forgotten
			if err := sh.Ask(cmd.Context(), "ForgetMaster", &f, args[0], sh.UserTrail(), sh.Flags.DryRun); err != nil {
				return err
			}
			return sh.Show(f, func() error { return sh.Printf("%s", f.text(sh.Flags.DryRun)) })
		},
	})
}
