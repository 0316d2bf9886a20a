package deployments

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the texts that the scripts compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"deploy": func() {
		cmd := onFiles()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		status, ok := errors.AsType[interface {
			error
			ExitStatus() int
		}](err)
		switch {
		case ok:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(status.ExitStatus())
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: *update})
}
