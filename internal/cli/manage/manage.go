// Package manage is the command "drover manage": accounts, flavors and limits of the Compute API, locks and tags in the operator's name.
package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/servers"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/openstack"
)

const manageHelp = `Administer the accounts of the Compute API, as the user with the role admin that
OS_CLOUD or OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME name. Without
these variables, or with --luxi, it is done at the controller itself: whoever may
use its socket administers, also when no user can log in any more. Flavors,
limits of projects, locks and tags of servers are always administered there.`

// Command returns the noun "manage".
func Command(sh *shell.Shell) *cobra.Command {
	c := sh.Group("manage", "Administer accounts, flavors and limits of the Compute API, locks and tags of servers",
		manageUser(sh), manageProject(sh), manageFlavor(sh), manageQuota(sh), manageServer(sh), manageTags(sh))
	c.Long = manageHelp
	shell.CompleteWords(c, completions(sh))
	return c
}

// heeded are the shared options of commands of administrators.
var heeded = []string{"luxi", "output"}

// work is what a command of an administrator does.
type work func(ctx context.Context, cloud *openstack.Client, args []string) error

// managing is a command of an administrator.
func managing(sh *shell.Shell, use, short string, args cobra.PositionalArgs, do work) *cobra.Command {
	return shell.Heeding(heeded, &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		cloud, err := administering(sh, cmd)
		if err != nil {
			return err
		}
		return do(cmd.Context(), cloud, args)
	}})
}

// administering reaches the accounts that are meant.
func administering(sh *shell.Shell, cmd *cobra.Command) (*openstack.Client, error) {
	socket := sh.Getenv("OS_CLOUD") == "" && sh.Getenv("OS_AUTH_URL") == ""
	if given := cmd.Flag("luxi"); given != nil && given.Changed {
		socket = true
	}
	if socket {
		return openstack.Over(overSocket{sh}), nil
	}
	return servers.Cloud(cmd.Context(), sh)
}

// overSocket carries requests to the controller's socket.
type overSocket struct{ sh *shell.Shell }

// RoundTrip sends a request that changes something once, and others again when
// their connection is lost.
func (o overSocket) RoundTrip(r *http.Request) (*http.Response, error) {
	var body any
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if len(text) > 0 {
			body = json.RawMessage(text)
		}
	}
	var said struct {
		Status int             `json:"status"`
		Body   json.RawMessage `json:"body"`
	}
	send := o.sh.Do
	if r.Method == http.MethodGet {
		send = o.sh.Ask
	}
	if err := send(r.Context(), "AskIdentity", &said, r.Method, r.URL.RequestURI(), body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: said.Status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(said.Body)), Request: r}, nil
}
