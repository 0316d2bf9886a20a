package app

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/store/image"
)

// backupDir is the directory in which this machine keeps backups of the store. What is in it is looked at anew when it has changed.
type backupDir struct {
	path string // empty for none

	mu     sync.Mutex
	told   *health.Backups
	looked time.Time
	// changed is when the directory had changed last when it was looked at.
	changed time.Time
}

const (
	// backupsLook is for how long a look at a directory that has not changed counts: its files may have.
	backupsLook = time.Minute
	// clockTick is how close two changes of a directory may be that cannot be told apart by when they were.
	clockTick = time.Second
)

// look tells what is in the directory; nil where none is named.
func (b *backupDir) look(now time.Time) *health.Backups {
	if b.path == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	info, err := os.Stat(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &health.Backups{Dir: b.path, Missing: true}
	}
	if err != nil {
		return &health.Backups{Dir: b.path, Trouble: err.Error()}
	}
	fresh := b.told != nil && now.Sub(b.looked) < backupsLook
	if fresh && info.ModTime().Equal(b.changed) && b.looked.Sub(b.changed) > clockTick {
		return b.told
	}
	b.looked, b.changed = now, info.ModTime()
	b.told = &health.Backups{Dir: b.path}
	newest, count, err := image.Newest(b.path)
	if err != nil {
		b.told.Trouble = err.Error()
	} else if count > 0 {
		b.told.Count, b.told.Newest = count, newest.Made
		if file, err := os.Stat(newest.Path); err == nil {
			b.told.Bytes = uint64(file.Size())
		}
	}
	return b.told
}
