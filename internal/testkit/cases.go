package testkit

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Cases is the TestMain of a package whose properties are to be tried with so many
// cases: where a case costs microseconds, what is rare is not met in the hundred that
// rapid makes. -short makes it a tenth, and -rapid.checks as many as it says.
func Cases(m *testing.M, cases int) {
	const option = "rapid.checks"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == option })
	if testing.Short() {
		cases /= 10
	}
	if !given {
		if err := flag.Set(option, strconv.Itoa(cases)); err != nil {
			panic(err) // the package has no property
		}
	}
	os.Exit(m.Run())
}
