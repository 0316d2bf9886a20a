package inventory

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/cluster"
)

// ImageList is how images are listed.
var ImageList = lists.List{What: "image", Fields: []string{"name", "format", "virtual_size", "sha256", "source"},
	NameField: "name", Stored: true, Short: "List images"}

// ImageCommand returns the noun "image".
func ImageCommand(sh *shell.Shell) *cobra.Command {
	info := lists.ItemInfo(sh, ImageList)
	info.Aliases = []string{"show"}
	verbs := []*cobra.Command{lists.Command(sh, ImageList), lists.FieldsCommand(sh, ImageList), info}
	for _, o := range []work.Operation{
		{Verb: "add", Short: "Add an image that instances can be installed from", ID: "OP_IMAGE_ADD", Target: "image_name", Places: []string{"source"}, Own: true,
			Long: imageAddHelp, Names: map[string]string{"node": "node_name"}},
		{Verb: "remove", Short: "Remove images; instances stay as they are", ID: "OP_IMAGE_REMOVE", Target: "image_name", Complete: "image", Own: true},
	} {
		o.Noun = "image"
		verbs = append(verbs, o.Command(sh))
	}
	return sh.Group("image", "Images that instances are installed from", verbs...)
}

const imageAddHelp = `Add an image that instances can be installed from.

SOURCE is where nodes get it: a URL (https://, http://), or an absolute path
that they can read. A node fetches it and looks at it: qcow2 is found by its
content, and raw if a machine could start from it; else say --format raw.
With --sha256 the file has to have that sum; without, the sum is found, and
every other node holds its copy to it.

  drover image add debian12 https://cloud.debian.org/.../generic-amd64.qcow2
  drover instance add web1 --image debian12 -s 8G --ssh-key ~/.ssh/id.pub`

// imageOptions are the options by which an instance is installed from an image. They stand for its operating system and its parameters.
func imageOptions(cmd *cobra.Command) func(map[string]any) error {
	const param = "os_type"
	f := cmd.Flags()
	image := f.String("image", "", "install this image; the same as --os image+NAME")
	keys := f.StringArray("ssh-key", nil, "file of public keys of who may log in; may be repeated")
	userData := f.String("user-data", "", "file that says what to do at the first start, for cloud-init; it is not shown to anybody")
	return func(params map[string]any) error {
		if *image == "" && len(*keys) == 0 && *userData == "" {
			return nil
		}
		if *image != "" {
			if params[param] != nil {
				return shell.Usage("--image and --os exclude each other: an image is an operating system, %s+NAME", cluster.ImageOS)
			}
			params[param] = cluster.ImageOS + "+" + *image
		}
		var all strings.Builder
		for _, file := range *keys {
			text, err := shell.TextOf(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			all.WriteString(strings.TrimRight(text, "\n") + "\n")
		}
		if err := withParam(params, "osparams", cluster.SSHKeys, all.String()); err != nil {
			return err
		}
		if *userData == "" {
			return nil
		}
		text, err := shell.TextOf(cmd.InOrStdin(), *userData)
		if err != nil {
			return err
		}
		return withParam(params, "osparams_private", cluster.UserData, text)
	}
}

// withParam adds a parameter of an operating system to those that are given; an empty one is none.
func withParam(params map[string]any, of, name, value string) error {
	if value == "" {
		return nil
	}
	given, isMap := params[of].(map[string]any)
	switch {
	case params[of] == nil:
		given = map[string]any{}
	case !isMap:
		return shell.Usage("--%s must be KEY=VALUE,...", strings.ReplaceAll(of, "_", "-"))
	case given[name] != nil:
		return shell.Usage("%s is given in --%s, too", name, strings.ReplaceAll(of, "_", "-"))
	}
	given[name] = value
	params[of] = given
	return nil
}
