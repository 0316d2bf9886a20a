package app

import (
	"context"
	"crypto/rand"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
)

// nodeProcesses are the agents of nodes that this program runs beside itself, for trying (drover dev --agents): each is `drover agent`, and joins as any other.
type nodeProcesses struct {
	c     *controller
	dir   string // with a directory for each node
	tasks bool
	// driver are arguments that say what runs instances.
	driver []string

	mu      sync.Mutex
	pids    map[string]int
	running sync.WaitGroup
}

// agentsLinked is how long the agents of new nodes may take to be there.
const agentsLinked = 30 * time.Second

// keepAgents runs the agents of nodes, which end with the controller (endAgents), and tells that the controller is ready when they are.
func (c *controller) keepAgents(ctx context.Context, s *surfaces, o Options) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // opcodes that run when the controller is to end need their nodes
	p := &nodeProcesses{c: c, dir: filepath.Join(o.Data, "nodes"), tasks: o.Tasks, driver: o.Driver.Arguments(), pids: map[string]int{}}
	c.endAgents = func() {
		end()
		p.running.Wait()
	}
	if err := p.begin(ctx, life); err != nil {
		return err
	}
	if o.Demo && c.fresh {
		p.running.Go(func() {
			if err := c.seed(ctx); err != nil {
				c.endTerm(err)
			}
		})
	}
	s.ready.Agents = p.processes()
	if err := s.announce(o); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// begin begins the agents of all nodes that have one of their own and a place here, and waits until they are linked, or ctx ends. They end with life.
func (p *nodeProcesses) begin(ctx, life context.Context) error {
	c := p.c
	var nodes []string
	for n := range c.keeper.Snapshot().Nodes() {
		if n.Agent == nil {
			c.log.Warn("this node was made without an agent of its own, and lives in this process", "node", n.Name)
			continue
		}
		home := filepath.Join(p.dir, n.Name)
		if _, err := os.Stat(home); n.Agent.Token == nil && n.Agent.Serial == "" {
			if err := os.MkdirAll(home, 0o700); err != nil {
				return fault.New(fault.Environment, "cannot make the directory of a node: %w", err)
			}
		} else if err != nil { // it is on another machine
			continue
		}
		nodes = append(nodes, n.Name)
		p.running.Go(func() { p.keep(life, n.Name, home) })
	}
	limit, cancel := context.WithTimeout(ctx, agentsLinked)
	defer cancel()
	for _, node := range nodes {
		if _, err := c.agents.hub.Conn(node)(limit); err != nil && ctx.Err() == nil {
			c.log.Warn("the agent of a node is not there yet", "node", node, "error", err)
		}
	}
	return nil
}

// keep runs the agent of a node, again and again, until ctx ends.
func (p *nodeProcesses) keep(ctx context.Context, node, home string) {
	runtime.LockOSThread() // a process is told of the end of the thread that began it
	defer runtime.UnlockOSThread()
	for failures := 0; ctx.Err() == nil; {
		begun := time.Now()
		err := p.run(ctx, node, home)
		if ctx.Err() != nil {
			return
		}
		if failures++; time.Since(begun) > time.Minute {
			failures = 1
		}
		pause := backoff.Pauses{First: 100 * time.Millisecond, Longest: 10 * time.Second}.After(failures)
		p.c.log.Warn("the agent of a node has ended; it is begun again", "node", node, "in", pause, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// run runs the agent of a node once.
func (p *nodeProcesses) run(ctx context.Context, node, home string) error {
	self, err := os.Executable()
	if err != nil {
		return fault.New(fault.Environment, "cannot tell where this program is: %w", err)
	}
	args, token := []string{"agent", "--data", home, "--log-level", "warn"}, ""
	if _, err := os.Stat(filepath.Join(home, "agent.json")); err != nil {
		if token, err = p.token(ctx, node); err != nil {
			return err
		}
		args = []string{"agent", "join", "-", "--data", home, "--log-level", "warn"}
	}
	args = append(args, "--controllers", p.c.agents.address()) // it may be another than at the last start
	args = append(args, p.driver...)
	if p.tasks {
		args = append(args, "--tasks")
	}
	const patience = 5 * time.Second // for what it does when it is told to end
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(token), os.Stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, patience
	// Signals of a terminal are for this program, which ends the others; without it they would be nobody's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return fault.New(fault.Environment, "cannot begin the agent of a node: %w", err)
	}
	p.mu.Lock()
	p.pids[node] = cmd.Process.Pid
	p.mu.Unlock()
	return cmd.Wait()
}

// token makes the token of a node, without a job: nobody asked for it.
func (p *nodeProcesses) token(ctx context.Context, node string) (string, error) {
	access, err := p.c.joinAccess(ctx)
	if err != nil {
		return "", err
	}
	secret := rand.Text()
	err = p.c.updateAgent(ctx, node, func(n *cluster.Node) (*cluster.NodeAgent, error) {
		if n == nil || n.Agent == nil {
			return nil, fault.New(fault.NotFound, "node %s is gone", node)
		}
		a := *n.Agent
		a.Token = &cluster.JoinToken{Hash: joining.HashOf(secret), Until: time.Now().Add(agentsLinked).Unix()}
		return &a, nil
	})
	return joining.Token{Node: node, Secret: secret, Addresses: access.Addresses, Authority: access.Authority}.String(), err
}

// processes are those of the nodes, by their names.
func (p *nodeProcesses) processes() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.pids)
}
