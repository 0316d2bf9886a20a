package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// keptOutput is how much of the end of a script's output is kept, in bytes, and
// shownLines how many lines of that an error shows.
const (
	keptOutput = 16 << 10
	shownLines = 20
)

// Install runs the creation script of an operating system for an instance
// whose disks are prepared. The name may carry a variant; params are the
// parameters for the script. When ctx ends, the script is killed with all that
// it started. What it started is not waited for when it ends by itself. A controller that cannot be sure that it leads ends it, too,
// and when it is sure again the script begins anew, as it would under the next leader, which log is told.
func (a *Agent) Install(ctx context.Context, order Order, spec hypervisor.Spec, name string, params map[string]string, log func(line string)) error {
	return a.install(ctx, order, &spec, log, func(hold *effect.Hold) error {
		if err := a.cfg.Driver.Seed(ctx, spec.Thing(), nil); err != nil { // what it was told for another system
			return err
		}
		return a.runCreate(ctx, hold, spec, name, params)
	})
}

// install has something write on the disks of an instance by an effect, which begins anew if the controller was not sure that it leads.
func (a *Agent) install(ctx context.Context, order Order, spec *hypervisor.Spec, log func(line string), write func(*effect.Hold) error) error {
	claim := effect.Claim{
		Order: order, Of: thing(spec.Name), Kind: effect.Script, What: "install instance " + spec.Name,
		Name: fmt.Sprintf("job %d, opcode %d: install %s", order.Job, order.Opcode, spec.UUID),
	}
	return a.byEffect(ctx, claim, "create", log, write)
}

// byEffect has a script of an operating system, or what does its work, carried out by an effect, which begins anew if the controller was not sure for
// a while that it leads.
func (a *Agent) byEffect(ctx context.Context, claim effect.Claim, script string, log func(line string), do func(*effect.Hold) error) error {
	for {
		err := a.carryOutBy(ctx, claim, do)
		if !errors.Is(err, effect.ErrUnsure) {
			return err
		}
		if err := a.cfg.Lead.Await(ctx); err != nil {
			return killed(script, err)
		}
		log("The script was ended, for the controller was not sure for a while that it leads; it begins anew")
	}
}

// killed is the error of a script that was ended before its time. That of a leader who has lost the lead says so: what
// becomes of the instance is for the next one.
func killed(script string, why error) error {
	code := fault.Canceled
	if fault.Is(why, fault.Fenced) {
		code = fault.Fenced
	}
	return fault.New(code, "OS %s script was killed: %w", script, why)
}

func (a *Agent) runCreate(ctx context.Context, hold *effect.Hold, spec hypervisor.Spec, name string, params map[string]string) error {
	o, err := a.FindOS(ctx, name, true)
	if err != nil || o.Path == "" {
		return err
	}
	env, err := a.scriptEnvironment(ctx, spec, o.Name, variantOf(name), params)
	if err != nil {
		return err
	}
	const script = "create"
	return a.runScript(ctx, hold, script, []string{filepath.Join(o.Path, script)}, o.Path, env)
}

func variantOf(name string) string {
	_, variant, _ := strings.Cut(name, "+")
	return variant
}

// runScript runs a script of an operating system.
func (a *Agent) runScript(ctx context.Context, hold *effect.Hold, script string, args []string, dir string, env []string) error {
	output := &tail{limit: keptOutput}
	exit, err := hold.Run(ctx, effect.Command{Args: args, Dir: dir, Env: env, Output: output})
	switch {
	case ctx.Err() != nil && err != nil:
		return killed(script, context.Cause(ctx))
	case fault.Is(err, fault.Unavailable):
		return killed(script, err)
	case err != nil:
		return err
	case !exit.Known:
		return fault.New(fault.Failed, "OS %s script was killed on node %s", script, a.cfg.Node)
	case exit.Status == 0:
		return nil
	}
	return fault.New(fault.Failed, "OS %s script failed (exited with exit code %d), last lines in the log file:\n%s", script, exit.Status, output.lastLines(shownLines))
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	kept  []byte
	cut   bool // there was more before
}

// Write never fails.
func (t *tail) Write(text []byte) (int, error) {
	written := len(text)
	if len(text) > t.limit {
		text, t.kept, t.cut = text[len(text)-t.limit:], t.kept[:0], true
	}
	if surplus := len(t.kept) + len(text) - t.limit; surplus > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[surplus:]...), true
	}
	t.kept = append(t.kept, text...)
	return written, nil
}

// lastLines returns the last lines that were written, at most so many. The
// first of them may lack its beginning, which is then marked, and bytes that are no text are replaced.
func (t *tail) lastLines(count int) string {
	lines := bytes.Split(bytes.TrimRight(t.kept, "\n"), []byte("\n"))
	clipped := t.cut && len(lines) <= count
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	text := strings.ToValidUTF8(string(bytes.Join(lines, []byte("\n"))), "\uFFFD")
	if clipped {
		return "[...]" + text
	}
	return text
}

// scriptEnvironment is what a creation script may rely on.
func (a *Agent) scriptEnvironment(ctx context.Context, spec hypervisor.Spec, name, variant string, params map[string]string) ([]string, error) {
	there, err := a.cfg.Driver.Instance(ctx, spec.Thing())
	if err != nil && !fault.Is(err, fault.NotFound) { // one without disks is not known before its first start
		return nil, err
	}
	env := []string{
		"PATH=/sbin:/bin:/usr/sbin:/usr/bin", "OS_API_VERSION=" + strconv.Itoa(apiVersions[0]),
		"INSTANCE_NAME=" + spec.Name, "OS_NAME=" + name, "OS_VARIANT=" + variant,
		"HYPERVISOR=" + a.cfg.Driver.Kind(),
		"DISK_COUNT=" + strconv.Itoa(len(spec.Disks)), "NIC_COUNT=" + strconv.Itoa(len(spec.NICs)),
	}
	for i, disk := range spec.Disks {
		n := strconv.Itoa(i)
		env = append(env, "DISK_"+n+"_UUID="+disk.UUID, "DISK_"+n+"_SIZE="+strconv.Itoa(disk.Size), "DISK_"+n+"_ACCESS="+access(disk))
		if at := slices.IndexFunc(there.Disks, func(d hypervisor.Disk) bool { return d.UUID == disk.UUID }); at >= 0 && there.Disks[at].Path != "" {
			if format := there.Disks[at].Kept(); format != diskimage.Raw {
				return nil, fault.New(fault.Unsupported, "disk %d of instance %s has the format %s, and scripts of operating systems write on disks as they are", i, spec.Name, format).At("os_type").
					WithHint("install it from an image (--image NAME), or give it a disk of the format raw")
			}
			env = append(env, "DISK_"+n+"_PATH="+there.Disks[at].Path)
		}
	}
	for i, nic := range spec.NICs {
		n := strconv.Itoa(i)
		env = append(env, "NIC_"+n+"_MAC="+nic.MAC, "NIC_"+n+"_MODE="+nic.Mode, "NIC_"+n+"_LINK="+nic.Link)
		if nic.IP != "" {
			env = append(env, "NIC_"+n+"_IP="+nic.IP)
		}
	}
	for param, value := range params {
		env = append(env, "OSP_"+strings.ToUpper(param)+"="+value)
	}
	slices.Sort(env)
	return env, nil
}

// access is how a script may use a disk, in the reference's words.
func access(disk hypervisor.Disk) string {
	if disk.ReadOnly {
		return "ro"
	}
	return "rw"
}
