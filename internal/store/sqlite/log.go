package sqlite

import (
	"errors"
	"io"
	"os"
)

// log is the file to which SQLite appends commits, until it begins anew at the file's start. A
// commit that makes a file longer has the file system write down the new length, too, and its
// flush takes twice as long. So the file is made longer for many commits at once, with
// zeros, which no commit begins with: SQLite goes on where the last one ends.
type log struct {
	path string
	size int64 // as it was last seen, or made
}

// aheadSize is by how much the log is made longer: 64 commits of one page.
const aheadSize = 64 * (4096 + 24)

var ahead = make([]byte, aheadSize)

// openLog takes the log that there is after the database was opened for as long as it needs to be: one
// that many kills leave must not grow with each start.
func openLog(database string) (*log, error) {
	info, err := os.Stat(database + "-wal")
	if err != nil {
		return nil, err
	}
	return &log{path: database + "-wal", size: info.Size()}, nil
}

// extend makes the log longer, if commits have done so up to a size. It is to be called in a
// transaction that has written nothing yet: while it goes on nobody else appends.
func (l *log) extend(size int64) error {
	if size <= l.size {
		return nil
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.WriteAt(ahead, end)
		l.size = end + aheadSize
	}
	return errors.Join(err, file.Close())
}
