package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/drover-project/drover/internal/fault"
)

// TestOnlyARefusalIsAnsweredAtOnce: what passes is tried again. A controller that stood still in a transaction, a server
// that ends or takes a transaction back, and a connection that broke refuse nobody.
func TestOnlyARefusalIsAnsweredAtOnce(t *testing.T) {
	for _, c := range []struct {
		err    error
		answer fault.Code // empty: it is tried again
	}{
		{&pgconn.PgError{Code: "25P03"}, ""}, // it was idle in a transaction for too long
		{&pgconn.PgError{Code: "57P01"}, ""}, // an administrator ends the session
		{&pgconn.PgError{Code: "57P03"}, ""}, // it starts
		{&pgconn.PgError{Code: "40001"}, ""},
		{&pgconn.PgError{Code: "40P01"}, ""},
		{errors.New("conn closed"), ""},
		{&pgconn.PgError{Code: "53100"}, fault.Exhausted},
		{&pgconn.PgError{Code: "54000"}, fault.TooLarge},
		{&pgconn.PgError{Code: "25006"}, fault.Unavailable},
		{&pgconn.PgError{Code: "25P02"}, fault.Unavailable},
		{&pgconn.PgError{Code: "42501"}, fault.Unavailable},
	} {
		answer, certain := refusal(fmt.Errorf("commit: %w", c.err))
		if fault.CodeOf(answer) != c.answer || certain != (c.answer != "") {
			t.Errorf("%v is answered with %v, %t; want %q", c.err, answer, certain, c.answer)
		}
	}
}
