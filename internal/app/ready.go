package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/drover-project/drover/internal/api/compute"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/version"
	"github.com/drover-project/drover/internal/wholefile"
)

// Ready says where a controller can be reached. It is what `drover dev` writes
// to its ready file; surfaces that are not there are left out.
type Ready struct {
	RAPI         string `json:"rapi"`
	RAPIUser     string `json:"rapi_user"`
	RAPIPassword string `json:"rapi_password"`
	LUXI         string `json:"luxi"`
	// Mond are the monitoring agents of the nodes, by the nodes' names.
	Mond map[string]string `json:"mond,omitempty"`
	// Compute and Identity are URLs of the OpenStack interfaces; the rest is what
	// a client of them logs in with.
	Compute    string `json:"compute,omitempty"`
	Identity   string `json:"identity,omitempty"`
	OSUsername string `json:"os_username,omitempty"`
	OSPassword string `json:"os_password,omitempty"`
	OSProject  string `json:"os_project,omitempty"`
	// Web is the URL of the page.
	Web string `json:"web,omitempty"`
	// Health is where those ask who watch the controller.
	Health string `json:"health,omitempty"`
	// Peer is where other controllers connect.
	Peer string `json:"peer,omitempty"`
	// Confd is where questions of Ganeti's programs to confd are answered.
	Confd string `json:"confd,omitempty"`
	// Hypervisor is that of the nodes in the controller's process.
	Hypervisor string `json:"hypervisor"`
	// AgentAddress is where agents of nodes connect, and Agents are the processes of nodes that this one has begun, by the nodes' names.
	AgentAddress string         `json:"agent_address,omitempty"`
	Agents       map[string]int `json:"agents,omitempty"`
	PID          int            `json:"pid"`
}

// readyName is the ready file in the data directory, where the command line
// looks for a controller.
const readyName = "ready.json"

// writeReady writes the file so that a reader sees all of it or nothing. It is
// readable by its owner only, for it holds a password.
func writeReady(path string, r Ready) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = wholefile.Write(path, append(text, '\n'))
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot write the ready file: %w", err)
	}
	return nil
}

// announcement is what a person is told when a controller is ready.
type announcement struct {
	Ready

	// passwords: they are shown. Otherwise the files that hold them are named.
	passwords bool
	// data is the directory of the files, users the operator's own file with the
	// accounts of RAPI, empty if there is none.
	data, users string
	// guest: the demo has a machine that somebody can sit down before.
	guest bool
}

// write tells a person.
func (a announcement) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `Drover %s is ready.

  RAPI   %s   %s
  LUXI   %s
%s%s
Try:  drover --luxi %s job list
%sStop it with Ctrl-C; it goes on where it was at the next start.
`, version.Current().Version, a.RAPI, a.account(), a.LUXI, a.page(), a.openstack(), a.LUXI, a.machine())
	return err
}

// machine says how to sit down before the machine of the demo, if there is one.
func (a announcement) machine() string {
	if !a.guest {
		return ""
	}
	return "      drover --luxi " + a.LUXI + " instance console guest1    (log in as root)\n"
}

// account says how to log in over RAPI.
func (a announcement) account() string {
	switch {
	case a.RAPIUser == "":
		return "accounts in " + cmp.Or(a.users, filepath.Join(a.data, "rapi", "users"))
	case a.passwords:
		return "user " + a.RAPIUser + "   password " + a.RAPIPassword
	}
	return "user " + a.RAPIUser + "   password in " + filepath.Join(a.data, "rapi", "password")
}

// page says where browsers see the cluster.
func (a announcement) page() string {
	if a.Web == "" {
		return ""
	}
	return "  Page   " + a.Web + "   (drover --luxi " + a.LUXI + " web prints an address that signs in)\n"
}

// openstack says how to reach the OpenStack interfaces, and to log in there.
func (a announcement) openstack() string {
	text := ""
	if a.Identity != "" {
		text = fmt.Sprintf("  OpenStack   OS_AUTH_URL=%s   compute %s\n", a.Identity, a.Compute)
	}
	if a.OSUsername != "" {
		// Without the last one clients ask for the oldest version, which has no tags; the newest not all of them know.
		variables := fmt.Sprintf("OS_USERNAME=%s OS_PROJECT_NAME=%s OS_COMPUTE_API_VERSION=%s", a.OSUsername, a.OSProject, compute.Suggested)
		if a.passwords {
			text += fmt.Sprintf("              %s OS_PASSWORD=%s\n", variables, a.OSPassword)
		} else {
			text += fmt.Sprintf("              %s   password in %s\n", variables, filepath.Join(a.data, osPasswordName))
		}
	}
	return text
}
