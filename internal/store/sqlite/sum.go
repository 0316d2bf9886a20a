package sqlite

import (
	"errors"
	"hash/crc32"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// SQLite checks its log and not its database: what a disk changes there is read
// as if it had been written. So each row carries a sum of what is in it.

// noSum is that of rows from before there were sums.
const noSum = -1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum of numbers, a long text, and short ones.
func sum(numbers [2]int64, long []byte, short ...string) int64 {
	var buf [256]byte
	b := strconv.AppendInt(buf[:0], numbers[0], 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, numbers[1], 10)
	for _, text := range short {
		b = append(append(b, 0), text...)
	}
	return int64(crc32.Update(crc32.Checksum(append(b, 0), castagnoli), castagnoli, long))
}

func objectSum(kind, place string, revision, at int64, value []byte) int64 {
	return sum([2]int64{revision, at}, value, kind, place)
}

func rowSum(last, first store.Revision, entries string) int64 {
	return sum([2]int64{int64(last), int64(first)}, []byte(entries))
}

func leaseSum(l store.Lease) int64 {
	return sum([2]int64{l.Epoch, l.Expires.UnixMicro()}, nil, l.Name, l.Holder)
}

// damaged is the error of a row that is not what was written.
func damaged(what string, id any) error {
	return fault.New(fault.WrongState, "the store is damaged: %s %v is not what was written", what, id).
		WithHint("drover store check tells what else is; restore a backup")
}

// damagedFile is the error of a file that SQLite cannot read as a database.
func damagedFile(err error) error {
	return fault.New(fault.WrongState, "the store is damaged: %w", err).WithHint("drover store check tells what else is; restore a backup")
}

// malformed reports whether a failure tells that the file is not what SQLite wrote.
func malformed(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_CORRUPT || e.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

// checkRow compares a row of the feed with its sum.
func checkRow(last, first store.Revision, entries string, has int64) error {
	if has == noSum || has == rowSum(last, first, entries) {
		return nil
	}
	return damaged("the feed at revision", last)
}

// checkObject compares a row with its sum.
func checkObject(o *store.Object, place string, has int64) error {
	if has == noSum || has == objectSum(string(o.Kind), place, int64(o.Revision), o.At, o.Value) {
		return nil
	}
	return damaged(string(o.Kind), o.ID)
}
