package compute

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
)

// oldImageBody is an image as the Compute API once showed it.
func (r *request) oldImageBody(m server.Image) object {
	link := r.base() + r.root() + "/images/" + m.ID
	out := object{"id": m.ID, "name": m.Name, "status": "ACTIVE", "progress": 100, "minDisk": m.LeastDisk(), "minRam": 0, "metadata": object{},
		"created": created, "updated": created, "links": []any{object{"rel": "self", "href": link}, object{"rel": "bookmark", "href": link}}}
	if f := m.File; f != nil {
		out["created"], out["updated"], out["OS-EXT-IMG-SIZE:size"] = stamp(f.Created), stamp(f.Updated), f.Size
	}
	return out
}

// created is when operating systems were made of which nobody knows it.
const created = "2026-01-01T00:00:00Z"

func listOldImages(r *request) (result, error)       { return r.oldImages(false) }
func listOldImagesInFull(r *request) (result, error) { return r.oldImages(true) }

func (r *request) oldImages(full bool) (result, error) {
	if r.since(withoutImages) {
		return result{}, errNoRoute
	}
	out := []any{}
	for _, m := range r.api.cfg.Engine.Images() {
		body := r.oldImageBody(m)
		if !full {
			body = object{"id": body["id"], "name": body["name"], "links": body["links"]}
		}
		out = append(out, body)
	}
	return result{http.StatusOK, object{"images": out}}, nil
}

func showOldImage(r *request) (result, error) {
	if r.since(withoutImages) {
		return result{}, errNoRoute
	}
	m, err := r.api.cfg.Engine.Images().Find(r.path[0])
	return result{http.StatusOK, object{"image": r.oldImageBody(m)}}, err
}

// imageBody is an image as the Image API shows it.
func imageBody(m server.Image) object {
	out := object{"id": m.ID, "name": m.Name, "status": "active", "visibility": "public", "protected": false, "os_hidden": false, "tags": []any{},
		"min_disk": m.LeastDisk(), "min_ram": 0, "size": 0, "disk_format": formOf(m), "container_format": "bare", "checksum": nil, "owner": nil, "virtual_size": nil,
		"created_at": created, "updated_at": created, "self": "/v2/images/" + m.ID, "file": "/v2/images/" + m.ID + "/file", "schema": "/v2/schemas/image"}
	if f := m.File; f != nil {
		const mib = 1 << 20
		out["size"], out["virtual_size"], out["os_hash_algo"], out["os_hash_value"] = f.Size, f.Room*mib, "sha256", f.SHA256
		out["created_at"], out["updated_at"] = stamp(f.Created), stamp(f.Updated)
	}
	return out
}

// formOf is the form of an image's disk; an operating system writes to one as it is.
func formOf(m server.Image) string {
	if m.File == nil {
		return "raw"
	}
	return m.File.Format
}

// imageFilters are what a query may ask of images, by its keys. All images are
// active and everybody's.
var imageFilters = map[string]func(m server.Image, text string) bool{
	"id": func(m server.Image, text string) bool { return m.ID == text }, "name": func(m server.Image, text string) bool { return m.Name == text },
	"status": isWord("active"), "visibility": isWord("public", "all"), "disk_format": func(m server.Image, text string) bool { return formOf(m) == text },
	"container_format": isWord("bare"), "member_status": isWord("accepted", "all"),
	"os_hidden": isFalse, "protected": isFalse, "owner": isWord(), "tag": isWord(),
}

func isWord(words ...string) func(server.Image, string) bool {
	return func(_ server.Image, text string) bool { return slices.Contains(words, text) }
}

func isFalse(_ server.Image, text string) bool {
	yes, known := truth(text)
	return known && !yes
}

// imageOrders are what images can be sorted by; in most they are alike.
var imageOrders = map[string]func(a, b server.Image) int{
	"name": func(a, b server.Image) int { return cmp.Compare(a.Name, b.Name) }, "id": func(a, b server.Image) int { return cmp.Compare(a.ID, b.ID) },
	"size": byFile(func(f server.ImageFile) int64 { return f.Size }), "disk_format": func(a, b server.Image) int { return cmp.Compare(formOf(a), formOf(b)) },
	"created_at": byFile(func(f server.ImageFile) job.Time { return f.Created }), "updated_at": byFile(func(f server.ImageFile) job.Time { return f.Updated }),
	"status": alike, "container_format": alike,
}

// byFile orders images by something of their files; what has none comes first.
func byFile[T cmp.Ordered](of func(server.ImageFile) T) func(a, b server.Image) int {
	value := func(m server.Image) (v T) {
		if m.File != nil {
			v = of(*m.File)
		}
		return v
	}
	return func(a, b server.Image) int { return cmp.Compare(value(a), value(b)) }
}

func alike(_, _ server.Image) int { return 0 }

// imagesFor returns the images that a query asks for, in its order, and behind its
// marker. What cannot be done is refused.
func imagesFor(all []server.Image, q url.Values) ([]server.Image, error) {
	out := slices.Clone(all)
	for key, texts := range q {
		text := texts[len(texts)-1]
		holds, known := imageFilters[key]
		switch {
		case known:
			out = slices.DeleteFunc(out, func(m server.Image) bool { return !holds(m, text) })
		case !slices.Contains([]string{"limit", "marker", "sort", "sort_key", "sort_dir"}, key) && text != "":
			return nil, fault.New(fault.Invalid, "Images have no '%s' here to be filtered by", fault.Clip(key, 100)).At(key)
		}
	}
	if err := sortImages(out, q); err != nil {
		return nil, err
	}
	if marker := q.Get("marker"); marker != "" {
		i := slices.IndexFunc(out, func(m server.Image) bool { return m.ID == marker })
		if i < 0 {
			return nil, noMarker(marker)
		}
		out = out[i+1:]
	}
	return out, nil
}

// sortImages sorts them by sort, KEY:DIRECTION with commas, or by sort_key and
// sort_dir; the first direction counts for those that are not said.
func sortImages(images []server.Image, q url.Values) error {
	keys, dirs := q["sort_key"], q["sort_dir"]
	if sort := q.Get("sort"); sort != "" {
		keys, dirs = nil, nil
		for part := range strings.SplitSeq(sort, ",") {
			key, dir, _ := strings.Cut(part, ":")
			keys, dirs = append(keys, key), append(dirs, cmp.Or(dir, "desc"))
		}
	}
	for i, key := range slices.Backward(keys) { // the last one first, for the sorting keeps the order of what is equal
		dir := "desc"
		switch {
		case i < len(dirs):
			dir = dirs[i]
		case len(dirs) > 0:
			dir = dirs[0]
		}
		order, known := imageOrders[key]
		if !known || dir != "asc" && dir != "desc" {
			return fault.New(fault.Invalid, "Images cannot be sorted by '%s', '%s'", fault.Clip(key, 100), fault.Clip(dir, 100)).At("sort")
		}
		slices.SortStableFunc(images, func(a, b server.Image) int {
			if dir == "desc" {
				a, b = b, a
			}
			return order(a, b)
		})
	}
	return nil
}

func listImages(r *request) (result, error) {
	q := r.URL.Query()
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	images, err := imagesFor(r.api.cfg.Engine.Images(), q)
	if err != nil {
		return result{}, err
	}
	out, body := []any{}, object{"first": "/v2/images", "schema": "/v2/schemas/images"}
	for _, m := range images[:min(limit, len(images))] {
		out = append(out, imageBody(m))
	}
	if 0 < limit && limit < len(images) {
		q.Set("marker", images[limit-1].ID)
		body["next"] = "/v2/images?" + q.Encode()
	}
	body["images"] = out
	return result{http.StatusOK, body}, nil
}

func showImage(r *request) (result, error) {
	m, err := r.api.cfg.Engine.Images().Find(r.path[0])
	return result{http.StatusOK, imageBody(m)}, err
}
