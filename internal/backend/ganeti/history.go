package ganeti

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// Every is how often the cluster is to be asked for what it does not tell.
func (c *Cluster) Every() time.Duration { return c.cfg.Every }

// Name asks what the cluster calls itself.
func (c *Cluster) Name(ctx context.Context) (string, error) {
	var info struct {
		Name string `json:"name"`
	}
	err := c.do(ctx, request{method: http.MethodGet, path: "/2/info"}, &info)
	return info.Name, err
}

// Systems asks for the names of the operating systems with their variants, as debian+minimal.
func (c *Cluster) Systems(ctx context.Context) ([]string, error) {
	var names []string
	err := c.do(ctx, request{method: http.MethodGet, path: "/2/os"}, &names)
	return names, err
}

// Jobs asks for the ids of all jobs that are not archived.
func (c *Cluster) Jobs(ctx context.Context) ([]job.ID, error) {
	type named struct {
		ID number `json:"id"`
	}
	var ids []job.ID
	err := each(ctx, c, request{method: http.MethodGet, path: "/2/jobs"}, func(j named) error {
		ids = append(ids, job.ID(j.ID))
		return nil
	})
	return ids, err
}

// wholeJob is all that a cluster tells of a job.
type wholeJob struct {
	remoteJob
	Ops   []map[string]any      `json:"ops"`
	Logs  [][][]json.RawMessage `json:"oplog"`
	Ended *[2]int64             `json:"end_ts"`
}

// Job asks for a job with its opcodes, of which it takes whatever the cluster
// knows: it may know others than this program. The errors are those of events.Remote.
func (c *Cluster) Job(ctx context.Context, id job.ID) (*job.Job, error) {
	var told wholeJob
	if err := c.do(ctx, request{method: http.MethodGet, path: "/2/jobs/" + id.String(), limit: maxJob}, &told); err != nil {
		return nil, lasting(err)
	}
	if len(told.Statuses) != len(told.Ops) {
		return nil, fault.New(fault.Invalid, "cluster %s tells of job %d %d opcodes and %d statuses", c.cfg.URL, id, len(told.Ops), len(told.Statuses))
	}
	j := &job.Job{ID: id, Ops: make([]job.Op, len(told.Ops))}
	if told.Ended != nil {
		j.Ended = job.Time(told.Ended[0]*1e6 + told.Ended[1])
	}
	for i, params := range told.Ops {
		op := &j.Ops[i]
		op.Input = &opcode.Opcode{ID: fmt.Sprint(params["OP_ID"]), Params: params}
		op.Input.DryRun, _ = params["dry_run"].(bool)
		if op.Status = told.Statuses[i]; strings.HasPrefix(string(op.Status), "cancelled") {
			op.Status = job.Canceled
		}
		if i < len(told.Results) {
			op.Result = told.Results[i]
		}
		if i < len(told.Logs) && len(told.Logs[i]) > 0 {
			const parts = 4 // serial, time, type, what
			if last := told.Logs[i][len(told.Logs[i])-1]; len(last) == parts {
				op.Log = []job.LogEntry{{Type: job.LogMessage, Payload: last[parts-1]}}
			}
		}
	}
	return j, nil
}

// Machine asks for what messages tell of an instance.
func (c *Cluster) Machine(ctx context.Context, instance string) (*events.Machine, error) {
	var told struct {
		Names     []*string      `json:"nic.names"`
		UUIDs     []string       `json:"nic.uuids"`
		MACs      []string       `json:"nic.macs"`
		IPs       []*string      `json:"nic.ips"`
		Networks  []*string      `json:"nic.networks.names"`
		Sizes     []int64        `json:"disk.sizes"`
		DiskNames []*string      `json:"disk.names"`
		DiskUUIDs []string       `json:"disk.uuids"`
		HVParams  map[string]any `json:"hvparams"`
		Tags      []string       `json:"tags"`
	}
	err := c.do(ctx, request{method: http.MethodGet, path: "/2/instances/" + url.PathEscape(instance)}, &told)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, lasting(err)
	}
	m := &events.Machine{NICs: make([]events.NIC, len(told.MACs)), Disks: make([]events.Disk, len(told.Sizes)), HVParams: told.HVParams}
	for i, mac := range told.MACs {
		name := at(told.Names, told.UUIDs, i)
		m.NICs[i] = events.NIC{Name: name, MAC: mac, IP: at(told.IPs, nil, i), Network: at(told.Networks, nil, i), Firewall: events.Firewall(name, told.Tags)}
	}
	for i, size := range told.Sizes {
		m.Disks[i] = events.Disk{Name: at(told.DiskNames, told.DiskUUIDs, i), Size: size}
	}
	return m, nil
}

// at is an entry of a list that may be short or have none there; then it is that
// of the other list.
func at(list []*string, other []string, i int) string {
	if i < len(list) && list[i] != nil {
		return *list[i]
	}
	if i < len(other) {
		return other[i]
	}
	return ""
}
