package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

// Cloud logs in to the cloud that the environment means.
func Cloud(ctx context.Context, sh *shell.Shell) (*openstack.Client, error) {
	c, err := openstack.Find(sh.Getenv)
	if fault.Is(err, fault.NotFound) && sh.Getenv("OS_CLOUD") == "" {
		if local := localCloud(sh); local != nil {
			c, err = local, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return openstack.LogIn(ctx, c)
}

// localCloud is the controller of this machine, with the account that its ready
// file tells; nil if there is none.
func localCloud(sh *shell.Shell) *openstack.Cloud {
	path := cmp.Or(sh.Getenv("DROVER_READY_FILE"), filepath.Join(shell.DevDataDir(sh.Getenv), "ready.json"))
	text, err := os.ReadFile(path)
	var ready struct {
		Identity string `json:"identity"`
		User     string `json:"os_username"`
		Password string `json:"os_password"`
		Project  string `json:"os_project"`
	}
	if err != nil || json.Unmarshal(text, &ready) != nil || ready.Identity == "" || ready.User == "" {
		return nil
	}
	local := &openstack.Cloud{AuthURL: ready.Identity, Username: ready.User, Password: ready.Password, Project: ready.Project, Source: "the file " + path}
	own := filepath.Join(filepath.Dir(path), "rapi", "rapi.pem")
	if _, err := os.Stat(own); err == nil && strings.HasPrefix(ready.Identity, "https:") {
		local.Certificate = own // it vouches for itself
	}
	return local
}
