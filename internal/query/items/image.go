package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

type image = *cluster.Image

var imageTable = query.Table[image]{
	What:      "image",
	Stored:    true,
	NameField: "name",
	Fields:    slices.Concat(imageFields(), metaFields(func(i image) *cluster.Meta { return &i.Meta })),
	All:       func(v *query.View) iter.Seq[image] { return v.Inventory.Images() },
	Named:     imageNamed,
	Compare:   compareObjects[image],
	Identity:  func(i image) string { return i.UUID },
	Affected:  objectsOf(cluster.KindImage, nil),
	RowsOf:    objectNow((*cluster.Snapshot).Image),
}.Indexed()

func imageNamed(v *query.View, names []qlang.Value) ([]image, bool, error) {
	return query.Find(names, v.Inventory.FindImage)
}

func imageFields() []query.Field[image] {
	return []query.Field[image]{
		{Def: def("name", "Image", query.KindText, "Name of the image"),
			Get: func(_ *query.View, i image) query.Cell { return text(i.Name) }},
		{Def: def("os", "OS", query.KindText, "What an instance that is to be installed from it names as its operating system"),
			Get: func(_ *query.View, i image) query.Cell { return text(cluster.ImageOS + "+" + i.Name) }},
		{Def: def("format", "Format", query.KindText, "Format of its file: raw or qcow2"),
			Get: func(_ *query.View, i image) query.Cell { return text(i.Format) }},
		{Def: def("size", "Size", query.KindNumber, "Size of its file, in bytes"),
			Get: func(_ *query.View, i image) query.Cell { return known(i.Size) }},
		{Def: def("virtual_size", "VirtualSize", query.KindUnit, "Size that a disk must have for it"),
			Get: func(_ *query.View, i image) query.Cell { return known(i.VirtualSize) }},
		{Def: def("sha256", "SHA256", query.KindText, "SHA-256 of its file"),
			Get: func(_ *query.View, i image) query.Cell { return text(i.SHA256) }},
		{Def: def("source", "Source", query.KindText, "Where nodes get its file: a path of theirs, or a URL"),
			Get: func(_ *query.View, i image) query.Cell { return text(i.Source) }},
	}
}
