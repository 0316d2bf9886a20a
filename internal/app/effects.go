package app

import (
	"errors"
	"os"

	"github.com/pelletier/go-toml/v2"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/servertag"
)

// readEffects reads the table of effects of servers' tags: [[effect]] with
// namespace, tag, and parameter and value or label. Without a file there are none.
func readEffects(path string) ([]servertag.Effect, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read the effects of servers' tags: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var table struct {
		Effect []servertag.Effect `toml:"effect"`
	}
	decoder := toml.NewDecoder(file)
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&table)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		row, column := unknown.Errors[0].Position()
		return nil, fault.New(fault.Invalid, "%s:%d:%d: an effect has namespace, tag, and parameter and value or label", path, row, column).At("server-effects")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s: %w", path, err).At("server-effects")
	}
	return table.Effect, nil
}
