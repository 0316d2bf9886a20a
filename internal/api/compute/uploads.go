package compute

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/upload"
)

// Limits of what is said of an image.
const (
	maxProperties = 128
	maxValue      = 4096 // characters
)

// Times of files that come and go.
const (
	// slowest is how long a client may send nothing of a file, or take nothing.
	slowest = time.Minute
	// patience is how long a request waits for the job that takes an image in, or out, before it answers that this goes on.
	patience = time.Minute
	// listens is how long what a client sends is read on that was refused: it hears of it when it has sent all.
	listens = 10 * time.Minute
)

// imageID is what an id may be that a client gives.
var imageID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// attributes are what clients may say of images, by its keys. Other keys are properties, which are kept and shown.
var attributes = map[string]func(r *request, m *upload.Image, raw json.RawMessage) error{
	"name": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		text, err := imageText("name", raw, maxName)
		m.Name = text
		return err
	},
	"visibility": setVisibility,
	"protected": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		return imageFlag("protected", raw, &m.Protected)
	},
	"os_hidden": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		return imageFlag("os_hidden", raw, &m.Hidden)
	},
	"min_disk": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		return imageNumber("min_disk", raw, &m.MinDisk)
	},
	"min_ram": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		return imageNumber("min_ram", raw, &m.MinRAM)
	},
	"disk_format": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		return imageForm("disk_format", raw, diskimage.Formats(), &m.DiskFormat)
	},
	"container_format": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		return imageForm("container_format", raw, []string{upload.Bare}, &m.ContainerFormat)
	},
	"tags": setImageTags,
	"owner": func(_ *request, m *upload.Image, raw json.RawMessage) error {
		if text := wordOf(raw); text != m.Project {
			return refused{fault.New(fault.Denied, "You are not permitted to create images owned by '%s'.", fault.Clip(text, 100)).At("owner"), http.StatusForbidden}
		}
		return nil
	},
}

// readOnly are the keys that images have, and nobody says.
var readOnly = []string{"status", "checksum", "size", "virtual_size", "created_at", "updated_at", "self", "file", "schema", "os_hash_algo", "os_hash_value", "direct_url", "stores", whyNot}

// refusedProperties are beginnings of properties that would change how machines are made of an image, or what is done to it, and why they do not.
var refusedProperties = []struct{ begins, why string }{
	{"os_glance", "such are the service's own"},
	{"locations", "a file is uploaded: there are no places that it is taken from"},
	{"hw_", "machines have the devices that the cluster gives them"},
	{"img_", "signatures are not checked, and there are no config drives"},
	{"trait:", "servers are placed by the cluster"},
	{"os_secure_boot", "machines have the firmware that the cluster gives them"},
	{"kernel_id", "machines start from their disk"},
	{"ramdisk_id", "machines start from their disk"},
	{"block_device_mapping", "a server has one disk"},
	{"bdm_v2", "a server has one disk"},
	{"mappings", "a server has one disk"},
	{"root_device_name", "a server has one disk"},
	{"cinder_", "there are no volumes"},
}

// say has an attribute or property of an image be what a client says.
func (r *request) say(m *upload.Image, key string, raw json.RawMessage) error {
	if set, known := attributes[key]; known {
		return set(r, m, raw)
	}
	if slices.Contains(readOnly, key) {
		return refused{fault.New(fault.Denied, "Attribute '%s' is read-only.", key).At(key), http.StatusForbidden}
	}
	if string(raw) == "null" { // as some clients have it of what they do not say
		return nil
	}
	if err := checkPropertyName(key); err != nil { // before its value: it may be one of another kind
		return err
	}
	text, err := imageText(key, raw, maxValue)
	if err != nil {
		return err
	}
	return sayProperty(m, key, text)
}

// checkPropertyName tells whether a property of an image may have this name.
func checkPropertyName(key string) error {
	if _, base := attributes[key]; base || key == "id" || slices.Contains(readOnly, key) {
		return refused{fault.New(fault.Denied, "'%s' is an attribute of images, which the Image API changes, and no property", key).At(key), http.StatusForbidden}
	}
	for _, p := range refusedProperties {
		if strings.HasPrefix(key, p.begins) {
			return refused{fault.New(fault.Invalid, "The property '%s' of images is not taken: %s", fault.Clip(key, 100), p.why).At(key), http.StatusForbidden}
		}
	}
	if key == "" || utf8.RuneCountInString(key) > maxName || strings.ContainsFunc(key, unicode.IsControl) {
		return fault.New(fault.Invalid, "The name of a property of an image must have 1 to %d characters, none of them a control character", maxName).At("properties")
	}
	return nil
}

// sayProperty has a property of an image be what a client says.
func sayProperty(m *upload.Image, key, text string) error {
	if err := checkPropertyName(key); err != nil {
		return err
	}
	if err := checkText(key, text, maxValue); err != nil {
		return err
	}
	if m.Properties == nil {
		m.Properties = map[string]string{}
	}
	m.Properties[key] = text
	if len(m.Properties) > maxProperties {
		return refused{fault.New(fault.TooLarge, "An image has at most %d properties", maxProperties).At("properties"), http.StatusRequestEntityTooLarge}
	}
	return nil
}

func imageText(key string, raw json.RawMessage, most int) (string, error) {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", fault.New(fault.Invalid, "Invalid image: '%s' must be a text", fault.Clip(key, 100)).At(key)
	}
	if text == nil {
		return "", nil
	}
	return *text, checkText(key, *text, most)
}

func checkText(key, text string, most int) error {
	if utf8.RuneCountInString(text) > most || strings.ContainsRune(text, 0) || key == "name" && strings.ContainsFunc(text, unicode.IsControl) {
		return fault.New(fault.Invalid, "Invalid image: '%s' must have at most %d characters, none of them a control character", fault.Clip(key, 100), most).At(key)
	}
	return nil
}

func imageFlag(key string, raw json.RawMessage, to *bool) error {
	yes, known := truth(wordOf(raw))
	if !known {
		return fault.New(fault.Invalid, "Invalid image: '%s' must be true or false", key).At(key)
	}
	*to = yes
	return nil
}

func imageNumber(key string, raw json.RawMessage, to *int64) error {
	n, err := strconv.ParseInt(wordOf(raw), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return fault.New(fault.Invalid, "Invalid image: '%s' must be a number from 0 to %d", key, math.MaxInt32).At(key)
	}
	*to = n
	return nil
}

func imageForm(key string, raw json.RawMessage, known []string, to *string) error {
	text, err := imageText(key, raw, maxName)
	if err == nil && text != "" && !slices.Contains(known, text) {
		err = fault.New(fault.Invalid, "Invalid image: '%s' is no %s that is taken here", fault.Clip(text, 100), key).At(key).WithHint("one of: %s", strings.Join(known, ", "))
	}
	if err == nil {
		*to = text
	}
	return err
}

// setVisibility: everybody may have an image of the project's own, and administrators one of all.
func setVisibility(r *request, m *upload.Image, raw json.RawMessage) error {
	switch text := wordOf(raw); {
	case text == "private":
		m.Public = false
	case text == "public" && m.Public:
	case text == "public" && r.account.May(rights.Administer, rights.Of{}) != rights.Allowed:
		return refused{fault.New(fault.Denied, "You are not authorized to complete publicize_image action.").At("visibility"), http.StatusForbidden}
	case text == "public":
		m.Public = true
	default:
		return fault.New(fault.Invalid, "Invalid image: the visibility '%s' is not there", fault.Clip(text, 100)).At("visibility").
			WithHint("private, which is of the project alone, or public; images are not shared with single projects")
	}
	return nil
}

func setImageTags(_ *request, m *upload.Image, raw json.RawMessage) error {
	var tags []string
	if err := json.Unmarshal(raw, &tags); err != nil {
		return fault.New(fault.Invalid, "Invalid image: 'tags' must be a list of texts").At("tags")
	}
	slices.Sort(tags)
	m.Tags = slices.Compact(tags)
	return checkImageTags(m.Tags)
}

func checkImageTags(tags []string) error {
	if len(tags) > maxProperties {
		return refused{fault.New(fault.TooLarge, "An image has at most %d tags", maxProperties).At("tags"), http.StatusRequestEntityTooLarge}
	}
	for _, tag := range tags {
		if tag == "" || utf8.RuneCountInString(tag) > maxName || strings.ContainsFunc(tag, unicode.IsControl) {
			return fault.New(fault.Invalid, "Invalid image: a tag must have 1 to %d characters, none of them a control character", maxName).At("tags")
		}
	}
	return nil
}

// uploadErrors are the statuses of errors of uploads, where those of other requests are others.
var uploadErrors = map[fault.Code]int{
	fault.Unsupported: http.StatusNotImplemented, fault.Exists: http.StatusConflict, fault.Denied: http.StatusForbidden, fault.Canceled: http.StatusBadRequest,
}

func uploadError(err error) error {
	if _, own := errors.AsType[refused](err); own || err == nil {
		return err
	}
	if errors.Is(err, upload.ErrGone) {
		return refused{err, http.StatusGone}
	}
	if status := uploadErrors[fault.CodeOf(err)]; status != 0 {
		return refused{err, status}
	}
	return err
}

func addImage(r *request) (result, error) {
	if r.api.cfg.Uploads == nil {
		return result{}, refused{fault.New(fault.Unsupported, "Images are not uploaded here"), http.StatusNotImplemented}
	}
	body := map[string]json.RawMessage{}
	if err := r.read(nil, &body); err != nil {
		return result{}, err
	}
	m := upload.Image{Project: r.session.Project.ID, User: r.session.User.ID}
	if raw, said := body["id"]; said {
		if m.ID = wordOf(raw); !imageID.MatchString(m.ID) {
			return result{}, fault.New(fault.Invalid, "Invalid image id format").At("id").WithHint("a UUID in small letters; or leave it out")
		}
		if _, err := r.api.cfg.Engine.Images().Find(m.ID); err == nil {
			return result{}, refused{fault.New(fault.Exists, "Image %s already exists!", m.ID).At("id"), http.StatusConflict}
		}
		delete(body, "id")
	}
	for key, raw := range body {
		if err := r.say(&m, key, raw); err != nil {
			return result{}, err
		}
	}
	release, err := r.api.cfg.Keep(m.Project)
	if err != nil {
		return result{}, err
	}
	defer release()
	made, err := r.api.cfg.Uploads.Add(r.Context(), m)
	if err != nil {
		return result{}, uploadError(err)
	}
	r.w.Header().Set("Location", r.base()+"/image/v2/images/"+made.ID)
	return result{http.StatusCreated, (&picture{made, true, true}).body()}, nil
}

// ownImage is the image of the path, if it is one that the project may change.
func (r *request) ownImage() (*picture, error) {
	p, err := r.picture(r.path[0])
	switch {
	case err != nil:
		return nil, err
	case !p.own:
		return nil, refused{fault.New(fault.Denied, "Image %s is the operator's", p.ID).WithHint("the operator removes and adds such: drover image"), http.StatusForbidden}
	case r.account.May(rights.Change, rights.Of{Project: p.Project}) != rights.Allowed:
		return nil, refused{fault.New(fault.Denied, "You are not permitted to modify this image: it is another project's."), http.StatusForbidden}
	}
	return p, nil
}

// change is one of those that a client asks for, as JSON Patch has them.
type change struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// Forms of changes of images: JSON Patch, and what it was before it had its name, with an object's one key in place of op and path.
const (
	patchMedia    = "application/openstack-images-v2.1-json-patch"
	oldPatchMedia = "application/openstack-images-v2.0-json-patch"
)

// readChanges reads what a client asks to have changed.
func (r *request) readChanges() ([]change, error) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind != patchMedia && kind != oldPatchMedia {
		r.w.Header().Set("Accept-Patch", patchMedia+", "+oldPatchMedia)
		return nil, errMedia
	}
	r.Header.Set("Content-Type", "application/json")
	if kind == patchMedia {
		var changes []change
		err := r.read(nil, &changes)
		return changes, err
	}
	var old []map[string]json.RawMessage
	if err := r.read(nil, &old); err != nil {
		return nil, err
	}
	changes := make([]change, len(old))
	for i, o := range old {
		c := &changes[i]
		for key, raw := range o {
			switch {
			case key == "value":
				c.Value = raw
			case c.Op != "":
				return nil, fault.New(fault.Invalid, "Operations must contain one of add, replace, remove, and value").At("op")
			default:
				c.Op, c.Path = key, wordOf(raw)
			}
		}
	}
	return changes, nil
}

func changeImage(r *request) (result, error) {
	changes, err := r.readChanges()
	if err != nil {
		return result{}, err
	}
	p, err := r.ownImage()
	if err != nil {
		return result{}, err
	}
	next, err := r.api.cfg.Uploads.Change(r.Context(), p.ID, func(m *upload.Shown) error {
		for i := range changes {
			if err := r.patch(m, &changes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return result{}, uploadError(err)
	}
	return result{http.StatusOK, (&picture{next, true, true}).body()}, nil
}

// patch does one change to an image.
func (r *request) patch(m *upload.Shown, c *change) error {
	key, ok := strings.CutPrefix(c.Path, "/")
	if !ok || key == "" || strings.Contains(key, "/") {
		return fault.New(fault.Invalid, "Invalid JSON pointer for this resource: '%s'", fault.Clip(c.Path, 100)).At("path").WithHint("/NAME of what is changed; tags are changed all together, by /tags")
	}
	key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
	_, base := attributes[key]
	_, has := m.Properties[key]
	switch {
	case c.Op != "add" && c.Op != "replace" && c.Op != "remove":
		return fault.New(fault.Invalid, "Operations must be one of add, replace, remove, not '%s'", fault.Clip(c.Op, 100)).At("op")
	case key == "id" || slices.Contains(readOnly, key):
		return refused{fault.New(fault.Denied, "Attribute '%s' is read-only.", key).At(key), http.StatusForbidden}
	case c.Op == "remove" && base:
		return refused{fault.New(fault.Denied, "Property %s may not be removed.", key).At(key), http.StatusForbidden}
	case c.Op != "add" && !base && !has:
		return refused{fault.New(fault.Conflict, "Property %s does not exist.", fault.Clip(key, 100)).At(key), http.StatusConflict}
	case c.Op == "remove":
		delete(m.Properties, key)
		return nil
	case c.Value == nil:
		return fault.New(fault.Invalid, "Operation \"%s\" requires a member named \"value\".", c.Op).At("value")
	}
	formats := [2]string{m.DiskFormat, m.ContainerFormat}
	if err := r.say(&m.Image, key, c.Value); err != nil {
		return err
	}
	if m.Status != upload.Queued && formats != [2]string{m.DiskFormat, m.ContainerFormat} {
		return refused{fault.New(fault.Denied, "Attribute %s can be only replaced for a queued image.", key).At(key), http.StatusForbidden}
	}
	return nil
}

// tagImage puts a tag on an image, or takes it away.
func tagImage(put bool) handler {
	return func(r *request) (result, error) {
		p, err := r.ownImage()
		if err != nil {
			return result{}, err
		}
		tag := r.path[1]
		_, err = r.api.cfg.Uploads.Change(r.Context(), p.ID, func(m *upload.Shown) error {
			i, has := slices.BinarySearch(m.Tags, tag)
			switch {
			case put && !has:
				m.Tags = slices.Insert(m.Tags, i, tag)
			case !put && !has:
				return fault.New(fault.NotFound, "Image %s has no tag '%s'", m.ID, fault.Clip(tag, 100))
			case !put:
				m.Tags = slices.Delete(m.Tags, i, i+1)
			}
			return checkImageTags(m.Tags)
		})
		return result{status: http.StatusNoContent}, uploadError(err)
	}
}

func deleteImage(r *request) (result, error) {
	p, err := r.ownImage()
	if err != nil {
		return result{}, err
	}
	err = r.api.cfg.Uploads.Remove(r.Context(), p.ID, r.imageTrail("remove image "+p.ID), patience)
	return result{status: http.StatusNoContent}, uploadError(err)
}

// imageTrail tells for whom the job of an image is.
func (r *request) imageTrail(what string) reason.Trail {
	by := r.asked()
	now := time.UnixMicro(int64(by.Time))
	return reason.Trail{
		reason.Account{Surface: by.Front, Name: by.User, From: by.From}.Entry(now),
		{Source: reason.ReservedPrefix + "image", Reason: what + ", request " + by.Request, Time: now.UnixNano()},
	}
}

// IsFile tells whether a request is about the file of an image, which may take as long as it takes.
func IsFile(r *http.Request) bool {
	of, rest, _ := flavourOf(r.URL.EscapedPath())
	return of == glance && strings.HasPrefix(rest, "images/") && strings.HasSuffix(rest, "/file")
}

// AtLeisure is a request about a file without the bounds of others: what its client sends and takes may take long, and nothing may come, or go, for as long as
// slowest. Who has it calls done at its end.
func AtLeisure(w http.ResponseWriter, r *http.Request) (out http.ResponseWriter, in *http.Request, done func()) {
	control := http.NewResponseController(w)
	body := &fileBody{ctx: r.Context(), ReadCloser: r.Body, control: control}
	in = r.Clone(r.Context())
	in.Body = body
	stop := context.AfterFunc(r.Context(), body.hurry)
	return fileAnswer{w, control}, in, func() { stop() }
}

// fileAnswer is the answer to such a request.
type fileAnswer struct {
	http.ResponseWriter

	control *http.ResponseController
}

// WriteHeader begins it.
func (w fileAnswer) WriteHeader(status int) {
	_ = w.control.SetWriteDeadline(time.Now().Add(slowest)) // where nothing is bounded there is none
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of it.
func (w fileAnswer) Write(part []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(slowest)) // where nothing is bounded there is none
	return w.ResponseWriter.Write(part)
}

// Unwrap is for http.ResponseController.
func (w fileAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fileBody is the body of such a request.
type fileBody struct {
	io.ReadCloser

	ctx     context.Context //nolint:containedctx // of the request
	control *http.ResponseController
	err     error
}

// Read reads a part of it.
func (b *fileBody) Read(to []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	_ = b.control.SetReadDeadline(time.Now().Add(slowest)) // where nothing is bounded there is none
	if b.ctx.Err() != nil {
		b.hurry()
	}
	var n int
	n, b.err = b.ReadCloser.Read(to)
	return n, b.err
}

// hurry has nobody wait for the client.
func (b *fileBody) hurry() { _ = b.control.SetReadDeadline(time.Unix(1, 0)) }

// rest reads what the client sends on, for a while: one that has sent all hears why it was for nothing.
func rest(ctx context.Context, body io.Reader) {
	part := make([]byte, 64<<10)
	for until := time.Now().Add(listens); time.Now().Before(until) && ctx.Err() == nil; {
		if _, err := body.Read(part); err != nil {
			return
		}
	}
}

func uploadImage(r *request) (result, error) {
	w, in, done := AtLeisure(r.w, r.Request)
	defer done()
	r.w, r.Request = w, in
	err := r.takeFile()
	if err != nil {
		rest(r.Context(), r.Body)
	}
	return result{status: http.StatusNoContent}, uploadError(err)
}

func (r *request) takeFile() error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind != "application/octet-stream" {
		return errMedia
	}
	p, err := r.ownImage()
	if err != nil {
		return err
	}
	return r.api.cfg.Uploads.Take(r.Context(), p.ID, r.Body, r.ContentLength, r.imageTrail("take image "+p.ID+" in"), patience)
}

// downloadImage sends the file of an image that was uploaded.
func downloadImage(r *request) (result, error) {
	p, err := r.picture(r.path[0])
	switch {
	case err != nil:
		return result{}, err
	case !p.own:
		return result{}, refused{fault.New(fault.Denied, "The file of image %s is on nodes of the cluster, and is not given out", p.ID), http.StatusForbidden}
	case p.Status != upload.Active:
		return result{status: http.StatusNoContent}, nil // as Glance has it where there is no file
	}
	f, file, err := r.api.cfg.Uploads.Content(p.ID)
	if err != nil {
		return result{}, err
	}
	defer f.Close() //nolint:errcheck // it was read
	h := r.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	h.Set("Content-MD5", file.MD5)
	w, _, done := AtLeisure(r.w, r.Request)
	defer done()
	w.WriteHeader(http.StatusOK)
	_, _ = io.CopyN(onlyWriter{w}, f, file.Size) // of one that ends too early the client hears by its length
	return result{status: sent}, nil
}

// onlyWriter is written to part by part.
type onlyWriter struct{ io.Writer }
