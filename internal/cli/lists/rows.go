package lists

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/qlang"
)

// missingKey is the key of a row, in JSON and YAML, that tells of each field
// without a value why it has none.
const missingKey = "_missing"

// Objects are rows as JSON shows them: an object for each, with the fields in
// order, times in RFC 3339, null where there is no value; and why there is none.
func Objects(a *listing.Answer) ([]json.RawMessage, error) {
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
			b.Write(listing.Data(a.Fields[n], cell.Value))
		}
		if err := writeMissing(&b, a.Fields, row); err != nil {
			return nil, err
		}
		b.WriteByte('}')
		out[i] = b.Bytes()
	}
	return out, nil
}

// writeMissing adds why fields of a row have no value, if there are such.
func writeMissing(b *bytes.Buffer, fields []listing.Field, row []listing.Cell) error {
	missing := map[string]string{}
	for n, cell := range row {
		if cell.Status != 0 {
			missing[fields[n].Name] = listing.Words[cell.Status]
		}
	}
	if len(missing) == 0 {
		return nil
	}
	text, err := json.Marshal(missing)
	if len(row) > 0 {
		b.WriteByte(',')
	}
	b.WriteString(`"` + missingKey + `":`)
	b.Write(text)
	return err
}

// tableOptions are how tables are written: as the options say, and for the
// terminal that they go to. Scripts around the classic tools know their bytes.
func tableOptions(sh *shell.Shell, o *Options) listing.Options {
	out := listing.Options{Separator: o.separator, NoHeaders: o.noHeaders, Verbose: o.verbose, Units: o.units, Color: sh.Colour}
	if !sh.Classic() {
		out.Times = true
		out.Width = sh.Width
	}
	return out
}

// showAnswer shows what a list found.
func showAnswer(sh *shell.Shell, what string, a *listing.Answer, o *Options) error {
	if write := sh.Format().Rows; write != nil {
		return write(sh.Out, a, listing.Options{Separator: o.separator, NoHeaders: o.noHeaders, Verbose: o.verbose})
	}
	data, err := Objects(a)
	if err != nil {
		return err
	}
	return sh.Show(data, func() error {
		return listing.Write(sh.Out, what, a, tableOptions(sh, o))
	})
}

// WarnUnknown makes a list of fields that do not exist end with a status of its
// own.
func WarnUnknown(ctx context.Context, sh *shell.Shell, what string, fields []listing.Field, err error) error {
	unknown := listing.Unknown(fields)
	if err != nil || len(unknown) == 0 {
		return err
	}
	noteUnknown(ctx, sh, what, unknown)
	return &shell.ExitError{Status: shell.ExitUnknownField}
}

// noteUnknown warns of fields that do not exist, and tells those that may have
// been meant. The classic tools say no more than that.
func noteUnknown(ctx context.Context, sh *shell.Shell, what string, unknown []string) {
	sh.Notef("%s\n", listing.UnknownFields(unknown))
	var all listing.Answer
	if sh.Classic() || sh.Ask(ctx, "QueryFields", &all, what, nil) != nil {
		return
	}
	names := make([]string, len(all.Fields))
	for i, f := range all.Fields {
		names[i] = f.Name
	}
	for _, name := range unknown {
		if near := qlang.Suggest(name, slices.Values(names)); near != "" {
			sh.Notef("  hint: did you mean %s instead of %s?\n", near, name)
		}
	}
}

// ShowFields shows descriptions of fields.
func ShowFields(ctx context.Context, sh *shell.Shell, what string, fields []listing.Field, o *Options) error {
	if write := sh.Format().Fields; write != nil {
		return WarnUnknown(ctx, sh, what, fields, write(sh.Out, fields))
	}
	err := sh.Show(fields, func() error {
		return listing.WriteFields(sh.Out, fields, tableOptions(sh, o))
	})
	return WarnUnknown(ctx, sh, what, fields, err)
}
