package listing

import (
	"encoding/csv"
	"encoding/json"
	"io"
)

// WriteCSV writes an answer as comma-separated values: the names of the fields,
// then a line for each row. Texts and numbers are bare, times in RFC 3339, lists and
// objects JSON. What does not apply is empty; what could not be had says why in
// parentheses: (nodata), (offline), (unknown). Of the options it heeds Verbose
// (then also (unavail)), NoHeaders and Separator, of which the first letter counts.
func WriteCSV(w io.Writer, a *Answer, o Options) error {
	out := csv.NewWriter(w)
	for _, letter := range o.Separator {
		out.Comma = letter
		break
	}
	line := make([]string, len(a.Fields))
	for i, f := range a.Fields {
		line[i] = f.Name
	}
	if !o.NoHeaders {
		if err := out.Write(line); err != nil {
			return err
		}
	}
	for _, row := range a.Data {
		for i, c := range row {
			line[i] = csvText(a.Fields[i], c, o.Verbose)
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteFieldsCSV writes a list of fields as comma-separated values.
func WriteFieldsCSV(w io.Writer, fields []Field) error {
	lines := [][]string{{"name", "title", "kind", "doc"}}
	for _, f := range fields {
		lines = append(lines, []string{f.Name, f.Title, f.Kind, f.Doc})
	}
	return csv.NewWriter(w).WriteAll(lines)
}

func csvText(f Field, c Cell, verbose bool) string {
	switch {
	case c.Status == 3 && !verbose, string(c.Value) == "null" && c.Status == 0:
		return ""
	case c.Status != 0:
		return "(" + Words[c.Status] + ")"
	}
	value := Data(f, c.Value)
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
