// Package testkit is what the tests of many packages need and would otherwise
// write again: where the recorded data lies, and a UUID to name things by. The rig
// that most of them stand on is testkit/controller, a store of each kind
// testkit/stores; a store that fails is store/faultstore.
//
// Invariants:
//   - It imports nothing of the project, so that every package's tests can use it.
//   - Data that should be there and is not fails a test. Data that this
//     repository does not carry skips it, visibly, unless $DROVER_SKIP_NOTHING
//     says that nothing may be skipped.
package testkit

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module is the name of the project's module, by which its root is known.
const module = "github.com/drover-project/drover"

// Root returns the root directory of the repository: the directory with the
// project's go.mod at or above the one that the test runs in. A module of its
// own within the repository is passed over.
func Root(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if declares(t, filepath.Join(dir, "go.mod")) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod of %s at or above %s", module, start)
		}
	}
}

// declares tells whether a go.mod is the project's.
func declares(t testing.TB, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name) == module
		}
	}
	return false
}

// Conformance returns the path of a file or directory of the conformance data,
// and of its root where no element is given. The data is that of the repository
// (testdata/conformance, whose README tells its origin and form) or of the
// directory that $DROVER_CONFORMANCE names.
func Conformance(t testing.TB, elem ...string) string {
	t.Helper()
	dir := os.Getenv("DROVER_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join(Root(t), "testdata", "conformance")
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("conformance data: %v", err)
	}
	return path
}

// ReadConformance returns the content of a file of the conformance data.
func ReadConformance(t testing.TB, elem ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(Conformance(t, elem...))
	if err != nil {
		t.Fatalf("conformance data: %v", err)
	}
	return data
}

// DecodeConformance decodes a JSON file of the conformance data.
func DecodeConformance(t testing.TB, into any, elem ...string) {
	t.Helper()
	if err := json.Unmarshal(ReadConformance(t, elem...), into); err != nil {
		t.Fatalf("%s: %v", filepath.Join(elem...), err)
	}
}

// FuelLibrary returns a path below the deployment tasks of Fuel:
// $DROVER_FUEL_LIBRARY, by default ../shared/data/fuel-library beside the
// repository. Without them the test is skipped.
func FuelLibrary(t testing.TB, elem ...string) string {
	t.Helper()
	return beside(t, "DROVER_FUEL_LIBRARY", "fuel-library", elem)
}

// FuelNodes returns a path below the recorded states of Fuel's nodes:
// $DROVER_FUEL_NODES, by default ../shared/data/fuel-nodes beside the
// repository. Without them the test is skipped.
func FuelNodes(t testing.TB, elem ...string) string {
	t.Helper()
	return beside(t, "DROVER_FUEL_NODES", "fuel-nodes", elem)
}

// Missingf skips a test for want of something that not every machine has. Where
// $DROVER_SKIP_NOTHING is set, as .ci/run does, the test fails instead.
func Missingf(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("DROVER_SKIP_NOTHING") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// beside returns a path below data that is not part of the repository. Where
// the data as a whole is missing, the test is skipped; where it is there, a
// missing file is a failure.
func beside(t testing.TB, variable, name string, elem []string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		dir = filepath.Join(Root(t), "..", "shared", "data", name)
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			Missingf(t, "%s is not there; set $%s to where it is", dir, variable)
		}
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("$%s: %v", variable, err)
	}
	return path
}
