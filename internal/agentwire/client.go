package agentwire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/storage"
)

// Conn returns the connection of an agent, and waits for one until ctx ends.
type Conn func(ctx context.Context) (http.RoundTripper, error)

// Client is a node that is elsewhere. It is safe for concurrent use.
type Client struct {
	node string
	conn Conn
	away time.Duration

	mu    sync.Mutex
	had   []string // calls whose answers have come, which the agent does not know yet
	agent string   // who answered last
	ended uint64   // how many calls that change something have come to their end
	hooks []string // directories of hooks, as they were told last; nil before
}

var _ exec.Node = (*Client)(nil)

// NewClient returns the node of a name. Calls wait for one that is away for the given time; zero is Away.
func NewClient(node string, conn Conn, away time.Duration) *Client {
	if away == 0 {
		away = Away
	}
	return &Client{node: node, conn: conn, away: away}
}

// asking is one call while it is made.
type asking struct {
	client *Client
	name   string
	lasts  bool
	r      request
	log    func(string)
	// why ends the call: the cause of what the caller's context ended with.
	why context.Context
	// sent says that the agent may have got the call.
	sent bool
	// lost is since when the node does not answer, and failures how often it was asked since.
	lost     time.Time
	failures int
}

// pauses are those between tries to reach a node that does not answer.
func pauses() backoff.Pauses {
	return backoff.Pauses{First: 10 * time.Millisecond, Longest: time.Second}
}

// call has the agent carry out a call, and returns its result.
func (c *Client) call(ctx context.Context, name string, lasts bool, args json.RawMessage, log func(string)) (json.RawMessage, error) {
	a := &asking{client: c, name: name, lasts: lasts, log: log, why: ctx, r: request{Node: c.node, Args: args, Agent: c.answered("")}}
	if !lasts {
		return a.until(ctx)
	}
	a.r.ID = newID()
	// Who stops waiting does not leave: he has the call ended, and waits for the end.
	stays, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() { a.endIt(stays, leave) })()
	defer c.changed()
	return a.until(stays)
}

// changed notes that a call that may have changed something is about to return.
func (c *Client) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
}

// Changes is how many calls have returned that may have changed something: while it stays, what was known of the node is what it was told to be.
func (c *Client) Changes() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// endIt has the agent end the call. One that never comes to its end is left.
func (a *asking) endIt(ctx context.Context, leave func()) {
	time.AfterFunc(ending, leave)
	a.client.cancel(ctx, a.r.ID, context.Cause(a.why))
}

// until asks again until there is an answer.
func (a *asking) until(ctx context.Context) (json.RawMessage, error) {
	a.lost = time.Now()
	for {
		conn, err := a.connection(ctx)
		if err != nil {
			return nil, err
		}
		answer, err := a.once(ctx, conn)
		if answer != nil || !fault.Is(err, codeCut) {
			return answer.result(err)
		}
		if ctx.Err() != nil || time.Since(a.lost) > a.patience() {
			return nil, a.unanswered("no answer came", err)
		}
		a.failures++
		a.r.Repeat = true
		select {
		case <-time.After(pauses().After(a.failures)):
		case <-ctx.Done():
		}
	}
}

// patience is how long the call waits for a node that is away: a question less long than an order.
func (a *asking) patience() time.Duration {
	if a.lasts {
		return a.client.away
	}
	return min(a.client.away, Looking)
}

// unanswered is the error of a call without an answer.
func (a *asking) unanswered(what string, err error) error {
	if a.lasts {
		return fault.New(fault.Unavailable, "it is not known whether node %s carried %s out: %s: %w", a.client.node, a.name, what, err)
	}
	return fault.New(fault.Unavailable, "node %s does not answer %s: %s: %w", a.client.node, a.name, what, err)
}

// codeCut is the code of what was said about a call whose connection ended before its answer.
const codeCut fault.Code = "cut"

func (e *end) result(err error) (json.RawMessage, error) {
	if e == nil {
		return nil, err
	}
	return e.Result, e.Error.fault()
}

// connection waits for the node, for as long as a call waits for one that is away.
func (a *asking) connection(ctx context.Context) (http.RoundTripper, error) {
	if conn := a.client.present(); conn != nil && a.why.Err() == nil {
		return conn, nil
	}
	limit, cancel := context.WithDeadline(ctx, a.lost.Add(a.patience()))
	defer cancel()
	if !a.sent { // nothing is to be ended yet
		var stop context.CancelFunc
		limit, stop = context.WithCancel(limit)
		defer stop()
		defer context.AfterFunc(a.why, stop)()
	}
	conn, err := a.client.conn(limit)
	switch {
	case a.why.Err() != nil && !a.sent:
		return nil, fault.New(fault.Canceled, "node %s was to %s, and the order was given up before its turn: %w", a.client.node, a.name, context.Cause(a.why))
	case err == nil:
		return conn, nil
	case a.sent:
		return nil, a.unanswered("it went away", err)
	}
	if !a.lasts {
		return nil, fault.New(fault.Environment, "node %s cannot be asked: %w", a.client.node, err).WithHint("see whether its agent runs and reaches the controller")
	}
	return nil, fault.New(fault.Environment, "node %s is away, and was not asked to %s: %w", a.client.node, a.name, err).WithHint("see whether its agent runs and reaches the controller")
}

// once sends the call once. Without an answer the error has the code codeCut if the call may be repeated.
func (a *asking) once(ctx context.Context, conn http.RoundTripper) (*end, error) {
	if a.lasts { // of others nothing is kept, and they tell nothing
		a.r.Had = a.client.take()
	}
	text, err := json.Marshal(a.r)
	if err != nil {
		return nil, fault.New(fault.Internal, "the call cannot be written: %w", err)
	}
	a.sent = true
	res, err := post(ctx, conn, pathCalls+a.name, text)
	if err != nil {
		a.client.give(a.r.Had)
		return nil, fault.New(codeCut, "%w", err)
	}
	defer res.Body.Close() //nolint:errcheck // what was to be read was read
	a.client.answered(res.Header.Get(headerAgent))
	begun, from := time.Now(), a.r.From
	defer func() { // a node that cuts each answer short at once is as one that does not answer
		if a.r.From > from || time.Since(begun) > pauses().Longest {
			a.lost, a.failures = time.Now(), 0
		}
	}()
	if res.StatusCode != http.StatusOK {
		return nil, refused(a.client.node, res)
	}
	answer, err := a.read(res.Body)
	if err == nil && a.lasts {
		a.client.give([]string{a.r.ID})
	}
	return answer, err
}

// post sends a request.
func post(ctx context.Context, conn http.RoundTripper, path string, text []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://agent"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", contentType)
	return conn.RoundTrip(r)
}

// refused reads why a call was not begun.
func refused(node string, res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	var f failure
	if err == nil {
		err = intake.ReadOpen(text, &f)
	}
	if err != nil || f.Message == "" {
		return fault.New(fault.Unavailable, "node %s answered with status %d", node, res.StatusCode)
	}
	return f.fault()
}

// read reads an answer to its end.
func (a *asking) read(body io.Reader) (*end, error) {
	s := bufio.NewScanner(body)
	s.Buffer(make([]byte, 0, usualFrame), maxFrame)
	s.Split(wholeLines)
	for s.Scan() {
		var f frame
		if err := intake.ReadOpen(s.Bytes(), &f); err != nil {
			return nil, fault.New(fault.Unavailable, "the answer of node %s cannot be read: %w", a.client.node, err)
		}
		switch {
		case f.End != nil:
			return f.End, nil
		case f.Lost > 0:
			a.r.From += f.Lost
			a.log("(some lines were lost on the way from the node)")
		case f.Line != nil:
			a.r.From++
			a.log(*f.Line)
		default:
			return nil, fault.New(fault.Unavailable, "node %s answered with something that is neither output nor an end", a.client.node)
		}
	}
	switch err := s.Err(); {
	case err == bufio.ErrTooLong: //nolint:errorlint // it is returned as it is
		return nil, fault.New(fault.Unavailable, "node %s answered with more than %d bytes at once", a.client.node, maxFrame)
	case err != nil:
		return nil, fault.New(codeCut, "%w", err)
	}
	return nil, fault.New(codeCut, "the answer has no end")
}

// wholeLines leaves out what a cut has left of a line.
func wholeLines(data []byte, _ bool) (advance int, token []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	return 0, nil, nil
}

// answered notes who answered, and returns who it was last.
func (c *Client) answered(agent string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if validID(agent) {
		c.agent = agent
	}
	return c.agent
}

// take returns the calls that the agent may forget, and give says that it does not know of some.
func (c *Client) take() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids, c.had = c.had, nil
	return ids
}

func (c *Client) give(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.had = append(c.had, ids...); len(c.had) > maxAnswers {
		c.had = c.had[len(c.had)-maxAnswers:]
	}
}

// cancel ends a call, and says so again until the agent knows the call, which may overtake it, or ctx ends, as it does with the call.
func (c *Client) cancel(ctx context.Context, id string, why error) {
	text, err := json.Marshal(request{Node: c.node, ID: id, Args: json.RawMessage("null"), Cancel: failed(why)})
	if err != nil {
		return // its fields are texts
	}
	for tries := 1; ctx.Err() == nil && !c.canceled(ctx, text); tries++ {
		select {
		case <-time.After(pauses().After(tries)):
		case <-ctx.Done():
		}
	}
}

// canceled tells whether the agent has ended a call.
func (c *Client) canceled(ctx context.Context, text []byte) bool {
	conn, err := c.conn(ctx)
	if err != nil {
		return false
	}
	res, err := post(ctx, conn, pathCancel, text)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Node implements exec.Node, as do the others.
func (c *Client) Node() string { return c.node }

// Away tells how long an order would wait for the node.
func (c *Client) Away() time.Duration {
	if c.present() != nil {
		return 0
	}
	return c.away
}

// present is the connection of a node that is there; nil for one that is away.
func (c *Client) present() http.RoundTripper {
	conn, err := c.conn(ended)
	if err != nil {
		return nil
	}
	return conn
}

// ended is a context that has ended: who waits by it does not wait.
var ended = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

func quiet(string) {}

// Instance tells about one instance.
func (c *Client) Instance(ctx context.Context, of hypervisor.Thing) (hypervisor.Instance, error) {
	return callInstance.ask(ctx, c, aThing{of}, quiet)
}

// Named lists what the node has under a name.
func (c *Client) Named(ctx context.Context, name string) ([]hypervisor.Instance, error) {
	return callNamed.ask(ctx, c, aName{Name: name}, quiet)
}

// Instances lists what is on the node.
func (c *Client) Instances(ctx context.Context) ([]hypervisor.Instance, error) {
	return callInstances.ask(ctx, c, nothing{}, quiet)
}

// Info returns the figures of the machine.
func (c *Client) Info(ctx context.Context) (hypervisor.Node, error) {
	return callInfo.ask(ctx, c, nothing{}, quiet)
}

// State returns what the node reported last.
func (c *Client) State(ctx context.Context, fresh bool) (agent.State, error) {
	s, err := callState.ask(ctx, c, freshly{fresh}, quiet)
	return c.told(&s, err), err
}

// Next waits for a state other than the one of a number, which the node tells as soon as there is one. It knows all changes whose calls had returned when
// it was asked for. Unsupported by agents of before.
func (c *Client) Next(ctx context.Context, after uint64) (agent.State, error) {
	s, err := callNext.ask(ctx, c, toNext{after}, quiet)
	return c.told(&s, err), c.newer(err, "telling its state by itself")
}

// told takes in what a node told of its hooks.
func (c *Client) told(s *told, err error) agent.State {
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hooks = append([]string{}, s.Hooks...)
	}
	return s.state()
}

// HookDirs are the directories of hooks that the node told of last, which it does with its state. One that has told none yet is asked for that.
func (c *Client) HookDirs(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	dirs := c.hooks
	c.mu.Unlock()
	if dirs != nil {
		return dirs, nil
	}
	if c.present() == nil {
		return nil, fault.New(fault.Unavailable, "node %s is away, and has told of no hooks", c.node)
	}
	s, err := c.State(ctx, false)
	return s.Hooks, err
}

// RunHooks runs the hooks of a directory.
func (c *Client) RunHooks(ctx context.Context, order agent.Order, h agent.Hooks) ([]hooks.Result, error) {
	results, err := callRunHooks.ask(ctx, c, toHooks{order, h}, quiet)
	return results, c.newer(err, "hooks")
}

// RunCommand runs a restricted command.
func (c *Client) RunCommand(ctx context.Context, order agent.Order, name string) (string, error) {
	said, err := callRunCommand.ask(ctx, c, toCommand{order, name}, quiet)
	return said, c.newer(err, "restricted commands")
}

// Powercycle has the machine switched off and on.
func (c *Client) Powercycle(ctx context.Context, order agent.Order) (string, error) {
	said, err := callPowercycle.ask(ctx, c, toOrder{order}, quiet)
	return said, c.newer(err, "switching itself off and on")
}

// RenewCertificate has the agent make its key and certificate anew.
func (c *Client) RenewCertificate(ctx context.Context, order agent.Order) (string, error) {
	serial, err := callRenewCertificate.ask(ctx, c, toOrder{order}, quiet)
	return serial, c.newer(err, "renewing its certificate when it is told to")
}

// ofStorage is what agents of before do not know.
const ofStorage = "telling of what disks are kept in"

// StorageUnits lists the units of a kind that the disks of the node are kept in.
func (c *Client) StorageUnits(ctx context.Context, kind storage.Kind) ([]storage.Unit, error) {
	units, err := callStorageUnits.ask(ctx, c, ofKind{kind}, quiet)
	return units, c.newer(err, ofStorage)
}

// LogicalVolumes lists the volumes of the node's volume group.
func (c *Client) LogicalVolumes(ctx context.Context) ([]storage.LogicalVolume, error) {
	volumes, err := callLogicalVolumes.ask(ctx, c, nothing{}, quiet)
	return volumes, c.newer(err, ofStorage)
}

// Providers lists what may be storage providers of the node.
func (c *Client) Providers(ctx context.Context) ([]storage.Provider, error) {
	found, err := callProviders.ask(ctx, c, nothing{}, quiet)
	return found, c.newer(err, ofStorage)
}

// SetAllocatable has new disks be made on a device of the volume group, or not.
func (c *Client) SetAllocatable(ctx context.Context, order agent.Order, device string, may bool) error {
	_, err := callSetAllocatable.ask(ctx, c, toStorage{order, device, may}, quiet)
	return c.newer(err, "changing what disks are kept in")
}

// RepairStorage has the volume group do without the devices that are gone.
func (c *Client) RepairStorage(ctx context.Context, order agent.Order, group string) error {
	_, err := callRepairStorage.ask(ctx, c, toStorage{Order: order, Name: group}, quiet)
	return c.newer(err, "changing what disks are kept in")
}

// FindOS tells about an operating system definition of the node.
func (c *Client) FindOS(ctx context.Context, name string, force bool) (agent.OS, error) {
	return callFindOS.ask(ctx, c, aName{name, force}, quiet)
}

// OSes lists the operating system definitions of the node.
func (c *Client) OSes(ctx context.Context) ([]agent.OS, error) {
	return callOSes.ask(ctx, c, nothing{}, quiet)
}

// Reason is why an instance changed its state last; nil if nobody knows.
func (c *Client) Reason(ctx context.Context, instance string) (reason.Trail, error) {
	return callReason.ask(ctx, c, aName{Name: instance}, quiet)
}

// ReadConsole returns what an instance printed behind a position.
func (c *Client) ReadConsole(ctx context.Context, of hypervisor.Thing, at uint64, wait time.Duration) (console.Piece, error) {
	return callReadConsole.ask(ctx, c, toRead{of, at, wait}, quiet)
}

// TypeConsole types on an instance's serial line. Keys whose answer is lost are not typed again.
func (c *Client) TypeConsole(ctx context.Context, of hypervisor.Thing, keys []byte) error {
	_, err := callTypeConsole.ask(ctx, c, toType{of, keys}, quiet)
	return err
}

// Delay waits on the node.
func (c *Client) Delay(ctx context.Context, d time.Duration) error {
	_, err := callDelay.ask(ctx, c, duration{d}, quiet)
	return err
}

// Prepare makes and grows disks.
func (c *Client) Prepare(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []hypervisor.Disk) error {
	_, err := callPrepare.ask(ctx, c, toDisks{order, of, disks}, quiet)
	return err
}

// Adjust plugs devices in and pulls them out.
func (c *Client) Adjust(ctx context.Context, order agent.Order, spec hypervisor.Spec) error {
	_, err := callAdjust.ask(ctx, c, toRun{Order: order, Spec: spec}, quiet)
	return err
}

// Balloon asks a guest to have another memory.
func (c *Client) Balloon(ctx context.Context, order agent.Order, of hypervisor.Thing, memory int) error {
	_, err := callBalloon.ask(ctx, c, toBalloon{order, of, memory}, quiet)
	return err
}

// Receive has an instance wait for what another node sends.
func (c *Client) Receive(ctx context.Context, order agent.Order, spec hypervisor.Spec) error {
	_, err := callReceive.ask(ctx, c, toRun{Order: order, Spec: spec}, quiet)
	return err
}

// Send hands an instance over to the node that waits for it.
func (c *Client) Send(ctx context.Context, order agent.Order, of hypervisor.Thing, trail reason.Trail) error {
	_, err := callSend.ask(ctx, c, toThing{Order: order, Thing: of, Trail: trail}, quiet)
	return err
}

// Drop removes disks.
func (c *Client) Drop(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []string) error {
	_, err := callDrop.ask(ctx, c, toDrop{order, of, disks}, quiet)
	return err
}

// Detach has disks of an instance be of none.
func (c *Client) Detach(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []string) error {
	_, err := callDetach.ask(ctx, c, toDrop{order, of, disks}, quiet)
	return c.newer(err, "disks that no instance has")
}

// Attach has disks that no instance has be those of one.
func (c *Client) Attach(ctx context.Context, order agent.Order, of hypervisor.Thing, disks []string) error {
	_, err := callAttach.ask(ctx, c, toDrop{order, of, disks}, quiet)
	return c.newer(err, "disks that no instance has")
}

// Install runs a creation script.
func (c *Client) Install(ctx context.Context, order agent.Order, spec hypervisor.Spec, os string, params map[string]string, log func(string)) error {
	_, err := callInstall.ask(ctx, c, toInstall{order, spec, os, params}, log)
	return err
}

// FetchImage has the node keep a copy of an image, and look at it.
func (c *Client) FetchImage(ctx context.Context, order agent.Order, image agent.Image, log func(string)) (agent.Image, error) {
	found, err := callFetchImage.ask(ctx, c, toFetch{order, image}, log)
	return found, c.newer(err, "images")
}

// ReadImage reads a part of the node's copy of an image.
func (c *Client) ReadImage(ctx context.Context, sum string, at int64) (agent.Piece, error) {
	piece, err := callReadImage.ask(ctx, c, toReadImage{sum, at}, quiet)
	return piece, c.newer(err, copiedImages)
}

// KeepImage hands a part of an image over.
func (c *Client) KeepImage(ctx context.Context, order agent.Order, image agent.Image, piece agent.Piece, log func(string)) (bool, error) {
	have, err := callKeepImage.ask(ctx, c, toKeepImage{order, image, piece}, log)
	return have, c.newer(err, copiedImages)
}

// InstallImage writes an image on the first disk of an instance.
func (c *Client) InstallImage(ctx context.Context, order agent.Order, spec hypervisor.Spec, image agent.Image, params map[string]string, log func(string)) error {
	_, err := callInstallImage.ask(ctx, c, toInstallImage{order, spec, image, params}, log)
	return c.newer(err, "images")
}

// Exports lists the exports that the node keeps.
func (c *Client) Exports(ctx context.Context) ([]string, error) {
	names, err := callExports.ask(ctx, c, nothing{}, quiet)
	return names, c.newer(err, exported)
}

// HalfExports lists what is being made of exports, or was left of some.
func (c *Client) HalfExports(ctx context.Context) ([]exports.Half, error) {
	halves, err := callHalfExports.ask(ctx, c, nothing{}, quiet)
	return halves, c.newer(err, "listing what is left of exports")
}

// Export tells what an export says.
func (c *Client) Export(ctx context.Context, name string) (export.Export, error) {
	e, err := callExport.ask(ctx, c, aName{Name: name}, quiet)
	return e, c.newer(err, exported)
}

// SnapshotDisks has what the disks of an instance have be kept.
func (c *Client) SnapshotDisks(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error {
	_, err := callSnapshotDisks.ask(ctx, c, toThing{Order: order, Thing: of, Name: id}, quiet)
	return c.newer(err, snapshots)
}

// ReleaseSnapshot ends that.
func (c *Client) ReleaseSnapshot(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error {
	_, err := callReleaseSnapshot.ask(ctx, c, toThing{Order: order, Thing: of, Name: id}, quiet)
	return c.newer(err, snapshots)
}

// DumpDisk dumps a disk.
func (c *Client) DumpDisk(ctx context.Context, order agent.Order, spec hypervisor.Spec, d agent.Dump, params map[string]string, log func(string)) error {
	_, err := callDumpDisk.ask(ctx, c, toDump{order, spec, d, params}, log)
	return c.newer(err, exported)
}

// ImportDisk writes a dump on a disk.
func (c *Client) ImportDisk(ctx context.Context, order agent.Order, spec hypervisor.Spec, d agent.Dump, params map[string]string, log func(string)) error {
	_, err := callImportDisk.ask(ctx, c, toDump{order, spec, d, params}, log)
	return c.newer(err, exported)
}

// RenameSystem has the operating system of an instance know its new name.
func (c *Client) RenameSystem(ctx context.Context, order agent.Order, spec hypervisor.Spec, os, former string, params map[string]string, log func(string)) error {
	_, err := callRenameSystem.ask(ctx, c, toRenameSystem{order, spec, os, former, params}, log)
	return c.newer(err, exported)
}

// ReadDump reads a part of a dump.
func (c *Client) ReadDump(ctx context.Context, from exports.Place, at int64) (agent.Piece, error) {
	piece, err := callReadDump.ask(ctx, c, toReadDump{from, at}, quiet)
	return piece, c.newer(err, exported)
}

// KeepDump writes a part of a dump.
func (c *Client) KeepDump(ctx context.Context, order agent.Order, to exports.Place, piece agent.Piece) error {
	_, err := callKeepDump.ask(ctx, c, toKeepDump{order, to, piece}, quiet)
	return c.newer(err, exported)
}

// FinishExport puts an export in place.
func (c *Client) FinishExport(ctx context.Context, order agent.Order, id string, e export.Export) error {
	_, err := callFinishExport.ask(ctx, c, toFinish{order, id, e}, quiet)
	return c.newer(err, exported)
}

// DiscardExport removes what is being made.
func (c *Client) DiscardExport(ctx context.Context, order agent.Order, id string) error {
	_, err := callDiscardExport.ask(ctx, c, toExport{order, id}, quiet)
	return c.newer(err, exported)
}

// RemoveExport removes an export.
func (c *Client) RemoveExport(ctx context.Context, order agent.Order, name string) error {
	_, err := callRemoveExport.ask(ctx, c, toExport{order, name}, quiet)
	return c.newer(err, exported)
}

// exported is what agents of before know nothing of.
const (
	exported     = "exports of instances"
	snapshots    = "snapshots of disks"
	copiedImages = "images that come from other nodes"
)

// newer is the error of a call that an agent of before does not know.
func (c *Client) newer(err error, what string) error {
	if err == nil || !fault.Is(err, fault.NotFound) || !strings.HasPrefix(err.Error(), noSuchCall) {
		return err
	}
	return fault.New(fault.Unsupported, "the agent of node %s is older than this controller, and knows nothing of %s", c.node, what).
		WithHint("upgrade it: machines run on while it is started anew")
}

// Start starts an instance.
func (c *Client) Start(ctx context.Context, order agent.Order, spec hypervisor.Spec, trail reason.Trail) error {
	_, err := callStart.ask(ctx, c, toRun{Order: order, Spec: spec, Trail: trail}, quiet)
	return err
}

// Stop stops an instance.
func (c *Client) Stop(ctx context.Context, order agent.Order, of hypervisor.Thing, how hypervisor.Stop, trail reason.Trail) error {
	_, err := callStop.ask(ctx, c, toThing{Order: order, Thing: of, Stop: how, Trail: trail}, quiet)
	return err
}

// RebootSoft has the guest reboot.
func (c *Client) RebootSoft(ctx context.Context, order agent.Order, of hypervisor.Thing, trail reason.Trail) error {
	_, err := callRebootSoft.ask(ctx, c, toThing{Order: order, Thing: of, Trail: trail}, quiet)
	return err
}

// RebootHard stops an instance and starts it.
func (c *Client) RebootHard(ctx context.Context, order agent.Order, spec hypervisor.Spec, how hypervisor.Stop, trail reason.Trail) error {
	_, err := callRebootHard.ask(ctx, c, toRun{order, spec, how, trail}, quiet)
	return err
}

// Rename gives an instance another name.
func (c *Client) Rename(ctx context.Context, order agent.Order, of hypervisor.Thing, to string) error {
	_, err := callRename.ask(ctx, c, toThing{Order: order, Thing: of, Name: to}, quiet)
	return err
}

// Remove removes an instance.
func (c *Client) Remove(ctx context.Context, order agent.Order, of hypervisor.Thing) error {
	_, err := callRemove.ask(ctx, c, toThing{Order: order, Thing: of}, quiet)
	return err
}

// Compare tells whether what a task brings about is on the node. What is hidden goes to the node, which leaves it out of what it tells.
func (c *Client) Compare(ctx context.Context, check agent.Check) (agent.Finding, error) {
	hidden := check.Hidden.Texts()
	check.Hidden = nil
	found, err := callCompare.ask(ctx, c, toCompare{check, hidden}, quiet)
	return found, c.newer(err, "checks of tasks")
}

// RunTask carries out a task of a deployment. What is hidden of it goes to the node, which leaves it out of what it tells.
func (c *Client) RunTask(ctx context.Context, order agent.Order, task agent.Task, log func(line string)) error {
	hidden := task.Hidden.Texts()
	task.Hidden = nil
	_, err := callRunTask.ask(ctx, c, toTask{order, task, hidden}, log)
	return err
}
