package compute

import (
	"net/http"

	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

func (r *request) flavorBody(f server.Flavor, full bool) object {
	link := r.base() + r.root() + "/flavors/" + f.ID
	out := object{"id": r.number(f.ID), "name": f.Name, "links": []any{object{"rel": "self", "href": link}, object{"rel": "bookmark", "href": link}}}
	if full {
		out["ram"], out["disk"], out["vcpus"] = f.RAM, f.Disk, f.VCPUs
		out["swap"], out["OS-FLV-EXT-DATA:ephemeral"], out["OS-FLV-DISABLED:disabled"] = "", 0, false
		out["os-flavor-access:is_public"], out["rxtx_factor"] = true, 1.0
	}
	return out
}

func (r *request) flavors(full bool) (result, error) {
	out := []any{}
	if r.URL.Query().Get("marker") == "" { // they all are on the first page
		for _, f := range r.api.cfg.Engine.Catalogue().Flavors {
			out = append(out, r.flavorBody(f, full))
		}
	}
	return result{http.StatusOK, object{"flavors": out}}, nil
}

func listFlavors(r *request) (result, error)       { return r.flavors(false) }
func listFlavorsInFull(r *request) (result, error) { return r.flavors(true) }

func showFlavor(r *request) (result, error) {
	f, err := r.api.cfg.Engine.Catalogue().Flavor(r.path[0])
	return result{http.StatusOK, object{"flavor": r.flavorBody(f, true)}}, err
}

// oldImageBody is an image as the Compute API once showed it.
func (r *request) oldImageBody(m server.Image) object {
	link := r.base() + r.root() + "/images/" + m.ID
	return object{"id": m.ID, "name": m.Name, "status": "ACTIVE", "progress": 100, "minDisk": 0, "minRam": 0, "metadata": object{},
		"created": created, "updated": created, "links": []any{object{"rel": "self", "href": link}, object{"rel": "bookmark", "href": link}}}
}

// created is when images were made: they come with the program.
const created = "2026-01-01T00:00:00Z"

func listOldImages(r *request) (result, error) {
	if r.since(withoutImages) {
		return result{}, errNoRoute
	}
	out := []any{}
	for _, m := range r.api.cfg.Engine.Catalogue().Images {
		out = append(out, r.oldImageBody(m))
	}
	return result{http.StatusOK, object{"images": out}}, nil
}

func showOldImage(r *request) (result, error) {
	if r.since(withoutImages) {
		return result{}, errNoRoute
	}
	m, err := r.api.cfg.Engine.Catalogue().Image(r.path[0])
	return result{http.StatusOK, object{"image": r.oldImageBody(m)}}, err
}

// imageBody is an image as the Image API shows it.
func imageBody(m server.Image) object {
	return object{"id": m.ID, "name": m.Name, "status": "active", "visibility": "public", "protected": false, "os_hidden": false, "tags": []any{},
		"min_disk": 0, "min_ram": 0, "size": 0, "disk_format": "raw", "container_format": "bare", "checksum": nil, "owner": nil, "virtual_size": nil,
		"created_at": created, "updated_at": created, "self": "/v2/images/" + m.ID, "file": "/v2/images/" + m.ID + "/file", "schema": "/v2/schemas/image"}
}

func listImages(r *request) (result, error) {
	q, out := r.URL.Query(), []any{}
	for _, m := range r.api.cfg.Engine.Catalogue().Images {
		if name := q.Get("name"); (name == "" || name == m.Name) && q.Get("marker") == "" {
			out = append(out, imageBody(m))
		}
	}
	return result{http.StatusOK, object{"images": out, "first": "/v2/images", "schema": "/v2/schemas/images"}}, nil
}

func showImage(r *request) (result, error) {
	m, err := r.api.cfg.Engine.Catalogue().Image(r.path[0])
	return result{http.StatusOK, imageBody(m)}, err
}

// limits tells what a server may have.
func limits(r *request) (result, error) {
	return result{http.StatusOK, object{"limits": object{"rate": []any{}, "absolute": object{
		"maxServerTags": r.api.cfg.Engine.Policy().Max[servertag.User], "maxServerTagLength": servertag.MaxName,
		"maxTotalInstances": -1, "maxTotalCores": -1, "maxTotalRAMSize": -1, "maxServerMeta": maxMetadata,
	}}}}, nil
}
