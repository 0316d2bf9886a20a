package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/query/items"
)

// The targets of lists of 10,000 instances: to the end with all fields, to the
// first byte, and with a filter; and the part of its rate at which submitting
// goes on beside them.
const (
	wholeTarget    = 1500 * time.Millisecond
	firstTarget    = 50 * time.Millisecond
	filteredTarget = 40 * time.Millisecond
	besideTarget   = 0.9
)

// A query beside so many jobs a second may take so many times what it takes beside none.
const (
	jobsBeside      = 5000
	busyQueryTarget = 1.5
)

// ofQuery are the measurements of lists.
var ofQuery = []measurement{(*runner).fill, (*runner).lists, (*runner).besideLists, (*runner).besideJobs}

// fill creates instances until there are as many as asked for.
func (r *runner) fill(ctx context.Context) error {
	c, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	var there [][]any
	if err := c.call(ctx, "QueryInstances", &there, []string{}, []string{"name"}, false); err != nil {
		return err
	}
	for n := len(there); n < r.instances; n += batch {
		ops := make([]any, min(batch, r.instances-n))
		for i := range ops {
			ops[i] = map[string]any{
				"OP_ID": "OP_INSTANCE_CREATE", "instance_name": fmt.Sprintf("bench%d.drover.example", n+i), "mode": "create",
				"disk_template": "file", "os_type": "noop", "disks": []any{map[string]any{"size": 1024}}, "nics": []any{map[string]any{}},
				"beparams": map[string]any{"maxmem": 16, "minmem": 16, "vcpus": 1 + (n+i)%4}, "tags": []any{"bench", fmt.Sprint("rack:", (n+i)%50)},
				"start": false, "name_check": false, "ip_check": false, "reason": c.op["reason"],
			}
		}
		ids, err := c.submitAll(ctx, ops)
		if err != nil {
			return err
		}
		if err := c.succeeded(ctx, ids...); err != nil {
			return err
		}
	}
	return nil
}

// listing is a query of instances, as it is sent.
type listing []byte

func newListing(fields []string, filter any) (listing, error) {
	text, err := json.Marshal(map[string]any{"method": "Query", "args": []any{"instance", fields, filter}})
	return append(text, endOfMessage), err
}

// endOfMessage is the byte that ends a message of LUXI.
const endOfMessage = 3

// read sends the query and reads the answer, without looking at it: that is
// the client's affair, not the controller's. It returns how long the first byte
// took, how long all of it, and its length.
func (l listing) read(ctx context.Context, conn net.Conn) (first, whole time.Duration, size int, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends the reads below
	defer stop()
	start := time.Now()
	if _, err := conn.Write(l); err != nil {
		return 0, 0, 0, fault.New(fault.Unavailable, "the controller does not take a query: %w", err)
	}
	buf, head := make([]byte, 1<<16), []byte(nil)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return 0, 0, 0, fault.New(fault.Unavailable, "the controller does not answer a query: %w", err)
		}
		if size == 0 {
			first, head = time.Since(start), bytes.Clone(buf[:min(n, 200)])
		}
		size += n
		if buf[n-1] == endOfMessage {
			break
		}
	}
	if !bytes.HasPrefix(head, []byte(`{"success":true`)) {
		return 0, 0, 0, fault.New(fault.Failed, "the controller refused a query: %s", head)
	}
	return first, time.Since(start), size, nil
}

// allFields asks for all that is known of all instances.
func allFields() (listing, int, error) {
	defs, err := items.All.Fields("instance", nil)
	if err != nil {
		return nil, 0, err
	}
	names := make([]string, len(defs))
	for i, d := range defs {
		names[i] = d.Name
	}
	l, err := newListing(names, nil)
	return l, len(names), err
}

// someFields asks for what a list shows, of the instances that a filter lets through.
func someFields(filter any) (listing, error) {
	return newListing([]string{"name", "os", "pnode", "admin_state", "be/maxmem", "be/vcpus", "tags", "disk.sizes"}, filter)
}

// lists measures lists of all instances.
func (r *runner) lists(ctx context.Context) error {
	all, width, err := allFields()
	if err != nil {
		return err
	}
	filtered, err := someFields([]any{"&", []any{">=", "be/vcpus", 3}, []any{"=[]", "tags", "rack:7"}})
	if err != nil {
		return err
	}
	scanned, err := someFields([]any{"&", []any{">=", "be/vcpus", 3}, []any{"=", "admin_state", "down"}})
	if err != nil {
		return err
	}
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for _, list := range []struct {
		name         string
		query        listing
		first, whole time.Duration // the targets
	}{
		{fmt.Sprintf("all %d fields of all instances", width), all, firstTarget, wholeTarget},
		{"8 fields of instances, a filter that an index answers", filtered, filteredTarget, filteredTarget},
		{"8 fields of instances, a filter that looks at all", scanned, filteredTarget, filteredTarget},
	} {
		var firsts, wholes []time.Duration
		size := 0
		for range max(r.rounds, 3) {
			first, whole, n, err := list.query.read(ctx, conn)
			if err != nil {
				return err
			}
			firsts, wholes, size = append(firsts, first), append(wholes, whole), n
		}
		r.within(list.name+", first byte, median", firsts, list.first)
		r.within(fmt.Sprintf("%s, all %.1f MB, median", list.name, float64(size)/1e6), wholes, list.whole)
	}
	return nil
}

func (r *runner) connect(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", r.LUXI)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "cannot connect to the controller: %w", err)
	}
	return conn, nil
}

// within adds a figure for the median of times, with a target in time.
func (r *runner) within(name string, took []time.Duration, target time.Duration) {
	slices.Sort(took)
	median := took[len(took)/2]
	r.add(Figure{Name: name, Value: milliseconds(median), Unit: "ms", Fdatasyncs: float64(median) / float64(r.unit),
		Target: fmt.Sprintf("< %v", target), Met: median < target})
}

// besideLists measures submissions by one client, in turns alone and while
// another client reads one list after the other.
func (r *runner) besideLists(ctx context.Context) error {
	const turns, perRound = 3, 100
	var alone, beside time.Duration
	for range turns {
		took, err := r.submitting(ctx, perRound*r.rounds/turns)
		if err != nil {
			return err
		}
		alone += took
		stop, err := r.keepListing(ctx)
		if err != nil {
			return err
		}
		took, err = r.submitting(ctx, perRound*r.rounds/turns)
		if stopErr := stop(); err == nil {
			err = stopErr
		}
		if err != nil {
			return err
		}
		beside += took
	}
	n := perRound * r.rounds / turns * turns
	before, during := float64(n)/alone.Seconds(), float64(n)/beside.Seconds()
	r.add(Figure{Name: fmt.Sprintf("submissions over LUXI, one client, %d jobs", n), Value: before, Unit: "1/s", Fdatasyncs: before * r.unit.Seconds(), Target: "-", Met: true})
	r.add(Figure{Name: "the same while lists of all fields are read", Value: during, Unit: "1/s", Fdatasyncs: during * r.unit.Seconds(),
		Target: fmt.Sprintf(">= %.0f %% of it", besideTarget*100), Met: during >= besideTarget*before})
	return nil
}

// submitting measures how long n submissions take, one after the other.
func (r *runner) submitting(ctx context.Context, n int) (time.Duration, error) {
	c, err := r.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer c.close()
	start := time.Now()
	last := int64(0)
	for range n {
		if last, err = c.submit(ctx); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return took, c.succeeded(ctx, last)
}

// keepListing reads lists of all fields until it is stopped.
func (r *runner) keepListing(ctx context.Context) (stop func() error, err error) {
	all, _, err := allFields()
	if err != nil {
		return nil, err
	}
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	listing, cancel := context.WithCancel(ctx)
	go func() {
		var err error
		for err == nil && listing.Err() == nil {
			_, _, _, err = all.read(listing, conn)
		}
		if listing.Err() != nil {
			err = ctx.Err() // that it was stopped is no failure
		}
		ended <- err
	}()
	return func() error {
		cancel()
		err := <-ended
		_ = conn.Close() // there is nothing left to lose
		return err
	}, nil
}

// besideJobs measures a query that looks at all instances, in turns beside no jobs and while another client has
// jobs run that do nothing.
func (r *runner) besideJobs(ctx context.Context) error {
	scan, err := newListing([]string{"name", "os", "be/vcpus"}, []any{"&", []any{">=", "be/vcpus", 3}, []any{"=", "admin_state", "nothing"}})
	if err != nil {
		return err
	}
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	const turns, perRound = 5, 50 * time.Millisecond
	var idle, busy []time.Duration
	var rate float64
	for range turns {
		if idle, err = scan.repeat(ctx, conn, idle, perRound*time.Duration(r.rounds)); err != nil {
			return err
		}
		stop := r.keepSubmitting(ctx, jobsBeside)
		busy, err = scan.repeat(ctx, conn, busy, perRound*time.Duration(r.rounds))
		made, stopErr := stop()
		if err = cmp.Or(err, stopErr); err != nil {
			return err
		}
		rate += made / turns
	}
	slices.Sort(idle)
	slices.Sort(busy)
	alone, beside := idle[len(idle)/2], busy[len(busy)/2]
	r.add(Figure{Name: "a query that looks at all instances, median", Value: milliseconds(alone), Unit: "ms", Fdatasyncs: float64(alone) / float64(r.unit), Target: "-", Met: true})
	r.add(Figure{Name: fmt.Sprintf("the same beside %.0f no-op jobs a second", rate), Value: milliseconds(beside), Unit: "ms", Fdatasyncs: float64(beside) / float64(r.unit),
		Target: fmt.Sprintf("<= %.1f times, of %d/s", busyQueryTarget, jobsBeside), Met: float64(beside) <= busyQueryTarget*float64(alone)})
	return nil
}

// repeat reads the answer to a query for so long, at least once, and adds how long each took.
func (l listing) repeat(ctx context.Context, conn net.Conn, took []time.Duration, lasting time.Duration) ([]time.Duration, error) {
	for begun, first := time.Now(), true; first || time.Since(begun) < lasting; first = false {
		_, whole, _, err := l.read(ctx, conn)
		if err != nil {
			return nil, err
		}
		took = append(took, whole)
	}
	return took, nil
}

// keepSubmitting submits so many jobs a second, as far as they are taken, until it is stopped; stop tells how many there were a second.
func (r *runner) keepSubmitting(ctx context.Context, perSecond int) (stop func() (float64, error)) {
	const atOnce = 100
	begun, made := time.Now(), 0
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		c, err := r.dial(ctx)
		if err != nil {
			ended <- err
			return
		}
		defer c.close()
		pace := time.NewTicker(time.Second * atOnce / time.Duration(perSecond))
		defer pace.Stop()
		var last []int64
		for {
			select {
			case <-over:
				ended <- c.succeeded(ctx, last...)
				return
			case <-pace.C:
			}
			if last, err = c.submitMany(ctx, atOnce); err != nil {
				ended <- err
				return
			}
			made += atOnce
		}
	}()
	return func() (float64, error) {
		close(over)
		err := <-ended
		return float64(made) / time.Since(begun).Seconds(), err
	}
}
