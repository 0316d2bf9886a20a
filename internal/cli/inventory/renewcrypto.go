package inventory

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

const renewCryptoHelp = `Make keys and certificates anew, while everything goes on: those by which agents of
nodes and controllers know each other, the certificate of RAPI if it is one of the
controller's own, and the key that questions to confd are signed with. The two latter
are those of the controller that leads; another makes its own anew when it leads
(cluster master-failover). Clients with a copy of what is renewed need the new one.`

// renewals are what can be made anew: the option, the parameter, and what it is in a question.
var renewals = []struct{ option, param, what, help string }{
	{"new-node-certificates", "node_certificates", "the certificates of agents of nodes", "keys and certificates of the agents of nodes, and the one that the controller shows them"},
	{"new-rapi-certificate", "rapi_certificate", "the certificate of RAPI", "key and certificate of RAPI"},
	{"new-confd-hmac-key", "confd_hmac_key", "the key of confd", "key that questions to confd are signed with"},
	{"new-ssh-keys", "renew_ssh_keys", "SSH keys", "SSH keys of nodes, of which there are none"},
}

// notHere are options of the classic tool for what there is not, with what to do in place of them.
var notHere = []struct {
	option, why string
	file        bool
}{
	{"new-cluster-certificate", "agents know controllers by an authority that is made once for the life of a cluster; --new-node-certificates renews what it has signed", false},
	{"new-cluster-domain-secret", "no other cluster is spoken to with a secret", false},
	{"cluster-domain-secret", "no other cluster is spoken to with a secret", true},
	{"new-spice-certificate", "screens of machines are reached through the controller, by SPICE alone none is", false},
	{"spice-certificate", "screens of machines are reached through the controller, by SPICE alone none is", true},
	{"spice-ca-certificate", "screens of machines are reached through the controller, by SPICE alone none is", true},
	{"rapi-certificate", "put it into the file that the setting rapi-certificate of each controller names, and systemctl reload drover", true},
}

// clusterRenewCrypto makes the verb that makes keys and certificates anew.
func clusterRenewCrypto(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{Use: "renew-crypto", Short: "Make keys and certificates anew", Long: renewCryptoHelp, Args: shell.Exactly(0)})
	chosen := map[string]*bool{}
	for _, r := range renewals {
		chosen[r.param] = cmd.Flags().Bool(r.option, false, r.help)
	}
	cmd.Flags().Lookup("new-ssh-keys").Hidden = true
	force := cmd.Flags().BoolP("force", "f", false, "do not ask")
	if sh.Classic() {
		offerNotHere(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := refuseNotHere(cmd); err != nil {
			return err
		}
		params, what := map[string]any{}, []string{}
		for _, r := range renewals {
			if *chosen[r.param] {
				params[r.param] = true
				what = append(what, r.what)
			}
		}
		switch {
		case sh.Classic():
			return renewAsThere(cmd.Context(), sh, params, what, *force)
		case len(what) == 0:
			return shell.Usage("what is to be made anew? One of --new-node-certificates, --new-rapi-certificate, --new-confd-hmac-key")
		}
		return renew(cmd.Context(), sh, params, what, *force)
	}
	return cmd
}

// offerNotHere registers the options of the classic tool for what there is not.
func offerNotHere(cmd *cobra.Command) {
	for _, n := range notHere {
		if n.file {
			cmd.Flags().String(n.option, "", "there is none")
		} else {
			cmd.Flags().Bool(n.option, false, "there is none")
		}
		cmd.Flags().Lookup(n.option).Hidden = true
	}
}

func refuseNotHere(cmd *cobra.Command) error {
	for _, n := range notHere {
		if cmd.Flags().Changed(n.option) {
			return fault.New(fault.Unsupported, "--%s: there is no such thing here: %s", n.option, n.why)
		}
	}
	return nil
}

// renewAsThere says what the classic tool says around it.
func renewAsThere(ctx context.Context, sh *shell.Shell, params map[string]any, what []string, force bool) error {
	if err := sh.Printf("Updating certificates now. Running \"gnt-cluster verify\"  is recommended after this operation.\n"); err != nil {
		return err
	}
	if len(what) > 0 {
		if err := renew(ctx, sh, params, what, force); err != nil {
			return err
		}
	}
	return sh.Printf("All requested certificates and keys have been replaced. Running \"gnt-cluster verify\" now is recommended.\n")
}

// renew asks, and has it done.
func renew(ctx context.Context, sh *shell.Shell, params map[string]any, what []string, force bool) error {
	if !force {
		if err := sh.Sure("cluster renew-crypto", strings.Join(what, ", ")); err != nil {
			return err
		}
	}
	op, err := work.NewOp(sh, "cluster", "OP_CLUSTER_RENEW_CRYPTO", params)
	if err != nil {
		return err
	}
	return work.Run(ctx, sh, []work.Task{{Ops: []*opcode.Opcode{op}}})
}
