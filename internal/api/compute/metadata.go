package compute

import (
	"maps"
	"net/http"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

func showMetadata(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"metadata": metadataOf(s)}}, nil
}

// changed is the status of an answer to a change of metadata.
func (r *request) changed() int {
	if r.flavour == cyclades {
		return http.StatusCreated
	}
	return http.StatusOK
}

func addMetadata(r *request) (result, error)     { return r.putMetadata(false) }
func replaceMetadata(r *request) (result, error) { return r.putMetadata(true) }

// readMetadata reads items that are said.
func (r *request) readMetadata() (map[string]string, error) {
	var body struct{ Metadata map[string]*string }
	if err := r.read(bodyOfMetadata, &body); err != nil {
		return nil, err
	}
	if body.Metadata == nil {
		return nil, fault.New(fault.Invalid, "Invalid input: 'metadata' is a required property").At("metadata")
	}
	return textsOf(body.Metadata)
}

// putMetadata sets items, beside those that there are or in their place.
func (r *request) putMetadata(replace bool) (result, error) {
	said, err := r.readMetadata()
	if err != nil {
		return result{}, err
	}
	s, err := r.withMetadata(func(items map[string]string) (map[string]string, error) {
		if replace {
			return said, nil
		}
		maps.Copy(items, said)
		return items, nil
	})
	if err != nil {
		return result{}, err
	}
	return result{r.changed(), object{"metadata": metadataOf(s)}}, nil
}

// withMetadata puts in place what f makes of a copy of a server's items.
func (r *request) withMetadata(f func(map[string]string) (map[string]string, error)) (*server.Server, error) {
	s, err := r.server()
	if err != nil {
		return nil, err
	}
	by, operator := r.asked(), r.administers()
	return r.api.cfg.Engine.Change(s.ID, func(s *server.Server) (*server.Server, error) {
		if err := s.Unlocked(operator); err != nil {
			return nil, err
		}
		items, err := f(maps.Clone(metadataOf(s)))
		if err == nil {
			err = r.checkMetadata(items, len(s.Metadata))
		}
		if err != nil || maps.Equal(items, s.Metadata) {
			return s, err
		}
		next := *s
		next.Metadata, next.Updated = items, by.Time
		return &next, nil
	})
}

// textsOf are the values of items. Null is none: an empty text would not be what was said.
func textsOf(said map[string]*string) (map[string]string, error) {
	if said == nil {
		return nil, nil //nolint:nilnil // nothing is said
	}
	out := make(map[string]string, len(said))
	for key, text := range said {
		if text == nil {
			return nil, fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: None. None is not of type 'string'", fault.Clip(key, 100)).At("metadata")
		}
		out[key] = *text
	}
	return out, nil
}

func errNoItem() error { return fault.New(fault.NotFound, "Metadata item was not found") }

func showItem(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	value, there := s.Metadata[r.path[1]]
	if !there {
		return result{}, errNoItem()
	}
	return result{http.StatusOK, object{"meta": object{r.path[1]: value}}}, nil
}

// readItem reads the one item of the path.
func (r *request) readItem() (map[string]string, error) {
	var body struct{ Meta map[string]*string }
	if err := r.read(bodyOfItem, &body); err != nil {
		return nil, err
	}
	if _, there := body.Meta[r.path[1]]; !there || len(body.Meta) != 1 {
		return nil, fault.New(fault.Invalid, "Invalid input: 'meta' must have the key of the path, and no other").At("meta")
	}
	return textsOf(body.Meta)
}

func putItem(r *request) (result, error) {
	said, err := r.readItem()
	if err != nil {
		return result{}, err
	}
	key := r.path[1]
	_, err = r.withMetadata(func(items map[string]string) (map[string]string, error) {
		items[key] = said[key]
		return items, nil
	})
	return result{r.changed(), object{"meta": said}}, err
}

func deleteItem(r *request) (result, error) {
	_, err := r.withMetadata(func(items map[string]string) (map[string]string, error) {
		if _, there := items[r.path[1]]; !there {
			return nil, errNoItem()
		}
		delete(items, r.path[1])
		return items, nil
	})
	return result{status: http.StatusNoContent}, err
}
