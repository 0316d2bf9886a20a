package mond

import (
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// Report is what one collector tells, in the form of the reference's monitoring
// agent (design-monitoring-agent, "Format of the report").
type Report struct {
	Name          string  `json:"name"`
	Version       string  `json:"version"`
	FormatVersion int     `json:"format_version"`
	Timestamp     int64   `json:"timestamp"` // nanoseconds since the epoch
	Category      *string `json:"category"`
	Kind          int     `json:"kind"`
	Data          any     `json:"data"`
}

// The kind of collectors that judge what they see, and the version of those
// that are built in.
const (
	kindStatus = 1
	builtin    = "B"
)

// Code says how bad something is.
type Code int

// The codes of the reference; 1 is for what is being mended by itself, which
// nothing here is.
const (
	OK      Code = 0
	Unknown Code = 2
	Bad     Code = 4
)

// Status is a judgement, with words where it is not OK.
type Status struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// InstanceStatus tells of one instance what it should do, what it does, and why
// it last changed.
type InstanceStatus struct {
	Name        string       `json:"name"`
	UUID        string       `json:"uuid"`
	AdminState  string       `json:"adminState"`
	ActualState string       `json:"actualState"`
	Uptime      *string      `json:"uptime"` // null where the hypervisor does not tell
	MTime       float64      `json:"mtime"`  // seconds
	StateReason reason.Trail `json:"state_reason"`
	Status      Status       `json:"status"`
}

// instanceData is the data of the collector of instances.
type instanceData struct {
	Instances []InstanceStatus `json:"instances"`
	Status    Status           `json:"status"`
}

// judgeInstance compares what an instance should do with what it does. seen is
// nil where the node knows nothing of it.
func judgeInstance(i *cluster.Instance, seen *hypervisor.Instance, why reason.Trail) InstanceStatus {
	if why == nil {
		why = reason.Trail{}
	}
	actual := actualState(i, seen)
	return InstanceStatus{
		Name: i.Name, UUID: i.UUID, AdminState: i.AdminState, ActualState: actual,
		MTime: float64(i.MTime) / float64(time.Second), StateReason: why, Status: judge(i.AdminState, actual),
	}
}

// The states that the reference knows and the hypervisors here can be in.
const (
	stateRunning  = "running"
	statePaused   = "paused"
	stateShutdown = "shutdown"
	stateUnknown  = "unknown"
)

func actualState(i *cluster.Instance, seen *hypervisor.Instance) string {
	switch {
	case seen != nil && seen.State == hypervisor.Running:
		return stateRunning
	case seen != nil && seen.State == hypervisor.Paused:
		return statePaused
	case seen != nil || i.AdminState == cluster.AdminDown:
		return stateShutdown
	}
	return stateUnknown
}

// judge is the reference's table: a wish and a state make a status.
func judge(admin, actual string) Status {
	switch admin {
	case cluster.AdminUp:
		if actual != stateRunning {
			return Status{Bad, "The instance is not running as it should be"}
		}
	case cluster.AdminDown:
		if actual != stateShutdown {
			return Status{Bad, "The instance is not stopped as it should be"}
		}
	default:
		return Status{Unknown, "The instance is marked as offline"}
	}
	return Status{}
}

// summarize is as bad as the worst, and says all there is to say.
func summarize(all []InstanceStatus) Status {
	out := Status{}
	var words []string
	for _, i := range all {
		out.Code = max(out.Code, i.Status.Code)
		if i.Status.Message != "" {
			words = append(words, i.Status.Message)
		}
	}
	out.Message = strings.Join(words, "\n")
	return out
}
