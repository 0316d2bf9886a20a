package readlease

import (
	"flag"
	"os"
	"testing"
)

// cases is how many cases the properties of this package are tried with, unless -rapid.checks says otherwise: a case costs microseconds, and what
// is rare is not met in the hundred that rapid makes.
const cases = "20000"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", cases); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
