package compute

import (
	"cmp"
	"encoding/csv"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/upload"
)

// created is when operating systems were made of which nobody knows it.
const created = "2026-01-01T00:00:00Z"

// images are what servers of the project can be made of now: what all can, and what users uploaded that the project sees.
func (r *request) images() server.Images {
	all := r.api.cfg.Engine.Images()
	for _, m := range r.uploads() {
		if m.Status == upload.Active {
			all = append(all, bootable(&m))
		}
	}
	return all
}

// bootImage is the image of a new server.
func (r *request) bootImage(id string) (server.Image, error) {
	m, err := r.images().Find(id)
	if err != nil {
		if p, _ := r.picture(id); p != nil {
			err = fault.New(fault.Invalid, "Image %s is not active.", id).At("imageRef").WithHint("it is %s: servers are made of images that are active", p.Status)
		}
	}
	return m, err
}

// uploads are the images that users uploaded, as far as the project sees them.
func (r *request) uploads() []upload.Shown {
	if r.api.cfg.Uploads == nil {
		return nil
	}
	return r.api.cfg.Uploads.Seen(r.session.Project.ID)
}

// bootable is an image that was uploaded, as servers are made of it.
func bootable(m *upload.Shown) server.Image {
	return server.Image{ID: m.ID, Name: m.Name, OS: cluster.ImageOS + "+" + m.ID, File: &server.ImageFile{
		Format: m.DiskFormat, Size: m.File.Size, SHA256: m.File.SHA256, Room: max(m.File.Room, m.MinDisk*1024), RAM: m.MinRAM, Created: m.Created, Updated: m.Updated,
	}}
}

// picture is an image as the Image API has it, whoever brought it.
type picture struct {
	upload.Shown

	// own: it is of a project; else it is the operator's, and everybody's.
	own bool
	// times are known.
	times bool
}

// pictureOf is an image of the operator's, or an operating system, which writes to a disk as it is.
func pictureOf(m *server.Image) picture {
	p := picture{Shown: upload.Shown{Status: upload.Active, Image: upload.Image{ID: m.ID, Name: m.Name, Public: true, DiskFormat: "raw", ContainerFormat: upload.Bare, MinDisk: m.LeastDisk()}}}
	if f := m.File; f != nil {
		p.times, p.DiskFormat, p.Created, p.Updated = true, f.Format, f.Created, f.Updated
		p.File = &upload.File{Size: f.Size, SHA256: f.SHA256, Room: f.Room}
	}
	return p
}

// pictures are all images that the project sees.
func (r *request) pictures() (all []picture) {
	for _, m := range r.api.cfg.Engine.Images() {
		all = append(all, pictureOf(&m))
	}
	for _, m := range r.uploads() {
		all = append(all, picture{m, true, true})
	}
	return all
}

// picture finds one of them.
func (r *request) picture(id string) (*picture, error) {
	all := r.pictures()
	if i := slices.IndexFunc(all, func(p picture) bool { return p.ID == id }); i >= 0 {
		return &all[i], nil
	}
	return nil, fault.New(fault.NotFound, "Image %s could not be found.", fault.Clip(id, 100)).At("image_id")
}

// visibility is who sees an image.
func (p *picture) visibility() string {
	if p.Public {
		return "public"
	}
	return "private"
}

// size is that of the file; 0 without one.
func (p *picture) size() int64 {
	if p.File == nil {
		return 0
	}
	return p.File.Size
}

// body is an image as the Image API shows it.
func (p *picture) body() object {
	const mib = 1 << 20
	out := object{}
	for key, value := range p.Properties {
		out[key] = value
	}
	maps.Copy(out, object{"id": p.ID, "name": nullable(p.Name), "status": p.Status, "visibility": p.visibility(), "protected": p.Protected, "os_hidden": p.Hidden, "tags": append([]string{}, p.Tags...),
		"min_disk": p.MinDisk, "min_ram": p.MinRAM, "size": nil, "disk_format": nullable(p.DiskFormat), "container_format": nullable(p.ContainerFormat), "checksum": nil, "owner": nullable(p.Project),
		"virtual_size": nil, "created_at": created, "updated_at": created, "self": "/v2/images/" + p.ID, "file": "/v2/images/" + p.ID + "/file", "schema": "/v2/schemas/image"})
	if !p.own {
		out["size"] = 0
	}
	if p.times {
		out["created_at"], out["updated_at"] = stamp(p.Created), stamp(p.Updated)
	}
	if f := p.File; f != nil {
		out["size"], out["virtual_size"], out["checksum"], out["os_hash_algo"], out["os_hash_value"] = f.Size, f.Room*mib, nullable(f.MD5), "sha256", f.SHA256
	}
	if p.Why != "" {
		out[whyNot] = p.Why
	}
	return out
}

// whyNot is the key under which an image says why its last upload, or its removal, came to nothing.
const whyNot = "drover_message"

// nullable is a text, or null in place of an empty one.
func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// imageFilters are what a query may ask of images, by its keys.
var imageFilters = map[string]func(p *picture, text string) bool{
	"id": oneOf(func(p *picture) string { return p.ID }), "name": oneOf(func(p *picture) string { return p.Name }), "status": oneOf(func(p *picture) string { return string(p.Status) }),
	"disk_format": oneOf(func(p *picture) string { return p.DiskFormat }), "container_format": oneOf(func(p *picture) string { return p.ContainerFormat }),
	"visibility":    func(p *picture, text string) bool { return text == "all" || p.visibility() == text },
	"member_status": func(_ *picture, text string) bool { return text == "accepted" || text == "all" },
	"os_hidden":     isTrue(func(p *picture) bool { return p.Hidden }), "protected": isTrue(func(p *picture) bool { return p.Protected }),
	"owner": func(p *picture, text string) bool { return p.Project != "" && p.Project == text },
	"size":  sized(func(size, said int64) bool { return size == said }), "size_min": sized(func(size, said int64) bool { return size >= said }), "size_max": sized(func(size, said int64) bool { return size <= said }),
}

// oneOf is a filter by a text: the one that is said, or behind in: one of several, with commas between them, and in quotation marks where they have commas.
func oneOf(of func(*picture) string) func(*picture, string) bool {
	return func(p *picture, text string) bool {
		several, in := strings.CutPrefix(text, "in:")
		if !in {
			return of(p) == text
		}
		said, err := csv.NewReader(strings.NewReader(several)).Read()
		return err == nil && slices.Contains(said, of(p))
	}
}

// isTrue is a filter by what is so or not.
func isTrue(is func(*picture) bool) func(*picture, string) bool {
	return func(p *picture, text string) bool {
		yes, known := truth(text)
		return known && yes == is(p)
	}
}

// sized is a filter by size; what has no file yet has none.
func sized(holds func(size, said int64) bool) func(*picture, string) bool {
	return func(p *picture, text string) bool {
		said, err := strconv.ParseInt(text, 10, 64)
		return err == nil && (p.File != nil || !p.own) && holds(p.size(), said)
	}
}

// imageOrders are what images can be sorted by; in most they are alike.
var imageOrders = map[string]func(a, b *picture) int{
	"name": func(a, b *picture) int { return cmp.Compare(a.Name, b.Name) }, "id": func(a, b *picture) int { return cmp.Compare(a.ID, b.ID) },
	"size": func(a, b *picture) int { return cmp.Compare(a.size(), b.size()) }, "disk_format": func(a, b *picture) int { return cmp.Compare(a.DiskFormat, b.DiskFormat) },
	"created_at": func(a, b *picture) int { return cmp.Compare(a.Created, b.Created) }, "updated_at": func(a, b *picture) int { return cmp.Compare(a.Updated, b.Updated) },
	"status": func(a, b *picture) int { return cmp.Compare(a.Status, b.Status) }, "container_format": func(a, b *picture) int { return cmp.Compare(a.ContainerFormat, b.ContainerFormat) },
}

// imagesFor returns the images that a query asks for, in its order, and behind its
// marker. What cannot be done is refused. Those that are hidden are in no list that does not ask for them.
func imagesFor(all []picture, q url.Values) ([]picture, error) {
	out := slices.Clone(all)
	if q.Get("os_hidden") == "" {
		out = slices.DeleteFunc(out, func(p picture) bool { return p.Hidden })
	}
	for key, texts := range q {
		text := texts[len(texts)-1]
		holds, known := imageFilters[key]
		switch {
		case key == "tag": // all of them
			out = slices.DeleteFunc(out, func(p picture) bool {
				return slices.ContainsFunc(texts, func(tag string) bool { return !slices.Contains(p.Tags, tag) })
			})
		case strings.HasPrefix(key, "size") && known && !isCount(text):
			return nil, fault.New(fault.Invalid, "Invalid input for query parameters %s. Value: %s. It must be a number", key, fault.Clip(text, 40)).At(key)
		case strings.HasPrefix(text, "in:") && known && !isListed(text):
			return nil, fault.New(fault.Invalid, "Invalid filter value '%s' of %s", fault.Clip(text, 100), key).At(key).WithHint("in:ONE,ANOTHER, those with commas in quotation marks")
		case known:
			out = slices.DeleteFunc(out, func(p picture) bool { return !holds(&p, text) })
		case slices.Contains([]string{"limit", "marker", "sort", "sort_key", "sort_dir"}, key) || text == "":
		case isProperty(key):
			out = slices.DeleteFunc(out, func(p picture) bool { return p.Properties[key] != text })
		default:
			return nil, fault.New(fault.Invalid, "Images have no '%s' here to be filtered by", fault.Clip(key, 100)).At(key)
		}
	}
	if err := sortImages(out, q); err != nil {
		return nil, err
	}
	return behind(out, q.Get("marker"))
}

// isProperty tells whether an image may have a property that is called so; what all images have is none.
func isProperty(key string) bool {
	_, base := attributes[key]
	return !base && !slices.Contains(readOnly, key)
}

// behind are the images behind a marker; all of them without one.
func behind(images []picture, marker string) ([]picture, error) {
	if marker == "" {
		return images, nil
	}
	i := slices.IndexFunc(images, func(p picture) bool { return p.ID == marker })
	if i < 0 {
		return nil, noMarker(marker)
	}
	return images[i+1:], nil
}

func isListed(text string) bool {
	_, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "in:"))).Read()
	return err == nil
}

func isCount(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0
}

// sortImages sorts them by sort, KEY:DIRECTION with commas, or by sort_key and
// sort_dir; the first direction counts for those that are not said.
func sortImages(images []picture, q url.Values) error {
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
		slices.SortStableFunc(images, func(a, b picture) int {
			if dir == "desc" {
				a, b = b, a
			}
			return order(&a, &b)
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
	images, err := imagesFor(r.pictures(), q)
	if err != nil {
		return result{}, err
	}
	out, body := []any{}, object{"first": "/v2/images", "schema": "/v2/schemas/images"}
	for _, p := range images[:min(limit, len(images))] {
		out = append(out, p.body())
	}
	if 0 < limit && limit < len(images) {
		q.Set("marker", images[limit-1].ID)
		body["next"] = "/v2/images?" + q.Encode()
	}
	body["images"] = out
	return result{http.StatusOK, body}, nil
}

func showImage(r *request) (result, error) {
	p, err := r.picture(r.path[0])
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, p.body()}, nil
}
