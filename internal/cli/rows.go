package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/qlang"
)

// missingKey is the key of a row, in JSON and YAML, that tells of each field
// without a value why it has none.
const missingKey = "_missing"

// objects are rows as JSON shows them: an object for each, with the fields in
// order, times in RFC 3339, null where there is no value; and why there is none.
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
func (sh *shell) tableOptions(o *listOptions) listing.Options {
	out := listing.Options{Separator: o.separator, NoHeaders: o.noHeaders, Verbose: o.verbose, Units: o.units, Color: sh.colour}
	if !sh.persona.classic() {
		out.Times = true
		out.Width = sh.width
	}
	return out
}

// showAnswer shows what a list found.
func (sh *shell) showAnswer(what string, a *listing.Answer, o *listOptions) error {
	if sh.flags.output == "csv" {
		return listing.WriteCSV(sh.out, a, listing.Options{Separator: o.separator, NoHeaders: o.noHeaders, Verbose: o.verbose})
	}
	data, err := objects(a)
	if err != nil {
		return err
	}
	return sh.show(data, func() error {
		return listing.Write(sh.out, what, a, sh.tableOptions(o))
	})
}

// warnUnknown makes a list of fields that do not exist end with a status of its
// own.
func (sh *shell) warnUnknown(ctx context.Context, what string, fields []listing.Field, err error) error {
	unknown := listing.Unknown(fields)
	if err != nil || len(unknown) == 0 {
		return err
	}
	sh.noteUnknown(ctx, what, unknown)
	return &exitError{status: ExitUnknownField}
}

// noteUnknown warns of fields that do not exist, and tells those that may have
// been meant. The classic tools say no more than that.
func (sh *shell) noteUnknown(ctx context.Context, what string, unknown []string) {
	sh.notef("%s\n", listing.UnknownFields(unknown))
	var all listing.Answer
	if sh.persona.classic() || sh.ask(ctx, "QueryFields", &all, what, nil) != nil {
		return
	}
	names := make([]string, len(all.Fields))
	for i, f := range all.Fields {
		names[i] = f.Name
	}
	for _, name := range unknown {
		if near := qlang.Suggest(name, slices.Values(names)); near != "" {
			sh.notef("  hint: did you mean %s instead of %s?\n", near, name)
		}
	}
}

// showFields shows descriptions of fields.
func (sh *shell) showFields(ctx context.Context, what string, fields []listing.Field, o *listOptions) error {
	if sh.flags.output == "csv" {
		return sh.warnUnknown(ctx, what, fields, listing.WriteFieldsCSV(sh.out, fields))
	}
	err := sh.show(fields, func() error {
		return listing.WriteFields(sh.out, fields, sh.tableOptions(o))
	})
	return sh.warnUnknown(ctx, what, fields, err)
}
