package opcode

import "github.com/drover-project/drover/internal/diskimage"

// imageOpcodes are the opcodes about images.
var imageOpcodes = []*Definition{
	{
		ID:           "OP_IMAGE_ADD",
		SummaryField: "image_name",
		Doc:          "Adds an image that machines can be installed from: a node fetches it and looks at it. Instances name it as their operating system, image+NAME.",
		Result:       "map",
		Since:        4,
		Params: []Param{
			required("image_name", NonEmptyString, "name of the image"),
			required("source", NonEmptyString, "where nodes get it: an absolute path that they can read, or a URL (https, http)"),
			optional("sha256", NonEmptyString, "SHA-256 that the file has to have, as hexadecimal digits; left out, it is found"),
			optional("format", Enum("ImageFormat", diskimage.Formats()...), "format of the file; left out, it is found if there is no doubt"),
			optional("node_name", NonEmptyString, "name of the node that fetches it first; left out, the first that answers"),
			optional("node_uuid", NonEmptyString, "UUID of the node, instead of its name"),
		},
	},
	{
		ID:           "OP_IMAGE_CAPTURE",
		SummaryField: "image_name",
		Doc:          "Takes what the first disk of an instance has at one moment for the file of an image that was asked for (an image of a server, in the Compute API). The instance goes on meanwhile.",
		Result:       "null",
		Since:        11,
		Params: []Param{
			required("image_name", NonEmptyString, "id of the image that waits for the disk"),
			required("instance_name", String, "name of the instance"),
			optional("instance_uuid", NonEmptyString, "UUID of the instance, instead of its name"),
		},
	},
	{
		ID:           "OP_IMAGE_REMOVE",
		SummaryField: "image_name",
		Doc:          "Removes an image. Instances that were installed from it stay as they are.",
		Result:       "null",
		Since:        4,
		Params: []Param{
			required("image_name", NonEmptyString, "name of the image"),
		},
	},
}
