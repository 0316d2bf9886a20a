package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

func TestCodeOf(t *testing.T) {
	coded := fault.New(fault.NotFound, "instance %q not found", "web1")
	for _, tc := range []struct {
		name string
		err  error
		want fault.Code
	}{
		{"nil", nil, ""},
		{"plain", io.EOF, fault.Internal},
		{"coded", coded, fault.NotFound},
		{"wrapped", fmt.Errorf("while starting: %w", coded), fault.NotFound},
	} {
		if got := fault.CodeOf(tc.err); got != tc.want {
			t.Errorf("%s: CodeOf = %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestErrorShowsHintAndKeepsCause(t *testing.T) {
	err := fault.New(fault.Environment, "cannot read the users file: %w", io.ErrUnexpectedEOF).
		At("users").WithHint("create %s", "rapi/users")
	if got, want := err.Error(), "cannot read the users file: unexpected EOF (create rapi/users)"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if err.Field != "users" {
		t.Errorf("Field = %q", err.Field)
	}
}
