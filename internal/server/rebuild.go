package server

import (
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/servertag"
)

// A server is rebuilt by one job of its cluster, which stops the instance, installs the image on its disk, and starts it again if it ran. What was on the disk is
// lost by it, so it is done once for each time that it was asked for, or told as failed: a second one would take what the user has written since the first.

// Rebuild has a server's disk installed anew.
const Rebuild Do = "rebuild"

// Rebuilding is the status of a server that is rebuilt.
const Rebuilding Status = "REBUILD"

// Renewal is what a server is to be when it is rebuilt.
type Renewal struct {
	Image Image
	// Key is the key pair that its machine is told, an empty one for none; nil for the one that it has.
	Key *Key
	// UserData is what its machine is told to do at its next first start, empty for nothing; nil for what it was told at the last.
	UserData *string
	// Life is that of the store.
	Life string
}

// Key is a key pair as a machine is told it.
type Key struct{ Name, Public string }

// Anew is what a rebuild needs to be done as it was asked for, and once.
type Anew struct {
	// Run: the server is to run behind it.
	Run bool `json:"run,omitempty"`
	// Forget: its machine is told no user data any more.
	Forget bool `json:"forget,omitempty"`
	// Life is that of the store in which it was asked for. In another one, that was put back from a backup, it may have been done already.
	Life string `json:"life,omitempty"`
	// Handed is since when its job may be on a cluster that tells jobs apart by nothing, and After the newest job that was there before that.
	Handed job.Time `json:"handed,omitempty"`
	After  job.ID   `json:"after,omitempty"`
}

// Rebuild begins to install an image on the server's disk. Invalid for an image that its cluster does not have or that has no room in it, and where
// it could not be told what the server's machine is to be told; WrongState for a server that is in no state for it.
func (s *Server) Rebuild(w Renewal, by servertag.Asked) (*Server, error) {
	if s.Flavor.Disk == 0 {
		return nil, fault.New(fault.Invalid, "Instance %s cannot be rebuilt: it has no disk", s.ID).At("rebuild").WithHint("an image is installed on a disk: choose a flavor that has one")
	}
	if err := w.Image.Fits(s.Backend, s.Flavor); err != nil {
		return nil, err
	}
	guest, err := s.retold(w)
	if err != nil {
		return nil, err
	}
	next, err := s.Begin(Rebuild, by)
	if err != nil {
		return nil, err
	}
	next.Image, next.Guest = w.Image, guest
	next.Image.Clusters, next.Image.File = nil, nil
	task := &next.Tasks[len(next.Tasks)-1] // Begin has made it
	task.Anew = &Anew{Run: !s.Stopped || s.Broken != nil, Forget: w.UserData != nil && *w.UserData == "", Life: w.Life}
	return next, nil
}

// retold is what the machine of the server is told when it is rebuilt; nil for nothing.
func (s *Server) retold(w Renewal) (*Guest, error) {
	guest := Guest{}
	if s.Guest != nil {
		guest = *s.Guest
	}
	if w.Key != nil {
		guest.KeyName, guest.PublicKey = w.Key.Name, w.Key.Public
	}
	if w.UserData != nil {
		guest.UserData = *w.UserData
	}
	said := ""
	switch {
	case guest.KeyName != "":
		said = "key_name"
	case guest.UserData != "":
		said = "user_data"
	case w.Image.File == nil || s.Guest == nil && guest == (Guest{}):
		return nil, nil //nolint:nilnil // nothing is told
	}
	err := w.Image.TellsGuests(said)
	switch {
	case err == nil:
		return &guest, nil
	case said == "key_name" && w.Key == nil:
		err = err.WithHint("the server has the key pair %s: from microversion 2.54 on a key_name of null takes it away (openstack server rebuild --no-key-name)", guest.KeyName)
	}
	return nil, err
}

// TellsGuests refuses that a machine of the image be told something, which is said under a key: Invalid for an operating system of a cluster.
func (m *Image) TellsGuests(key string) *fault.Error {
	if m.File != nil {
		return nil
	}
	return fault.New(fault.Invalid, "Image %s takes no %s: nothing is put into a machine of an operating system that the cluster installs by its own scripts", m.ID, key).At(key).
		WithHint("images of disks take them (drover image add), as those of clouds have cloud-init")
}

// mends tells whether something may be done to a server whose disk was not installed, which makes it whole, or lets its user see what it is.
func (s *Server) mends(do Do) bool { return s.Broken != nil && (do == Rebuild || do == RebootHard) }

// settleDisk takes in that a task is over, of those of which disks become others.
func (s *Server) settleDisk(do Do, failure *Fault) {
	switch {
	case do == Rebuild:
		s.Broken = failure
	case do == RebootHard && failure == nil:
		s.Broken = nil
	}
}

// Handed records that the job of a rebuild is about to be handed in to a cluster that would take it twice, behind all jobs up to one; at no time, that it was not taken.
func (s *Server) Handed(serial int64, at job.Time, after job.ID) *Server {
	next := *s
	next.Tasks = slices.Clone(s.Tasks)
	for i := range next.Tasks {
		if t := &next.Tasks[i]; t.Serial == serial && t.Anew != nil {
			anew := *t.Anew
			anew.Handed, anew.After = at, after
			t.Anew = &anew
		}
	}
	return &next
}

// rebuilding returns the opcodes of a rebuild, of one job: the last one starts what ran.
func (s *Server) rebuilding(task *Task) ([]*opcode.Opcode, error) {
	install := map[string]any{"os_type": s.Image.OS}
	if s.Backend == "" {
		s.tell(install, task.Anew.Forget)
	}
	steps := []struct {
		opcode string
		params map[string]any
	}{{simple[Stop].opcode, nil}, {installation, install}, {simple[Start].opcode, nil}}
	if !task.Anew.Run {
		steps = steps[:2]
	}
	var out []*opcode.Opcode
	for _, step := range steps {
		params := map[string]any{"instance_name": s.Instance, "reason": s.trail(source, string(Rebuild)+" server", task.Asked)}
		maps.Copy(params, step.params)
		op, err := s.opcode(step.opcode, params)
		if err != nil {
			return nil, err
		}
		out = append(out, op)
	}
	return out, nil
}

// tell puts what the server's machine is told into the parameters of an installation. A disk image is told what the server has, and keeps the user data of before
// where there are no others; an operating system of the cluster knows no such parameters, and has none.
func (s *Server) tell(install map[string]any, forget bool) {
	key, data := unset, unset
	base, _ := cluster.OSName(s.Image.OS)
	if g := s.Guest; g != nil && base == cluster.ImageOS {
		if g.PublicKey != "" {
			key = g.PublicKey
		}
		if data = g.UserData; forget {
			data = unset
		}
	}
	install["osparams"] = map[string]any{cluster.SSHKeys: key}
	if data != "" {
		install["osparams_private"] = map[string]any{cluster.UserData: data}
	}
}
