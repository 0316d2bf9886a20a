package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/shell"
)

// asText are the verbs that look and have no data: they compute on files, or speak to a person.
var asText = []string{"cluster master-ping", "debug allocator", "deploy console", "deploy schema", "deploy validate", "instance log", "server log" /* which need a machine: test/machines */, "top"}

// asdata runs the commands of a file, one to a line, with --output json: asdata FILE. What
// comes must be JSON without a time as a number, and every verb that only looks must be there.
func asdata(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: asdata FILE")
	}
	tried := map[string]bool{}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		words := append(strings.Fields(line), "--output", "json")
		err := ts.Exec("drover", words...)
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || !slices.Contains([]int{shell.ExitWouldChange, shell.ExitNotWell}, exit.ExitCode())) { // they told something
			ts.Fatalf("%s: %v: %s", line, err, ts.ReadFile("stderr"))
		}
		if err := holdsData(ts.ReadFile("stdout")); err != nil {
			ts.Fatalf("%s: %v in\n%s", line, err, ts.ReadFile("stdout"))
		}
		for _, v := range cli.Verbs() {
			if strings.HasPrefix(line, v.Path+" ") || strings.TrimSpace(line) == v.Path {
				tried[v.Path] = true
			}
		}
	}
	for _, v := range cli.Verbs() {
		if v.Does == shell.Looks && !tried[v.Path] && !slices.Contains(asText, v.Path) {
			ts.Fatalf("drover %s --output json is not tried", v.Path)
		}
	}
}

// ofTrails are the keys of what keeps its times as numbers: trails, also within opcodes,
// and texts that users wrote.
var ofTrails = []string{"reason", "reason_trail", "trail", "ops", "evidence", "rules", "reasons"}

// holdsData says what is wrong with a text that is to be JSON with all times in RFC 3339.
func holdsData(text string) error {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("this is no JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the JSON")
	}
	return holdsNoNumberAsTime("", v)
}

func holdsNoNumberAsTime(key string, v any) error {
	if slices.Contains(ofTrails, key) {
		return nil
	}
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if err := holdsNoNumberAsTime(key, value); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range x {
			if err := holdsNoNumberAsTime(key, value); err != nil {
				return err
			}
		}
	case json.Number:
		// 1.6e9 to 1.9e9 are the seconds of the years 2020 to 2030; more digits are smaller units.
		if whole, _, _ := strings.Cut(x.String(), "."); len(whole) >= len("1600000000") && whole[0] == '1' && whole[1] >= '6' {
			return fmt.Errorf("%s is %s, which looks like a time", key, x)
		}
	}
	return nil
}
