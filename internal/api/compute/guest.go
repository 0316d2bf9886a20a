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
	if image.File == nil {
		return nil, fault.New(fault.Invalid, "Image %s takes no %s: nothing is put into a machine of an operating system that the cluster installs by its own scripts", image.ID, key).At(key).
			WithHint("images of disks take them (drover image add), as those of clouds have cloud-init")
	}
	g := &server.Guest{KeyName: c.KeyName}
	if c.KeyName != "" {
		p, err := r.api.cfg.Keys.Find(r.session.User.ID, c.KeyName)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid key_name provided.").At("key_name").WithHint("openstack keypair list shows those that there are")
		}
		g.PublicKey = p.Public
	}
	if c.UserData == "" {
		return g, nil
	}
	if len(c.UserData) > maxUserData {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute user_data. It is longer than %d", maxUserData).At("user_data")
	}
	text, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\r", "", "\n", "").Replace(c.UserData))
	if err != nil { // it may hold secrets, so nothing of it is said
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute user_data. It is not a 'base64'").At("user_data")
	}
	g.UserData = string(text)
	return g, nil
}

// keyNameOf is the key pair's name as servers show it.
func keyNameOf(s *server.Server) any { return orNull(s.KeyName()) }
