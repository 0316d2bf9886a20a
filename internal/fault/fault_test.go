package fault_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

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

func TestErrorsAreSmallWhateverTheyQuote(t *testing.T) {
	long := strings.Repeat("<\u00e9", 5<<20)
	err := fault.New(fault.Invalid, "bad key %q", long).At("ndparams."+long).WithHint("known are %s", long)
	for what, text := range map[string]string{"message": err.Message, "field": err.Field, "hint": err.Hint} {
		if len(text) > fault.MaxText+len("...") || !strings.HasSuffix(text, "...") || !utf8.ValidString(text) {
			t.Errorf("the %s has %d bytes: %.40q", what, len(text), text)
		}
	}
	if short := "as it is"; fault.Clip(short, len(short)) != short {
		t.Error("a text within the limit was changed")
	}
}
