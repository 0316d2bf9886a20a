package app_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
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

// BenchmarkAgents connects 1,000 agents with 10 pretended instances each to a controller in the same process, over mutual TLS. Memory and processor time are those
// of both ends.
func BenchmarkAgents(b *testing.B) {
	const nodes, instances = 1000, 10
	dir := b.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	c := startWith(b, app.Options{Data: dir, AgentAddress: "127.0.0.1:0", Log: quiet})
	all := make([]*joined, nodes)
	tokens := c.tokens(b, nodes)
	var joining sync.WaitGroup
	turn := make(chan struct{}, 16)
	for i := range all {
		joining.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			home := fmt.Sprintf("%s/agents/%d", dir, i)
			driver, err := fake.Open(fake.Config{Dir: home + "/fake"})
			if err != nil {
				b.Error(err)
				return
			}
			guests := &crowd{Driver: driver}
			for k := range instances {
				guests.all = append(guests.all, hypervisor.Instance{Name: fmt.Sprintf("web%d-%d", i, k), UUID: fmt.Sprintf("%08d-0000-4000-8000-%012d", i, k), State: hypervisor.Running, Memory: 1024, VCPUs: 1})
			}
			all[i] = joins(b, tokens[i], home, guests)
		})
	}
	joining.Wait()
	if b.Failed() {
		b.FailNow()
	}

	stops := make([]func(), nodes)
	dials := make([]func(), nodes)
	for i, j := range all {
		dials[i], stops[i] = j.open(b, tokens[i].Addresses)
	}
	without, used, begun := inUse(), processorTime(), time.Now()
	for _, dial := range dials {
		dial()
	}
	c.knowsAll(b, nodes)
	b.ReportMetric(time.Since(begun).Seconds(), "s-all-known")
	b.ReportMetric((processorTime() - used).Seconds(), "s-cpu-all-known")
	b.ReportMetric(inUse()-without, "MiB-connections")
	b.ReportMetric(inUse(), "MiB-in-all")

	used, begun = processorTime(), time.Now()
	time.Sleep(20 * time.Second)
	b.ReportMetric(100*(processorTime()-used).Seconds()/time.Since(begun).Seconds(), "%-idle")

	names := make([]string, nodes)
	for i := range names {
		names[i] = tokens[i].Node
	}
	used, begun = processorTime(), time.Now()
	c.jobDone(b, map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 1e-9, "on_master": false, "on_nodes": names})
	b.ReportMetric(time.Since(begun).Seconds(), "s-order-to-all")
	b.ReportMetric((processorTime() - used).Seconds(), "s-cpu-order-to-all")

	const jobs, perCall = 10_000, 100
	used, begun = processorTime(), time.Now()
	client := c.dial(b)
	for k := range jobs / perCall {
		var list []any
		for i := range perCall {
			op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 1e-9, "on_master": false, "on_nodes": []string{names[(k*perCall+i)%nodes]}, "reason": []any{}}
			list = append(list, []any{op})
		}
		if err := client.Call(b.Context(), "SubmitManyJobs", []any{list}, new(any)); err != nil {
			b.Fatal(err)
		}
	}
	c.delay(b)
	b.ReportMetric(jobs/time.Since(begun).Seconds(), "jobs/s")
	b.ReportMetric((processorTime()-used).Seconds()*1e6/jobs, "us-cpu/job")

	if err := c.stop(); err != nil {
		b.Fatal(err)
	}
	used, begun = processorTime(), time.Now()
	c = startWith(b, app.Options{Data: dir, AgentAddress: c.ready.AgentAddress, Log: quiet})
	c.knowsAll(b, nodes)
	b.ReportMetric(time.Since(begun).Seconds(), "s-taken-over")
	b.ReportMetric((processorTime() - used).Seconds(), "s-cpu-taken-over")
	b.ReportMetric(0, "ns/op")
	for _, stop := range stops {
		stop()
	}
	if err := c.stop(); err != nil {
		b.Error(err)
	}
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
