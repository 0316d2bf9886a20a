package compute

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rights"
)

func (r *request) flavorBody(f flavor.Flavor, full bool) object {
	link := r.base() + r.root() + "/flavors/" + url.PathEscape(f.ID)
	out := object{"id": r.number(f.ID), "name": f.Name, "links": []any{object{"rel": "self", "href": link}, object{"rel": "bookmark", "href": link}}}
	if r.since(withFlavorText) {
		out["description"] = nil
		if f.Description != "" {
			out["description"] = f.Description
		}
	}
	if full {
		out["ram"], out["disk"], out["vcpus"] = f.RAM, f.Disk, f.VCPUs
		out["swap"], out["OS-FLV-EXT-DATA:ephemeral"], out["OS-FLV-DISABLED:disabled"] = "", 0, false
		out["os-flavor-access:is_public"], out["rxtx_factor"] = !f.Private, 1.0
		if r.since(withExtraSpecs) {
			out["extra_specs"] = object{}
		}
		if r.since(strictly) {
			out["swap"] = 0
		}
	}
	return out
}

// administers tells whether who asks is an administrator, who sees and chooses private flavors, too.
func (r *request) administers() bool {
	return r.account.May(rights.Administer, rights.Of{}) == rights.Allowed
}

// flavor is the one of an id, if who asks may choose it.
func (r *request) flavor(id string) (flavor.Flavor, error) {
	f, err := r.api.cfg.Flavors.Find(id)
	if err == nil && !r.administers() && !f.For(r.session.Project.ID) {
		return flavor.Flavor{}, fault.New(fault.NotFound, "Flavor %s could not be found.", fault.Clip(id, 100)).At("flavor") // as where there is none
	}
	return f, err
}

// listExtraSpecs lists those of a flavor, of which there are none.
func listExtraSpecs(r *request) (result, error) {
	_, err := r.flavor(r.path[0])
	return result{http.StatusOK, object{"extra_specs": object{}}}, err
}

// flavors lists those that the query asks for, a page of them.
func (r *request) flavors(full bool) (result, error) {
	q := r.URL.Query()
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	all, err := r.visibleFlavors(q)
	if err == nil {
		all, err = flavorsFor(all, q)
	}
	if err != nil {
		return result{}, err
	}
	out, body := []any{}, object{}
	for _, f := range all[:min(limit, len(all))] {
		out = append(out, r.flavorBody(f, full))
	}
	if 0 < limit && limit < len(all) {
		q.Set("marker", all[limit-1].ID)
		body["flavors_links"] = []any{object{"rel": "next", "href": r.base() + r.URL.EscapedPath() + "?" + q.Encode()}}
	}
	body["flavors"] = out
	return result{http.StatusOK, body}, nil
}

// visibleFlavors are those that the project may choose. Which of them is_public says: the public ones and the project's own, unasked, too;
// the private ones; or all with None. Of private ones administrators see those of all projects where they ask for them.
func (r *request) visibleFlavors(q url.Values) ([]flavor.Flavor, error) {
	text := cmp.Or(q.Get("is_public"), "true")
	public, known := truth(text)
	all := strings.EqualFold(text, "none")
	if !known && !all {
		return nil, fault.New(fault.Invalid, "Invalid is_public filter [%s]", fault.Clip(text, 100)).At("is_public")
	}
	everybodys := r.administers() && (all || !public)
	return slices.DeleteFunc(slices.Clone(r.api.cfg.Flavors.All()), func(f flavor.Flavor) bool {
		return !everybodys && !f.For(r.session.Project.ID) || !all && !public && !f.Private
	}), nil
}

// flavorOrders are what flavors can be sorted by, under Nova's names.
var flavorOrders = map[string]func(a, b flavor.Flavor) int{
	"flavorid": func(a, b flavor.Flavor) int { return cmp.Compare(a.ID, b.ID) }, "name": func(a, b flavor.Flavor) int { return cmp.Compare(a.Name, b.Name) },
	"memory_mb": func(a, b flavor.Flavor) int { return cmp.Compare(a.RAM, b.RAM) }, "root_gb": func(a, b flavor.Flavor) int { return cmp.Compare(a.Disk, b.Disk) },
	"vcpus": func(a, b flavor.Flavor) int { return cmp.Compare(a.VCPUs, b.VCPUs) },
}

// sortFlavors puts flavors into the order that a query asks for: by their ids,
// upwards, if it asks for none. What is equal is in the order of ids.
func sortFlavors(all []flavor.Flavor, q url.Values) error {
	key, dir := cmp.Or(q.Get("sort_key"), "flavorid"), cmp.Or(q.Get("sort_dir"), "asc")
	order, known := flavorOrders[key]
	if !known {
		return fault.New(fault.Invalid, "Invalid input for query parameters sort_key. Value: %s", fault.Clip(key, 100)).At("sort_key")
	}
	if dir != "asc" && dir != "desc" {
		return fault.New(fault.Invalid, "Invalid input for query parameters sort_dir. Value: %s", fault.Clip(dir, 100)).At("sort_dir")
	}
	slices.SortFunc(all, func(a, b flavor.Flavor) int {
		if dir == "desc" {
			a, b = b, a
		}
		return cmp.Or(order(a, b), cmp.Compare(a.ID, b.ID))
	})
	return nil
}

// flavorsFor returns the flavors that a query asks for, in its order, and behind its
// marker. It may reorder all.
func flavorsFor(all []flavor.Flavor, q url.Values) ([]flavor.Flavor, error) {
	if err := sortFlavors(all, q); err != nil {
		return nil, err
	}
	if marker := q.Get("marker"); marker != "" {
		i := slices.IndexFunc(all, func(f flavor.Flavor) bool { return f.ID == marker })
		if i < 0 {
			return nil, noMarker(marker)
		}
		all = all[i+1:]
	}
	for _, least := range []struct {
		key string
		of  func(flavor.Flavor) int64
	}{{"minRam", func(f flavor.Flavor) int64 { return f.RAM }}, {"minDisk", func(f flavor.Flavor) int64 { return f.Disk }}} {
		text := q.Get(least.key)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid %s filter [%s]", least.key, fault.Clip(text, 100)).At(least.key)
		}
		all = slices.DeleteFunc(all, func(f flavor.Flavor) bool { return least.of(f) < n })
	}
	return all, nil
}

func listFlavors(r *request) (result, error)       { return r.flavors(false) }
func listFlavorsInFull(r *request) (result, error) { return r.flavors(true) }

func showFlavor(r *request) (result, error) {
	f, err := r.flavor(r.path[0])
	return result{http.StatusOK, object{"flavor": r.flavorBody(f, true)}}, err
}

// asks is how a change of flavors is asked for.
func (r *request) asks() flavor.Ask {
	who := r.asked()
	return flavor.Ask{By: audit.By{Account: reason.Account{Name: who.User, Surface: who.Front, From: who.From}}}
}

// sizeOf reads a number that clients write as a number or as a text.
func sizeOf(key string, raw json.RawMessage) (int64, error) {
	text := wordOf(raw)
	if text == "" || text == "null" {
		return 0, fault.New(fault.Invalid, "Invalid input for field/attribute flavor. '%s' is a required property", key).At(key)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: %s. It must be a whole number", key, fault.Clip(text, 40)).At(key)
	}
	return n, nil
}

// publicOf reads whether all projects may choose a flavor; they may if nothing is said.
func publicOf(raw json.RawMessage) (bool, error) {
	text := wordOf(raw)
	if text == "" {
		return true, nil
	}
	yes, known := truth(text)
	if !known {
		return false, fault.New(fault.Invalid, "Invalid input for field/attribute os-flavor-access:is_public. Value: %s. It must be a boolean", fault.Clip(text, 40)).At("os-flavor-access:is_public")
	}
	return yes, nil
}

// newFlavor is the body that makes a flavor.
type newFlavor struct {
	Name        string          `json:"name"`
	ID          json.RawMessage `json:"id"`
	RAM         json.RawMessage `json:"ram"`
	VCPUs       json.RawMessage `json:"vcpus"`
	Disk        json.RawMessage `json:"disk"`
	Public      json.RawMessage `json:"os-flavor-access:is_public"`
	Description *string         `json:"description"`
}

// flavor reads what is wanted.
func (n *newFlavor) flavor() (f flavor.Flavor, err error) {
	f.Name = n.Name
	if f.ID = wordOf(n.ID); f.ID == "auto" || f.ID == "null" {
		f.ID = "" // one is made
	}
	public, err := publicOf(n.Public)
	if err != nil {
		return f, err
	}
	if f.Private = !public; n.Description != nil {
		f.Description = *n.Description
	}
	for _, size := range []struct {
		key  string
		raw  json.RawMessage
		into *int64
	}{{"ram", n.RAM, &f.RAM}, {"vcpus", n.VCPUs, &f.VCPUs}, {"disk", n.Disk, &f.Disk}} {
		if *size.into, err = sizeOf(size.key, size.raw); err != nil {
			return f, err
		}
	}
	return f, nil
}

func addFlavor(r *request) (result, error) {
	var body struct{ Flavor *newFlavor }
	if err := r.read(bodyOfFlavor, &body); err != nil {
		return result{}, err
	}
	switch {
	case body.Flavor == nil:
		return result{}, fault.New(fault.Invalid, "Invalid input: 'flavor' is a required property").At("flavor")
	case body.Flavor.Description != nil && !r.since(withFlavorText):
		return result{}, noDescription("it is taken from microversion 2.55 on")
	}
	wish, err := body.Flavor.flavor()
	if err != nil {
		return result{}, err
	}
	f, err := r.api.cfg.Flavors.Add(r.Context(), wish, r.asks())
	if err != nil {
		return result{}, ofFlavors(err)
	}
	return result{http.StatusOK, object{"flavor": r.flavorBody(f, true)}}, nil
}

func noDescription(hint string) error {
	return fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('description' was unexpected)").At("description").WithHint("%s", hint)
}

// ofFlavors says in Nova's way what has other statuses there.
func ofFlavors(err error) error {
	switch fault.CodeOf(err) {
	case fault.Exists:
		return refused{err, http.StatusConflict}
	case fault.TooLarge:
		return refused{err, http.StatusForbidden}
	}
	return err
}

// describeFlavor changes what a flavor is described by, which is all that is ever changed of one.
func describeFlavor(r *request) (result, error) {
	if !r.since(withFlavorText) {
		return result{}, errNoRoute
	}
	var body struct {
		Flavor *struct {
			Description json.RawMessage `json:"description"`
		}
	}
	if err := r.read(bodyOfDescription, &body); err != nil {
		return result{}, err
	}
	if body.Flavor == nil || body.Flavor.Description == nil {
		return result{}, fault.New(fault.Invalid, "Invalid input for field/attribute flavor. 'description' is a required property").At("description")
	}
	text, err := clearable("description", body.Flavor.Description)
	if err != nil {
		return result{}, err
	}
	f, err := r.api.cfg.Flavors.Change(r.Context(), r.path[0], flavor.Edit{Description: text}, r.asks())
	return result{http.StatusOK, object{"flavor": r.flavorBody(f, true)}}, err
}

func removeFlavor(r *request) (result, error) {
	_, err := r.api.cfg.Flavors.Remove(r.Context(), r.path[0], r.asks())
	return result{status: http.StatusAccepted}, err
}

// accessBody is who may choose a private flavor.
func accessBody(f *flavor.Flavor) object {
	out := []any{}
	for _, p := range f.Projects {
		out = append(out, object{"flavor_id": f.ID, "tenant_id": p})
	}
	return object{"flavor_access": out}
}

func showFlavorAccess(r *request) (result, error) {
	f, err := r.api.cfg.Flavors.Find(r.path[0])
	if err == nil && !f.Private {
		err = fault.New(fault.NotFound, "Access list not available for public flavors.")
	}
	return result{http.StatusOK, accessBody(&f)}, err
}

// changeFlavorAccess lets the users of a project choose a private flavor, or no more.
func changeFlavorAccess(r *request) (result, error) {
	type project struct {
		Tenant string `json:"tenant"`
	}
	var body struct {
		Add    *project `json:"addTenantAccess"`
		Remove *project `json:"removeTenantAccess"`
	}
	if err := r.read(bodyOfAccess, &body); err != nil {
		return result{}, err
	}
	var edit flavor.Edit
	switch {
	case (body.Add == nil) == (body.Remove == nil):
		return result{}, fault.New(fault.Invalid, "The body of an action must be an object with one key").WithHint("there are addTenantAccess, removeTenantAccess")
	case body.Add != nil:
		release, err := r.api.cfg.Keep(body.Add.Tenant)
		if err != nil {
			return result{}, fault.New(fault.Invalid, "Project ID %s is not a valid project.", fault.Clip(body.Add.Tenant, 100)).At("tenant")
		}
		defer release()
		edit.Grant = []string{body.Add.Tenant}
	default:
		edit.Revoke = []string{body.Remove.Tenant}
	}
	f, err := r.api.cfg.Flavors.Change(r.Context(), r.path[0], edit, r.asks())
	return result{http.StatusOK, accessBody(&f)}, ofFlavors(err)
}
