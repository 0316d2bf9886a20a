package cli

import (
	"bytes"
	"encoding/json"

	"github.com/drover-project/drover/internal/cli/listing"
)

// objects are rows as JSON shows them: an object for each, with the fields in
// order, null where there is no value.
func objects(a *listing.Answer) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(a.Data))
	for i, row := range a.Data {
		var b bytes.Buffer
		b.WriteByte('{')
		for n, cell := range row {
			if n > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(a.Fields[n].Name)
			if err != nil {
				return nil, err
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(cell.Value)
		}
		b.WriteByte('}')
		out[i] = b.Bytes()
	}
	return out, nil
}

// showAnswer shows what a list found.
func (sh *shell) showAnswer(what string, a *listing.Answer, o *listOptions) error {
	if sh.flags.output == "csv" {
		return sh.warnUnknown(a.Fields, listing.WriteCSV(sh.out, a))
	}
	data, err := objects(a)
	if err != nil {
		return err
	}
	err = sh.show(data, func() error {
		return listing.Write(sh.out, what, a, listing.Options{Separator: o.separator, NoHeaders: o.noHeaders,
			Verbose: o.verbose, Units: o.units, Color: sh.colour})
	})
	return sh.warnUnknown(a.Fields, err)
}

// warnUnknown makes a list of fields that do not exist end with a status of its
// own.
func (sh *shell) warnUnknown(fields []listing.Field, err error) error {
	unknown := listing.Unknown(fields)
	if err != nil || len(unknown) == 0 {
		return err
	}
	sh.notef("%s\n", listing.UnknownFields(unknown))
	return &exitError{status: ExitUnknownField}
}

// showFields shows descriptions of fields.
func (sh *shell) showFields(fields []listing.Field, o *listOptions) error {
	err := sh.show(fields, func() error {
		return listing.WriteFields(sh.out, fields, listing.Options{Separator: o.separator, NoHeaders: o.noHeaders})
	})
	return sh.warnUnknown(fields, err)
}
