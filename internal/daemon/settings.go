// Package daemon is what the long-running programs of the binary share: settings in a strict file and in flags of the same names, and the log.
package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/fault"
)

// Given returns the flags of a set that are on the command line.
func Given(f *pflag.FlagSet) map[string]string {
	said := map[string]string{}
	f.Visit(func(flag *pflag.Flag) { said[flag.Name] = flag.Value.String() })
	return said
}

// Decode reads a file of settings strictly: what is not known is refused, with its place and a hint where the settings are listed.
func Decode(file string, into any, listed string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fault.New(fault.Environment, "cannot read the configuration: %w", err)
	}
	decoder := toml.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		first := unknown.Errors[0]
		row, column := first.Position()
		return fault.New(fault.Invalid, "%s:%d:%d: there is no setting %s", file, row, column, strings.Join(first.Key(), ".")).
			At(strings.Join(first.Key(), ".")).WithHint("%s", listed)
	}
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := wrong.Position()
		text, field, kind := strings.TrimPrefix(wrong.Error(), "toml: "), strings.Join(wrong.Key(), "."), ""
		if before, after, of := strings.Cut(text, " into struct field "); of { // the name of a Go type, which helps nobody
			text, kind = before+" as "+field, after[strings.LastIndexByte(after, ' ')+1:]
		}
		refused := fault.New(fault.Invalid, "%s:%d:%d: %s", file, row, column, text).At(field)
		if kind == "string" {
			refused = refused.WithHint("%s is a text; write it in quotation marks", field)
		}
		return refused
	}
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", file, err)
	}
	return nil
}

// Duration is a time as a text: 5s, 6h. It is no number of Go's, into which a file could write one without a unit.
type Duration struct{ time.Duration }

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	t, err := time.ParseDuration(text)
	if err != nil {
		return fault.New(fault.Invalid, "%q is no time; write it as 90s, 15m or 6h", text)
	}
	d.Duration = t
	return nil
}

// Type implements pflag.Value.
func (*Duration) Type() string { return "duration" }

// UnmarshalText is for the configuration file.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

// Level is a level of the log, as a word and not as one of slog's numbers.
type Level struct{ slog.Level }

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// String implements pflag.Value.
func (l *Level) String() string { return strings.ToLower(l.Level.String()) }

// Set implements pflag.Value.
func (l *Level) Set(text string) error {
	found, ok := levels[text]
	if !ok {
		return fault.New(fault.Invalid, "%q is none of debug, info, warn, error", text)
	}
	l.Level = found
	return nil
}

// Type implements pflag.Value.
func (*Level) Type() string { return "level" }

// UnmarshalText is for the configuration file.
func (l *Level) UnmarshalText(text []byte) error { return l.Set(string(text)) }

// LogFormat is the form of the log's lines, one of LogFormats.
type LogFormat string

// LogFormats are the forms that there are, the usual one first.
var LogFormats = []string{"text", "json"}

// String implements pflag.Value.
func (f *LogFormat) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *LogFormat) Set(text string) error {
	if !slices.Contains(LogFormats, text) {
		return fault.New(fault.Invalid, "%q is neither %s", text, strings.Join(LogFormats, " nor "))
	}
	*f = LogFormat(text)
	return nil
}

// Type implements pflag.Value.
func (*LogFormat) Type() string { return "format" }
