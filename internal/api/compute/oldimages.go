package compute

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/upload"
)

// The images as the Compute API once showed them, beside the Image API: lists and deletion below microversion 2.36, metadata below 2.39. Older libraries
// and tools have no other way.

// oldStates are the words of the Compute API for how an image is, and how far.
var oldStates = map[upload.Status]struct {
	word string
	done int // per cent
}{
	upload.Queued: {"SAVING", 25}, upload.Saving: {"SAVING", 50}, upload.Active: {"ACTIVE", 100}, upload.Deleting: {"DELETED", 0}, upload.Deactivated: {"UNKNOWN", 0},
}

// oldBody is an image as the Compute API once showed it.
func (r *request) oldBody(p *picture) object {
	link, is := r.base()+r.root()+"/images/"+p.ID, oldStates[p.Status]
	out := object{"id": p.ID, "name": p.Name, "status": is.word, "progress": is.done, "minDisk": p.MinDisk, "minRam": p.MinRAM, "metadata": p.metadata(),
		"created": created, "updated": created, "links": []any{object{"rel": "self", "href": link}, object{"rel": "bookmark", "href": link}}}
	if p.own && p.Status == upload.Active {
		m := bootable(&p.Shown)
		out["minDisk"] = m.LeastDisk()
	}
	if p.times {
		out["created"], out["updated"] = stamp(p.Created), stamp(p.Updated)
	}
	if p.File != nil {
		out["OS-EXT-IMG-SIZE:size"] = p.File.Size
	}
	return out
}

// metadata are an image's properties, which is what the Compute API has for them.
func (p *picture) metadata() map[string]string {
	out := map[string]string{}
	maps.Copy(out, p.Properties)
	return out
}

func listOldImages(r *request) (result, error)       { return r.oldImages(false) }
func listOldImagesInFull(r *request) (result, error) { return r.oldImages(true) }

func (r *request) oldImages(full bool) (result, error) {
	if r.since(withoutImages) {
		return result{}, errNoRoute
	}
	q := r.URL.Query()
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	all, err := oldImagesFor(r.pictures(), q)
	if err != nil {
		return result{}, err
	}
	shown := object{}
	out := []any{}
	for _, p := range all[:min(limit, len(all))] {
		body := r.oldBody(&p)
		if !full {
			body = object{"id": body["id"], "name": body["name"], "links": body["links"]}
		}
		out = append(out, body)
	}
	if 0 < limit && limit < len(all) {
		q.Set("marker", all[limit-1].ID)
		shown["images_links"] = []any{object{"rel": "next", "href": r.base() + r.URL.Path + "?" + q.Encode()}}
	}
	shown["images"] = out
	return result{http.StatusOK, shown}, nil
}

// oldFilters are what a query may ask of them, by its keys: each reads what is said, and returns which images are meant. What snapshots of servers would have
// is in properties.
var oldFilters = map[string]func(text string) (func(*picture) bool, error){
	"name":    said(func(p *picture, text string) bool { return p.Name == text }),
	"status":  said(func(p *picture, text string) bool { return strings.EqualFold(oldStates[p.Status].word, text) }),
	"minDisk": least("minDisk", func(p *picture) int64 { return p.MinDisk }), "minRam": least("minRam", func(p *picture) int64 { return p.MinRAM }),
	"server": said(func(p *picture, text string) bool { return p.Properties["instance_uuid"] == path.Base(text) }), // it may be a link
	"type":   said(func(p *picture, text string) bool { return p.Properties["image_type"] == text }),
	"changes-since": func(text string) (func(*picture) bool, error) {
		at, err := readTime("changes-since", text)
		return func(p *picture) bool { return p.times && p.Updated >= at }, err
	},
}

// said is a filter by a text that may be any.
func said(is func(p *picture, text string) bool) func(string) (func(*picture) bool, error) {
	return func(text string) (func(*picture) bool, error) {
		return func(p *picture) bool { return is(p, text) }, nil
	}
}

// least is a filter by a number that an image has at least.
func least(key string, of func(*picture) int64) func(string) (func(*picture) bool, error) {
	return func(text string) (func(*picture) bool, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid input for query parameters %s. Value: %s. It must be a number", key, fault.Clip(text, 40)).At(key)
		}
		return func(p *picture) bool { return of(p) >= n }, nil
	}
}

// oldImagesFor returns the images that a query asks for, behind its marker. What cannot be done is refused.
func oldImagesFor(all []picture, q url.Values) ([]picture, error) {
	out := slices.DeleteFunc(slices.Clone(all), func(p picture) bool { return p.Hidden })
	for key, texts := range q {
		text := texts[len(texts)-1]
		read, known := oldFilters[key]
		property, of := strings.CutPrefix(key, "property-")
		switch {
		case of:
			out = slices.DeleteFunc(out, func(p picture) bool { return p.Properties[property] != text })
		case known:
			meant, err := read(text)
			if err != nil {
				return nil, err
			}
			out = slices.DeleteFunc(out, func(p picture) bool { return !meant(&p) })
		case key != "limit" && key != "marker" && text != "":
			return nil, fault.New(fault.Invalid, "Images have no '%s' here to be filtered by", fault.Clip(key, 100)).At(key)
		}
	}
	return behind(out, q.Get("marker"))
}

func showOldImage(r *request) (result, error) {
	if r.since(withoutImages) {
		return result{}, errNoRoute
	}
	p, err := r.picture(r.path[0])
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"image": r.oldBody(p)}}, nil
}

func deleteOldImage(r *request) (result, error) {
	if r.since(withoutImages) {
		return result{}, errNoRoute
	}
	return deleteImage(r)
}

func showImageMetadata(r *request) (result, error) {
	if r.since(withoutImageMeta) {
		return result{}, errNoRoute
	}
	p, err := r.picture(r.path[0])
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"metadata": p.metadata()}}, nil
}

func showImageItem(r *request) (result, error) {
	if r.since(withoutImageMeta) {
		return result{}, errNoRoute
	}
	p, err := r.picture(r.path[0])
	if err != nil {
		return result{}, err
	}
	value, there := p.Properties[r.path[1]]
	if !there {
		return result{}, errNoItem()
	}
	return result{http.StatusOK, object{"meta": object{r.path[1]: value}}}, nil
}

func addImageMetadata(r *request) (result, error)     { return r.putImageMetadata(false) }
func replaceImageMetadata(r *request) (result, error) { return r.putImageMetadata(true) }

// putImageMetadata sets properties, beside those that there are or in their place.
func (r *request) putImageMetadata(replace bool) (result, error) {
	said, err := r.readMetadata()
	if err != nil {
		return result{}, err
	}
	next, err := r.withImageMetadata(said, func(items map[string]string) error {
		if replace {
			clear(items)
		}
		return nil
	})
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"metadata": next.metadata()}}, nil
}

func putImageItem(r *request) (result, error) {
	said, err := r.readItem()
	if err != nil {
		return result{}, err
	}
	_, err = r.withImageMetadata(said, func(map[string]string) error { return nil })
	return result{http.StatusOK, object{"meta": said}}, err
}

func deleteImageItem(r *request) (result, error) {
	_, err := r.withImageMetadata(nil, func(items map[string]string) error {
		if _, there := items[r.path[1]]; !there {
			return errNoItem()
		}
		delete(items, r.path[1])
		return nil
	})
	return result{status: http.StatusNoContent}, err
}

// withImageMetadata has an image have what f makes of its properties, and then those that are said.
func (r *request) withImageMetadata(said map[string]string, f func(map[string]string) error) (*picture, error) {
	if r.since(withoutImageMeta) {
		return nil, errNoRoute
	}
	p, err := r.ownImage()
	if err != nil {
		return nil, err
	}
	next, err := r.api.cfg.Uploads.Change(r.Context(), p.ID, func(m *upload.Shown) error {
		items := (&picture{Shown: *m}).metadata()
		if err := f(items); err != nil {
			return err
		}
		m.Properties = items
		for key, text := range said {
			if err := sayProperty(&m.Image, key, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, uploadError(err)
	}
	return &picture{next, true, true}, nil
}
