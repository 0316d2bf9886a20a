package postgres

import (
	"context"
	"encoding/binary"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/drover-project/drover/internal/store/groupcommit"
)

// What a commit says to the server is encoded here and not by pgx: it is most of
// what a controller writes, and pgx makes each value of an array by itself, in a
// buffer that grows as it goes.

// statement names one that each connection of a writer prepares.
type statement int

// The statements of a commit.
const (
	putObjects statement = iota
	deleteObjects
	addToFeed
	trimFeed
	moveHead
	notify
	putLease
	commitAll
)

// statements are their texts.
var statements = [...]string{
	putObjects: "INSERT INTO object (kind, place, revision, at, value) " +
		"SELECT k, p, r, a, v FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) AS t (k, p, r, a, v) " +
		"ON CONFLICT (kind, place) DO UPDATE SET revision = excluded.revision, at = excluded.at, value = excluded.value",
	deleteObjects: "DELETE FROM object USING unnest($1::text[], $2::text[]) AS gone (kind, place) " +
		"WHERE object.kind = gone.kind AND object.place = gone.place",
	addToFeed: "INSERT INTO feed (last, first, entries) VALUES ($1, $2, $3)",
	trimFeed:  "DELETE FROM feed WHERE last <= $1",
	moveHead:  "UPDATE head SET revision = $1, trimmed = $2",
	notify:    "SELECT pg_notify($1, $2)",
	putLease: "INSERT INTO lease (name, holder, epoch, expires) VALUES ($1, $2, $3, $4) " +
		"ON CONFLICT (name) DO UPDATE SET holder = $2, epoch = $3, expires = $4",
	commitAll: "COMMIT",
}

func (s statement) name() string { return "drover_" + strconv.Itoa(int(s)) }

// prepare makes the statements known to a connection.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	for s := range statements {
		if _, err := conn.PgConn().Prepare(ctx, statement(s).name(), statements[s], nil); err != nil {
			return err
		}
	}
	return nil
}

// pipeline sends statements without waiting for their answers.
type pipeline struct{ *pgconn.Pipeline }

// inBinary says that all parameters are in binary form.
var inBinary = []int16{pgx.BinaryFormatCode}

func (p pipeline) send(s statement, params ...[]byte) {
	p.SendQueryPrepared(s.name(), params, inBinary, nil)
}

// sendText sends a statement that is used seldom.
func (p pipeline) sendText(sql string, params ...[]byte) {
	p.SendQueryParams(sql, params, nil, inBinary, nil)
}

// end sends what is not sent yet and waits for all answers.
func (p pipeline) end() error {
	if err := p.Sync(); err != nil {
		_ = p.Close() // what it says follows from that
		return err
	}
	return p.Close()
}

func bigint[T ~int64](n T) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// column is a value of each row: a parameter that is an array of one dimension in
// the binary form of PostgreSQL (array_send in its arrayfuncs.c): dimensions, whether there
// are NULLs, type, length and first index, then each value behind its length.
type column []byte

const (
	columnHeader = 5 * 4
	valueHeader  = 4
)

// newColumn returns one that has room for so many rows, whose values have so many bytes together.
func newColumn(oid uint32, rows, bytes int) column {
	c := make(column, 0, columnHeader+rows*valueHeader+bytes)
	for _, n := range [...]uint32{1, 0, oid, uint32(rows), 1} {
		c = binary.BigEndian.AppendUint32(c, n)
	}
	return c
}

func appendValue[T string | []byte](c *column, v T) {
	*c = append(binary.BigEndian.AppendUint32(*c, uint32(len(v))), v...)
}

func (c *column) appendInt(n int64) {
	*c = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(*c, 8), uint64(n))
}

// write sends what puts and deletes all objects, with one statement each.
func (p pipeline) write(writes []groupcommit.Write) {
	const maxPlace, number = 16, 8 // a place that is longer makes its column grow
	rows, bytes := [2]int{}, 0
	for i := range writes {
		rows[of(&writes[i])]++
		bytes += len(writes[i].Value)
	}
	var kinds, places [2]column
	for i, n := range rows {
		kinds[i], places[i] = newColumn(pgtype.TextOID, n, n*maxPlace), newColumn(pgtype.TextOID, n, n*maxPlace)
	}
	revisions, ats := newColumn(pgtype.Int8OID, rows[put], rows[put]*number), newColumn(pgtype.Int8OID, rows[put], rows[put]*number)
	values := newColumn(pgtype.ByteaOID, rows[put], bytes)
	for i := range writes {
		o := &writes[i]
		appendValue(&kinds[of(o)], string(o.Key.Kind))
		appendValue(&places[of(o)], groupcommit.Place(o.Key.ID))
		if of(o) == put {
			revisions.appendInt(int64(o.Revision))
			ats.appendInt(o.At)
			appendValue(&values, o.Value)
		}
	}
	if rows[put] > 0 {
		p.send(putObjects, kinds[put], places[put], revisions, ats, values)
	}
	if rows[gone] > 0 {
		p.send(deleteObjects, kinds[gone], places[gone])
	}
}

// What a write does with its object.
const (
	put = iota
	gone
)

func of(o *groupcommit.Write) int {
	if o.Deleted {
		return gone
	}
	return put
}
