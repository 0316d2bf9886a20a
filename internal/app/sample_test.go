package app

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write packaging/drover.toml anew")

const samplePath = "packaging/drover.toml"

// sample is a configuration file with all settings of `drover serve`, each with its help and as it is without the file.
func sample() string {
	const width = 100
	b := &strings.Builder{}
	b.WriteString(`# The configuration of a Drover controller: docs/operations.md. Install it as /etc/drover/drover.toml.
#
# Each setting stands here as it is where nobody sets it. Take the # away in front of what is to be otherwise, then:
#     drover serve --check-config
#     systemctl restart drover          # or reload, for log-level
# This file is made from the settings of the program (go test ./internal/app -run Sample -update).
`)
	s := serveDefaults()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	s.register(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		b.WriteString("\n")
		for _, line := range listing.Wrap(f.Usage, width-2) {
			b.WriteString("# " + line + "\n")
		}
		value := fmt.Sprintf("%q", f.DefValue)
		if kind := f.Value.Type(); kind == "bool" || kind == "int" {
			value = f.DefValue
		}
		fmt.Fprintf(b, "#%s = %s\n", f.Name, value)
	})
	return b.String()
}

// TestSampleIsUpToDate: the file that is packaged is made from the settings.
func TestSampleIsUpToDate(t *testing.T) {
	testkit.Golden(t, *update, filepath.Join(testkit.Root(t), samplePath), sample())
}

// TestSampleSetsWhatIs: each setting has its line, a controller reads them all, and they change nothing.
func TestSampleSetsWhatIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), samplePath))
	if err != nil {
		t.Fatal(err)
	}
	setting := regexp.MustCompile(`(?m)^#([a-z-]+ = .*)$`)
	if n, fields := len(setting.FindAll(text, -1)), fieldsOf(reflect.TypeFor[settings]()); n != fields {
		t.Errorf("it has %d settings, and a controller %d", n, fields)
	}
	file := filepath.Join(t.TempDir(), "drover.toml")
	for what, content := range map[string][]byte{"as it is": text, "with all that it has": setting.ReplaceAll(text, []byte("$1"))} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := source{defaults: serveDefaults(), file: file}.read()
		if err != nil {
			t.Fatal(err)
		}
		if changed := s.differences(serveDefaults()); len(changed) > 0 {
			t.Errorf("%s it changes %v", what, changed)
		}
	}
	for i, line := range strings.Split(string(text), "\n") {
		if len(line) > 130 && !strings.Contains(line, " = ") {
			t.Errorf("line %d is too long for a screen", i+1)
		}
	}
}

// fieldsOf counts the settings that a file may have.
func fieldsOf(of reflect.Type) (n int) {
	for f := range of.Fields() {
		if f.Anonymous {
			n += fieldsOf(f.Type)
		} else if f.Tag.Get("toml") != "" {
			n++
		}
	}
	return n
}
