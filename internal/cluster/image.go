package cluster

import (
	"encoding/hex"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Image is the content of a disk that machines are installed from. It is known by what is in it: nodes have copies, and
// whether one of them is right its SHA-256 says.
type Image struct {
	Meta
	Name string `json:"name"`
	// SHA256 is that of the file, as hexadecimal digits.
	SHA256 string `json:"sha256"`
	// Format is "raw" or "qcow2".
	Format string `json:"format"`
	// Source is where nodes get it: an absolute path that they can read, a URL, or what UploadSource makes.
	Source string `json:"source"`
	// Size of the file in bytes.
	Size int64 `json:"size"`
	// VirtualSize is how large a disk must be to have room for its content, in MiB.
	VirtualSize int64 `json:"virtual_size"`
}

// Kind is KindImage.
func (*Image) Kind() Kind { return KindImage }

// Label returns the image's name.
func (i *Image) Label() string { return i.Name }

// Clone returns a deep copy that may be altered.
func (i *Image) Clone() *Image {
	c := *i
	c.Tags = slices.Clone(i.Tags)
	return &c
}

// ImageOS is the name of the operating system whose variants are the images: image+NAME.
const ImageOS = "image"

// Pretended is the kind of hypervisor whose disks have no content.
const Pretended = "fake"

// ImageParameters are the parameters of the operating system ImageOS: what a machine is told at its first start, each with what it is.
func ImageParameters() [][2]string {
	return [][2]string{
		{UserData, "what to do at the first start: #cloud-config, or a script (cloud-init's user data)"},
		{SSHKeys, "public keys of who may log in, one a line"},
		{NetworkConfig, "what the networks are, as YAML (cloud-init's network configuration); without it an address is asked for"},
	}
}

// The parameters of ImageOS.
const (
	UserData      = "user_data"
	SSHKeys       = "ssh_keys"
	NetworkConfig = "network_config"
)

// maxImageName and maxSource are how long names and sources of images may be, in bytes.
const (
	maxImageName = 100
	maxSource    = 4096
)

// CheckImageName refuses names of images that could not be variants of an operating system.
func CheckImageName(name string) error {
	ok := name != "" && len(name) <= maxImageName && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) && name[0] != '.' && name[0] != '-'
	if !ok {
		return fault.New(fault.Invalid, "%.300q is not a valid name of an image", name).At("image_name").
			WithHint("1 to %d letters, digits, dots, dashes and underscores, and a letter, digit or underscore first", maxImageName)
	}
	return nil
}

// CheckSHA256 refuses what is no SHA-256.
func CheckSHA256(sum string) error {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 || strings.ToLower(sum) != sum {
		return fault.New(fault.Invalid, "%.100q is no SHA-256", sum).At("sha256").WithHint("64 hexadecimal digits, as sha256sum prints them")
	}
	return nil
}

// uploaded begins the source of an image that a user brought, and the controller brings to nodes.
const uploaded = "upload:"

// UploadSource is the source of an image that was uploaded, by its id, which is its name in the inventory, too.
func UploadSource(id string) string { return uploaded + id }

// Upload is the id of the image that was uploaded, by its source; false for any other source.
func Upload(source string) (id string, is bool) {
	id, is = strings.CutPrefix(source, uploaded)
	return id, is && uploadID.MatchString(id)
}

var uploadID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// CheckSource refuses sources of images that no node could read, and those that would tell a password to whoever lists images.
func CheckSource(source string) error {
	if _, is := Upload(source); is {
		return nil
	}
	u, err := url.Parse(source)
	switch {
	case len(source) > maxSource, strings.ContainsFunc(source, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fault.New(fault.Invalid, "the source %.100q is too long, or has characters that no source has", source).At("source")
	case strings.HasPrefix(source, "/"):
		if path.Clean(source) != source {
			return fault.New(fault.Invalid, "the source %.300q is not the shortest way to write that path", source).At("source").WithHint("%s", path.Clean(source))
		}
		return nil
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fault.New(fault.Invalid, "%.300q is no source of an image", source).At("source").
			WithHint("an absolute path that nodes can read, or a URL that begins with https:// or http://")
	case u.User != nil:
		return fault.New(fault.Invalid, "the source has a user or a password, and everybody who lists images would see them").At("source").
			WithHint("have it where nodes need none, or put the file on the nodes and name its path")
	}
	return nil
}
