package compute

import (
	"net/http"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/upload"
)

// imageKeys are the keys of images as schemas tell of them, which some clients ask for before anything else.
func imageKeys() object {
	text := object{"type": []string{"null", "string"}}
	told := func(kind any) object { return object{"type": kind, "readOnly": true} }
	out := object{
		"id": object{"type": "string"}, "name": object{"type": []string{"null", "string"}, "maxLength": maxName}, "visibility": object{"type": "string", "enum": []string{"public", "private"}},
		"protected": object{"type": "boolean"}, "os_hidden": object{"type": "boolean"}, "owner": text, "min_disk": object{"type": "integer"}, "min_ram": object{"type": "integer"},
		"tags": object{"type": "array", "items": object{"type": "string", "maxLength": maxName}}, "size": told([]string{"null", "integer"}), "virtual_size": told([]string{"null", "integer"}),
		"disk_format": formsOf(diskimage.Formats()), "container_format": formsOf([]string{upload.Bare}),
	}
	for _, key := range []string{"status", "created_at", "updated_at", "self", "file", "schema"} {
		out[key] = told("string")
	}
	for _, key := range []string{"checksum", "os_hash_algo", "os_hash_value"} {
		out[key] = told([]string{"null", "string"})
	}
	return out
}

// formsOf is what one of some words may be, or nothing.
func formsOf(words []string) object {
	all := []any{nil}
	for _, word := range words {
		all = append(all, word)
	}
	return object{"type": []string{"null", "string"}, "enum": all}
}

func imageSchema() object {
	return object{"name": "image", "properties": imageKeys(), "additionalProperties": object{"type": "string"}, "links": []any{
		object{"rel": "self", "href": "{self}"}, object{"rel": "enclosure", "href": "{file}"}, object{"rel": "describedby", "href": "{schema}"},
	}}
}

func showImageSchema(*request) (result, error) { return result{http.StatusOK, imageSchema()}, nil }

func showImagesSchema(*request) (result, error) {
	return result{http.StatusOK, object{"name": "images", "properties": object{
		"images": object{"type": "array", "items": imageSchema()}, "first": object{"type": "string"}, "next": object{"type": "string"}, "schema": object{"type": "string"},
	}, "links": []any{object{"rel": "first", "href": "{first}"}, object{"rel": "next", "href": "{next}"}, object{"rel": "describedby", "href": "{schema}"}}}}, nil
}
