package openstack

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"

	"github.com/drover-project/drover/internal/fault"
)

// Server is a server as the Compute API shows it.
type Server struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Status  string   `json:"status"`
	Task    *string  `json:"OS-EXT-STS:task_state"`
	Project string   `json:"tenant_id"`
	User    string   `json:"user_id"`
	Created string   `json:"created"`
	Updated string   `json:"updated"`
	Flavor  Flavor   `json:"flavor"`
	Image   Image    `json:"image"`
	Tags    []string `json:"tags"`
	Fault   *struct {
		Message string `json:"message"`
	} `json:"fault,omitempty"`
	// Locked: its users have nothing done to it.
	Locked bool `json:"locked"`
	// LockReason is why; nil where nobody said.
	LockReason  *string           `json:"locked_reason"`
	Description *string           `json:"description"`
	Metadata    map[string]string `json:"metadata"`
	// KeyName is the key pair that it was made with; nil without one.
	KeyName *string `json:"key_name"`
	// Groups are the ids of the server groups that it is in.
	Groups []string `json:"server_groups,omitempty"`
	// Addresses are by the names of networks.
	Addresses map[string][]Address `json:"addresses"`
}

// Address is one of a server.
type Address struct {
	IP string `json:"addr"`
}

// NIC is an interface of a server to be made: a network by name or id, and perhaps an address in it.
type NIC struct{ Network, IP string }

// Flavor is a size of servers. Within a server it has no id.
type Flavor struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name,omitempty"`
	Original string `json:"original_name,omitempty"`
	VCPUs    int    `json:"vcpus"`
	RAM      int    `json:"ram"`
	Disk     int    `json:"disk"`
}

// Image is what servers are made from.
type Image struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Status is how far it has come: active when servers can be made of it.
	Status string `json:"status,omitempty"`
}

// Action is something that was done to a server, or is being done.
type Action struct {
	Action string `json:"action"`
	// Message is why it failed, as far as it did.
	Message string `json:"message"`
}

const compute = "compute"

// Servers lists the servers of the project that a query asks for, all pages of
// them.
func (c *Client) Servers(ctx context.Context, query url.Values) ([]Server, error) {
	all := []Server{}
	for {
		var page struct {
			Servers []Server
			Links   []json.RawMessage `json:"servers_links"`
		}
		if _, err := c.Do(ctx, http.MethodGet, compute, []string{"servers", "detail"}, query, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Servers...)
		if len(page.Links) == 0 || len(page.Servers) == 0 {
			return all, nil
		}
		next := url.Values{}
		maps.Copy(next, query)
		next.Set("marker", page.Servers[len(page.Servers)-1].ID)
		query = next
	}
}

// Server shows the server with an id.
func (c *Client) Server(ctx context.Context, id string) (Server, error) {
	var out struct{ Server Server }
	_, err := c.Do(ctx, http.MethodGet, compute, []string{"servers", id}, nil, nil, &out)
	return out.Server, err
}

// FindServer finds a server by id or name. NotFound, and Ambiguous for a name
// that several have.
func (c *Client) FindServer(ctx context.Context, key string) (Server, error) {
	found, err := c.Servers(ctx, url.Values{"name": {"^" + regexp.QuoteMeta(key) + "$"}})
	if err != nil {
		return Server{}, err
	}
	if len(found) == 0 {
		switch s, err := c.Server(ctx, key); {
		case err == nil:
			return s, nil
		case !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid): // an outage is no absence
			return Server{}, err
		}
	}
	return one("server", key, found, func(s Server) string { return s.ID }, func(s Server) string { return s.Name })
}

// Wish is a server to be made. Flavor and Image are names or ids.
type Wish struct {
	Name, Flavor, Image string
	Network             bool   // with a network interface, as the cluster has them
	NICs                []NIC  // in place of that: in these networks
	Key                 string // the name of a key pair; empty for none
	UserData            string // what its machine is told at the first start
	Zone                string // availability zone; empty for any
	Metadata            map[string]string
	Tags                []string
}

// Create has a server made, and returns its id.
func (c *Client) Create(ctx context.Context, w *Wish) (string, error) {
	flavor, err := c.FindFlavor(ctx, w.Flavor)
	if err != nil {
		return "", err
	}
	image, err := c.FindImage(ctx, w.Image)
	if err != nil {
		return "", err
	}
	body := object{"name": w.Name, "flavorRef": flavor.ID, "imageRef": image.ID, "networks": "none"}
	if w.Network {
		body["networks"] = "auto"
	}
	if len(w.NICs) > 0 {
		if body["networks"], err = c.nics(ctx, w.NICs); err != nil {
			return "", err
		}
	}
	if w.Key != "" {
		body["key_name"] = w.Key
	}
	if w.UserData != "" {
		body["user_data"] = base64.StdEncoding.EncodeToString([]byte(w.UserData))
	}
	if w.Zone != "" {
		body["availability_zone"] = w.Zone
	}
	if len(w.Tags) > 0 {
		body["tags"] = w.Tags
	}
	if len(w.Metadata) > 0 {
		body["metadata"] = w.Metadata
	}
	var out struct{ Server Server }
	_, err = c.Do(ctx, http.MethodPost, compute, []string{"servers"}, nil, object{"server": body}, &out)
	return out.Server.ID, err
}

// Network is one that servers may be in.
type Network struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Networks lists those that servers may be in.
func (c *Client) Networks(ctx context.Context) ([]Network, error) {
	var out struct{ Networks []Network }
	_, err := c.Do(ctx, http.MethodGet, "network", []string{"v2.0", "networks"}, nil, nil, &out)
	return out.Networks, err
}

// nics are interfaces as the Compute API reads them.
func (c *Client) nics(ctx context.Context, wished []NIC) ([]object, error) {
	networks, err := c.Networks(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]object, len(wished))
	for i, nic := range wished {
		n, err := one("network", nic.Network, networks, func(n Network) string { return n.ID }, func(n Network) string { return n.Name })
		if err != nil {
			return nil, err
		}
		out[i] = object{"uuid": n.ID}
		if nic.IP != "" {
			out[i]["fixed_ip"] = nic.IP
		}
	}
	return out, nil
}

// Flavors lists the sizes that servers may have, and Images what they are made
// from.
func (c *Client) Flavors(ctx context.Context) ([]Flavor, error) {
	var out struct{ Flavors []Flavor }
	_, err := c.Do(ctx, http.MethodGet, compute, []string{"flavors", "detail"}, nil, nil, &out)
	return out.Flavors, err
}

// Images lists what servers are made from, of all pages: Glance's have 25.
func (c *Client) Images(ctx context.Context) ([]Image, error) {
	var all []Image
	var query url.Values
	for {
		var page struct {
			Images []Image
			Next   string
		}
		if _, err := c.Do(ctx, http.MethodGet, "image", []string{"v2", "images"}, query, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Images...)
		if page.Next == "" || len(page.Images) == 0 {
			return all, nil
		}
		query = url.Values{"marker": {page.Images[len(page.Images)-1].ID}}
	}
}

// FindImage finds an image by id, or by name.
func (c *Client) FindImage(ctx context.Context, key string) (Image, error) {
	all, err := c.Images(ctx)
	if err != nil {
		return Image{}, err
	}
	return one("image", key, all, func(m Image) string { return m.ID }, func(m Image) string { return m.Name })
}

// Delete has a server deleted.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := c.Do(ctx, http.MethodDelete, compute, []string{"servers", id}, nil, nil, nil)
	return err
}

// FindFlavor finds a flavor by id, or by name.
func (c *Client) FindFlavor(ctx context.Context, key string) (Flavor, error) {
	all, err := c.Flavors(ctx)
	if err != nil {
		return Flavor{}, err
	}
	return one("flavor", key, all, func(f Flavor) string { return f.ID }, func(f Flavor) string { return f.Name })
}

// Act has something done to a server: an action of the Compute API with its
// argument.
func (c *Client) Act(ctx context.Context, id, action string, argument any) error {
	_, err := c.Do(ctx, http.MethodPost, compute, []string{"servers", id, "action"}, nil, object{action: argument}, nil)
	return err
}

// Capture has an image made of the disk of a server, and returns its id.
func (c *Client) Capture(ctx context.Context, id, name string) (string, error) {
	var out struct {
		ID string `json:"image_id"`
	}
	_, err := c.Do(ctx, http.MethodPost, compute, []string{"servers", id, "action"}, nil, object{"createImage": object{"name": name}}, &out)
	return out.ID, err
}

// Image is one by its id.
func (c *Client) Image(ctx context.Context, id string) (Image, error) {
	var out Image
	_, err := c.Do(ctx, http.MethodGet, "image", []string{"v2", "images", id}, nil, nil, &out)
	return out, err
}

// Actions are what was done to a server, and is being done, the newest first.
func (c *Client) Actions(ctx context.Context, id string) ([]Action, error) {
	var out struct {
		Actions []Action `json:"instanceActions"`
	}
	_, err := c.Do(ctx, http.MethodGet, compute, []string{"servers", id, "os-instance-actions"}, nil, nil, &out)
	return out.Actions, err
}

// Printed is what a server printed on its serial line last: so many lines of it, or all that the cloud keeps for a number below zero.
func (c *Client) Printed(ctx context.Context, id string, lines int) (string, error) {
	var out struct{ Output string }
	_, err := c.Do(ctx, http.MethodPost, compute, []string{"servers", id, "action"}, nil, object{"os-getConsoleOutput": object{"length": lines}}, &out)
	return out.Output, err
}

// Tags lists the tags of a server.
func (c *Client) Tags(ctx context.Context, id string) ([]string, error) {
	var out struct{ Tags []string }
	_, err := c.Do(ctx, http.MethodGet, compute, []string{"servers", id, "tags"}, nil, nil, &out)
	return out.Tags, err
}

// Tag sends a request about one tag: GET, PUT or DELETE.
func (c *Client) Tag(ctx context.Context, method, id, tag string) (Response, error) {
	if tag == "" || tag == "." || tag == ".." { // it would be another path
		return Response{}, refusal(http.StatusBadRequest, []byte(`{"badRequest":{"message":"a tag cannot be empty, '.' or '..'"}}`))
	}
	return c.Do(ctx, method, compute, []string{"servers", id, "tags", tag}, nil, nil, nil)
}

// Replace makes tags all that a server has, and returns them.
func (c *Client) Replace(ctx context.Context, id string, tags []string) ([]string, error) {
	var out struct{ Tags []string }
	if tags == nil {
		tags = []string{}
	}
	_, err := c.Do(ctx, http.MethodPut, compute, []string{"servers", id, "tags"}, nil, object{"tags": tags}, &out)
	return out.Tags, err
}

// Clear removes all tags of a server.
func (c *Client) Clear(ctx context.Context, id string) error {
	_, err := c.Do(ctx, http.MethodDelete, compute, []string{"servers", id, "tags"}, nil, nil, nil)
	return err
}

// Life is what became of a tag, as Drover tells it.
type Life struct {
	Name       string `json:"name"`
	Raw        string `json:"raw"`
	Status     string `json:"status"`
	Wanted     bool   `json:"wanted"`
	Generation int64  `json:"generation"`
	Tries      int    `json:"tries,omitempty"`
	Asked      struct {
		User    string `json:"user"`
		Front   string `json:"front"`
		Request string `json:"request,omitempty"`
		Time    string `json:"time"`
	} `json:"asked"`
	Failure string `json:"failure,omitempty"`
	// Job is changing it now, and Waits says what for.
	Job    int64       `json:"job,omitempty"`
	Waits  string      `json:"waits,omitempty"`
	Events []LifeEvent `json:"events"`
}

// LifeEvent is something that happened to a tag.
type LifeEvent struct {
	Time string `json:"time"`
	What string `json:"what"`
	Job  int64  `json:"job,omitempty"`
	Text string `json:"text,omitempty"`
}

// Life tells the life of a tag. Only Drover knows it.
func (c *Client) Life(ctx context.Context, id, tag string) (Life, error) {
	var out struct{ Tag Life }
	_, err := c.Do(ctx, http.MethodGet, compute, []string{"servers", id, "os-drover-tag-lives", tag}, nil, nil, &out)
	return out.Tag, err
}
