package listing

import (
	"encoding/csv"
	"encoding/json"
	"io"
)

// WriteCSV writes an answer as comma-separated values: the names of the fields,
// then a line for each row. Texts and numbers are bare, lists and objects JSON,
// and what is not there is empty.
func WriteCSV(w io.Writer, a *Answer) error {
	out := csv.NewWriter(w)
	line := make([]string, len(a.Fields))
	for i, f := range a.Fields {
		line[i] = f.Name
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for _, row := range a.Data {
		for i, c := range row {
			line[i] = csvText(c)
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

func csvText(c Cell) string {
	if c.Status != 0 || string(c.Value) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(c.Value, &text) == nil {
		return text
	}
	return string(c.Value)
}
