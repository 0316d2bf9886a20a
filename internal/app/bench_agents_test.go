package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/joining"
)

// crowd is a machine whose instances are pretended even for the driver.
type crowd struct {
	*fake.Driver

	all []hypervisor.Instance
}

func (c *crowd) Instances(context.Context) ([]hypervisor.Instance, error) { return c.all, nil }

// processorTime is what the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inUse is the memory that the process has, without garbage.
func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	const mebibyte = 1 << 20
	return float64(m.HeapInuse+m.StackInuse) / mebibyte
}

// BenchmarkAgents connects 1,000 agents with 10 pretended instances each, which are in a process of their own, to a controller over mutual TLS. What is measured of memory
// and processor time is told for both ends.
func BenchmarkAgents(b *testing.B) {
	if os.Getenv(crowdTo) != "" {
		serveCrowd(b)
		return
	}
	const nodes = 1000
	quiet := slog.New(slog.DiscardHandler)
	dir := b.TempDir()
	c := startWith(b, app.Options{Data: dir, AgentAddress: "127.0.0.1:0", Log: quiet})
	tokens := c.tokens(b, nodes)
	agents := startCrowd(b, tokens)

	without, before, begun := agents.memory(b), agents.processor(b), time.Now()
	agents.asked(b, "dial")
	c.knowsAll(b, nodes)
	b.ReportMetric(time.Since(begun).Seconds(), "s-all-known")
	report(b, before, agents.processor(b), 1, "s-cpu-all-known")
	with := agents.memory(b)
	report(b, without, with, 1, "MiB-connections")
	report(b, ends{}, with, 1, "MiB-in-all")

	before, begun = agents.processor(b), time.Now()
	time.Sleep(20 * time.Second)
	report(b, before, agents.processor(b), 100/time.Since(begun).Seconds(), "%-idle")

	names := make([]string, nodes)
	for i := range names {
		names[i] = tokens[i].Node
	}
	before, begun = agents.processor(b), time.Now()
	c.jobDone(b, map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 1e-9, "on_master": false, "on_nodes": names})
	b.ReportMetric(time.Since(begun).Seconds(), "s-order-to-all")
	report(b, before, agents.processor(b), 1, "s-cpu-order-to-all")

	for _, slots := range []int{20, 100} {
		c.jobDone(b, map[string]any{"OP_ID": "OP_CLUSTER_SET_PARAMS", "max_running_jobs": slots})
		before, begun = agents.processor(b), time.Now()
		jobs := c.jobsOn(b, names)
		of := fmt.Sprintf("-of-%d-slots", slots)
		b.ReportMetric(jobs/time.Since(begun).Seconds(), "jobs/s"+of)
		report(b, before, agents.processor(b), 1e6/jobs, "us-cpu/job"+of)
	}

	if err := c.stop(); err != nil {
		b.Fatal(err)
	}
	before, begun = agents.processor(b), time.Now()
	c = startWith(b, app.Options{Data: dir, AgentAddress: c.ready.AgentAddress, Log: quiet})
	c.knowsAll(b, nodes)
	b.ReportMetric(time.Since(begun).Seconds(), "s-taken-over")
	report(b, before, agents.processor(b), 1, "s-cpu-taken-over")
	b.ReportMetric(0, "ns/op")
	agents.end(b)
	if err := c.stop(); err != nil {
		b.Error(err)
	}
}

// ends are what the controller and the agents have used.
type ends struct{ controller, agents float64 }

// report tells how much more both ends have used.
func report(b *testing.B, before, now ends, times float64, what string) {
	b.Helper()
	b.ReportMetric(times*(now.controller-before.controller), "controller-"+what)
	b.ReportMetric(times*(now.agents-before.agents), "agents-"+what)
}

// A crowd of agents is this benchmark, run by another process: what it is to do comes on its standard input, and what came of it is told in file 3. Each is one JSON value.

// crowdTo is the directory of a crowd, in its environment.
const crowdTo = "DROVER_BENCH_AGENTS"

// crowdOf are the agents of another process.
type crowdOf struct {
	program *exec.Cmd
	tell    *json.Encoder
	ask     *json.Decoder
	over    func()
}

// startCrowd has agents join, and returns before they dial.
func startCrowd(b *testing.B, tokens []joining.Token) *crowdOf {
	b.Helper()
	answers, told, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run", "^$", "-test.bench", "^BenchmarkAgents$", "-test.benchtime", "1x")
	cmd.Env, cmd.ExtraFiles, cmd.Stderr = append(os.Environ(), crowdTo+"="+b.TempDir()), []*os.File{told}, os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	_ = told.Close()
	a := &crowdOf{program: cmd, tell: json.NewEncoder(in), ask: json.NewDecoder(answers), over: func() { _, _ = in.Close(), answers.Close() }}
	a.asked(b, tokens)
	return a
}

// asked has the crowd do something, and returns what it tells.
func (a *crowdOf) asked(b *testing.B, what any) (told float64) {
	b.Helper()
	if err := errors.Join(a.tell.Encode(what), a.ask.Decode(&told)); err != nil {
		b.Fatal(err)
	}
	return told
}

func (a *crowdOf) memory(b *testing.B) ends {
	b.Helper()
	return ends{inUse(), a.asked(b, "memory")}
}

func (a *crowdOf) processor(b *testing.B) ends {
	b.Helper()
	return ends{processorTime().Seconds(), a.asked(b, "processor")}
}

func (a *crowdOf) end(b *testing.B) {
	b.Helper()
	a.over()
	if err := a.program.Wait(); err != nil {
		b.Error(err)
	}
}

// serveCrowd is the other process.
func serveCrowd(b *testing.B) {
	b.Helper()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.NewFile(3, "answers"))
	var tokens []joining.Token
	if err := in.Decode(&tokens); err != nil {
		b.Fatal(err)
	}
	dials := make([]func(), len(tokens))
	var joining sync.WaitGroup
	turn := make(chan struct{}, 16)
	for i, token := range tokens {
		joining.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			home := fmt.Sprintf("%s/%d", os.Getenv(crowdTo), i)
			driver, err := fake.Open(fake.Config{Dir: home + "/fake"})
			if err != nil {
				b.Error(err)
				return
			}
			guests := &crowd{Driver: driver}
			for k := range 10 {
				guests.all = append(guests.all, hypervisor.Instance{Name: fmt.Sprintf("web%d-%d", i, k), UUID: fmt.Sprintf("%08d-0000-4000-8000-%012d", i, k), State: hypervisor.Running, Memory: 1024, VCPUs: 1})
			}
			dials[i], _ = joins(b, token, home, guests).open(b, token.Addresses)
		})
	}
	joining.Wait()
	for what := "join"; !b.Failed(); {
		var told float64
		switch what {
		case "dial":
			for _, dial := range dials {
				dial()
			}
		case "memory":
			told = inUse()
		case "processor":
			told = processorTime().Seconds()
		}
		if err := out.Encode(told); err != nil {
			return
		}
		if err := in.Decode(&what); err != nil {
			return // it was enough
		}
	}
}

// jobsOn has jobs do nothing on one node each, and returns how many have ended.
func (c cluster) jobsOn(b *testing.B, names []string) float64 {
	b.Helper()
	const jobs, perCall = 10_000, 100
	client := c.dial(b)
	for k := range jobs / perCall {
		var list []any
		for i := range perCall {
			op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 1e-9, "on_master": false, "on_nodes": []string{names[(k*perCall+i)%len(names)]}, "reason": []any{}}
			list = append(list, []any{op})
		}
		if err := client.Call(b.Context(), "SubmitManyJobs", []any{list}, new(any)); err != nil {
			b.Fatal(err)
		}
	}
	c.delay(b) // behind all of them
	return jobs
}

// jobDone hands a job in, and waits for its end.
func (c cluster) jobDone(b *testing.B, op map[string]any) any {
	b.Helper()
	op["reason"] = []any{}
	client := c.dial(b)
	var id int
	if err := client.Call(b.Context(), "SubmitJob", []any{[]any{op}}, &id); err != nil {
		b.Fatal(err)
	}
	for {
		var rows [][]any
		if err := client.Call(b.Context(), "QueryJobs", []any{[]int{id}, []string{"status", "opresult"}}, &rows); err != nil {
			b.Fatal(err)
		}
		switch rows[0][0] {
		case "success":
			return rows[0][1].([]any)[0]
		case "error", "canceled":
			b.Fatal(rows)
		}
		time.Sleep(time.Millisecond)
	}
}

// tokens has nodes wait for their agents.
func (c cluster) tokens(b *testing.B, n int) []joining.Token {
	b.Helper()
	out := make([]joining.Token, n)
	var list []any
	for i := range out {
		out[i] = joining.Token{Node: fmt.Sprintf("node%04d.example.com", i), Secret: rand.Text()}
		list = append(list, []any{map[string]any{"OP_ID": "OP_NODE_TOKEN", "node_name": out[i].Node, "token_hash": joining.HashOf(out[i].Secret), "reason": []any{}}})
	}
	client := c.dial(b)
	for part := range slices.Chunk(list, 100) {
		if err := client.Call(b.Context(), "SubmitManyJobs", []any{part}, new(any)); err != nil {
			b.Fatal(err)
		}
	}
	told := c.jobDone(b, map[string]any{"OP_ID": "OP_NODE_TOKEN", "node_name": "node-last.example.com", "token_hash": joining.HashOf("x")}).(map[string]any)
	for i := range out {
		out[i].Authority, out[i].Addresses = told["authority"].(string), []string{told["addresses"].([]any)[0].(string)}
	}
	return out
}

// knowsAll waits until each of so many nodes has told its state.
func (c cluster) knowsAll(b *testing.B, nodes int) {
	b.Helper()
	client := c.dial(b)
	for {
		var answer struct {
			Data [][][2]any `json:"data"`
		}
		if err := client.Call(b.Context(), "Query", []any{"node", []string{"name", "mtotal"}, nil}, &answer); err != nil {
			b.Fatal(err)
		}
		known := 0
		for _, row := range answer.Data {
			if strings.HasPrefix(fmt.Sprint(row[0][1]), "node0") && fmt.Sprint(row[1][0]) == "0" {
				known++
			}
		}
		if known == nodes {
			return
		}
		time.Sleep(100 * time.Millisecond) // to ask costs, too
	}
}
