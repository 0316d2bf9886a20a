package compute

import (
	"encoding/base64"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

// maxUserData is how long user data may be as it is sent, Nova's own limit.
const maxUserData = 65535

// guest is what the machine of a new server is to be told at its first start; nil for nothing.
func (r *request) guest(c *creation, image *server.Image) (*server.Guest, error) {
	if c.KeyName == "" && c.UserData == "" {
		return nil, nil //nolint:nilnil // nothing is said
	}
	key := "key_name"
	if c.KeyName == "" {
		key = "user_data"
	}
	if err := image.TellsGuests(key); err != nil {
		return nil, err
	}
	g := &server.Guest{}
	if c.KeyName != "" {
		pair, err := r.keyPair(c.KeyName)
		if err != nil {
			return nil, err
		}
		g.KeyName, g.PublicKey = pair.Name, pair.Public
	}
	var err error
	g.UserData, err = userDataOf(c.UserData)
	return g, err
}

// keyPair is a key pair of who asks, by its name.
func (r *request) keyPair(name string) (server.Key, error) {
	p, err := r.api.cfg.Keys.Find(r.session.User.ID, name)
	if err != nil {
		return server.Key{}, fault.New(fault.Invalid, "Invalid key_name provided.").At("key_name").WithHint("openstack keypair list shows those that there are")
	}
	return server.Key{Name: name, Public: p.Public}, nil
}

// userDataOf reads user data as it is sent.
func userDataOf(sent string) (string, error) {
	if len(sent) > maxUserData {
		return "", fault.New(fault.Invalid, "Invalid input for field/attribute user_data. It is longer than %d", maxUserData).At("user_data")
	}
	text, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\r", "", "\n", "").Replace(sent))
	if err != nil { // it may hold secrets, so nothing of it is said
		return "", fault.New(fault.Invalid, "Invalid input for field/attribute user_data. It is not a 'base64'").At("user_data")
	}
	return string(text), nil
}

// keyNameOf is the key pair's name as servers show it.
func keyNameOf(s *server.Server) any { return orNull(s.KeyName()) }
