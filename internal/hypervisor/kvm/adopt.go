package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
)

// adoptTime is the usual Config.adopt.
const adoptTime = 10 * time.Second

// adopt finds the process of a machine that another driver started.
func (m *machine) adopt(ctx context.Context) {
	err := m.unwatched()
	if err == nil { // there is none
		return
	}
	log := m.driver.cfg.Log.With("instance", m.rec.Name, "uuid", m.uuid)
	if !errors.Is(err, errHeld) {
		log.Warn("whether the machine runs cannot be told", "error", err)
		return
	}
	pid, err := processThatHolds(filepath.Join(m.dir, heldFile), heldFD)
	if err != nil {
		log.Warn("the machine has a process that cannot be found", "error", err)
		return
	}
	p := m.newProcess(pid)
	p.tpm = m.adoptTPM()
	if err := awaitEnd(pid, p.hasGone); err != nil {
		log.Warn("the end of the machine's process cannot be watched", "process", pid, "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.driver.cfg.adopt)
	defer cancel()
	if err = p.connect(ctx); err == nil {
		err = p.settle(ctx)
	}
	if err != nil {
		log.Warn("the machine has a process that does not answer; it is left alone, and asked again", "process", pid, "error", err)
	}
	select {
	case <-p.gone: // it was ended
	default:
		m.have(p)
	}
}

// settle finds out what a process that another driver started does. One whose guest was not let go has not been started, and is ended.
func (p *process) settle(ctx context.Context) error {
	var status struct{ Status string }
	if err := p.do(ctx, "query-status", nil, &status); err != nil {
		return err
	}
	if spec := p.machine.record().Spec; status.Status == "prelaunch" && (spec == nil || !spec.StartPaused) {
		p.machine.driver.cfg.Log.Warn("the machine was being started when its agent ended; it has not run, and is ended",
			"instance", p.machine.record().Name, "uuid", p.machine.uuid, "process", p.pid)
		return p.end(ctx)
	}
	if p.machine.record().Snapshot != "" {
		if err := p.settleSnapshot(ctx, status.Status); err != nil {
			return err
		}
	}
	return p.refresh(ctx)
}

// settleSnapshot has a guest that stood still for a snapshot go on, and ends what copied for a driver that is no more. The snapshot is kept: who had it made
// goes on.
func (p *process) settleSnapshot(ctx context.Context, status string) error {
	if status == "paused" {
		if err := p.do(ctx, "cont", nil, nil); err != nil {
			return err
		}
		if err := p.dropSnapshot(ctx); err != nil { // it is of no one moment
			return err
		}
	}
	return p.endCopies(ctx, p.layers())
}

// letGo ends the connections and leaves the process alone.
func (m *machine) letGo() {
	p := m.running()
	if p == nil {
		return
	}
	p.mu.Lock()
	p.let = true
	p.mu.Unlock()
	p.disconnect()
}

// awaitEnd has somebody told when a process ends that is no child.
func awaitEnd(pid int, gone func()) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	go func() {
		defer func() { _ = unix.Close(fd) }()
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		gone()
	}()
	return nil
}

// processThatHolds finds the process that has a file open, by a descriptor that is always the same.
func processThatHolds(path string, descriptor int) (int, error) {
	var wanted syscall.Stat_t
	if err := syscall.Stat(path, &wanted); err != nil {
		return 0, err
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		var is syscall.Stat_t
		if err := syscall.Stat(fmt.Sprintf("/proc/%d/fd/%d", pid, descriptor), &is); err == nil && is.Ino == wanted.Ino && is.Dev == wanted.Dev {
			return pid, nil
		}
	}
	return 0, fault.New(fault.NotFound, "no process has %s open", path)
}
