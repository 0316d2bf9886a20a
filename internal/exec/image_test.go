package exec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/pieces"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
)

// imaging is a node that tells what is installed from an image, and has no disks to do so.
type imaging struct {
	anyNode

	installed *[]imageInstalled
}

type imageInstalled struct {
	instance string
	image    agent.Image
	params   map[string]string
}

func (n imaging) InstallImage(_ context.Context, _ agent.Order, spec hypervisor.Spec, image agent.Image, params map[string]string, log func(string)) error {
	*n.installed = append(*n.installed, imageInstalled{spec.Name, image, params})
	log("writing image " + image.Name)
	return nil
}

// imageRig is a cluster whose nodes run machines, as far as it knows, and that has the image tiny.
func imageRig(t *testing.T, nodes ...string) (*rig, *[]imageInstalled) {
	t.Helper()
	r := newRig(t, nodes...)
	installed := new([]imageInstalled)
	r.wrap = func(n Node) Node { return imaging{n, installed} }
	if _, err := r.run("OP_CLUSTER_SET_PARAMS", params{"enabled_hypervisors": []any{"fake", "kvm"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("OP_IMAGE_ADD", params{"image_name": "tiny", "source": startable}); err != nil {
		t.Fatal(err)
	}
	return r, installed
}

// refusesLike has an opcode fail with an error of a class that has a text in it, and change nothing.
func (r *rig) refusesLike(class, text, id string, p params) {
	r.Helper()
	before := r.dump()
	_, err := r.run(id, p)
	if err == nil {
		r.Fatalf("%s%v succeeds", id, p)
	}
	if got, said, _ := job.DecodeError(job.EncodeError(err)); got != class || !strings.Contains(said, text) || r.dump() != before {
		r.Errorf("%s%v: %s: %s", id, p, got, said)
	}
}

// fromImage are the parameters of a creation from the image.
func fromImage(more params) params {
	p := params{"hypervisor": "kvm", "os_type": "image+tiny", "start": false}
	maps.Copy(p, more)
	return creating(p)
}

// An image is shared by what is installed from it, so that it is not removed meanwhile.
func TestAnImageThatIsInstalledIsLocked(t *testing.T) {
	r, _ := imageRig(t)
	snap := r.keeper.Snapshot()
	shared := want(lock.Image, snap.ImageNamed("tiny").UUID, lock.Shared)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", fromImage(params{"instance_name": "there"}))
	for id, p := range map[string]params{
		"OP_INSTANCE_CREATE":    fromImage(params{"instance_name": "new"}),
		"OP_INSTANCE_REINSTALL": {"instance_name": "there", "os_type": "image+tiny"},
	} {
		request, err := r.all.Locks(r.opcode(id, p), r.keeper.Snapshot())
		if err != nil || !slices.Contains(request, shared) {
			t.Errorf("%s locks %v, %v", id, request, err)
		}
	}
	// It is the image that is to be installed, whichever is there.
	_, err := r.run("OP_IMAGE_ADD", params{"image_name": "other", "source": startable, "node_name": "node1"})
	if err != nil {
		t.Fatal(err)
	}
	other := want(lock.Image, r.keeper.Snapshot().ImageNamed("other").UUID, lock.Shared)
	request, err := r.all.Locks(r.opcode("OP_INSTANCE_REINSTALL", params{"instance_name": "there", "os_type": "image+other"}), r.keeper.Snapshot())
	if err != nil || !slices.Contains(request, other) {
		t.Errorf("to install another image locks %v, %v", request, err)
	}
	request, err = r.all.Locks(r.opcode("OP_IMAGE_REMOVE", params{"image_name": "tiny"}), snap)
	if err != nil || !slices.Contains(request, lock.Want{Name: shared.Name, Mode: lock.Exclusive}) {
		t.Errorf("a removal locks %v, %v", request, err)
	}
}

func TestImageAdd(t *testing.T) {
	r, _ := imageRig(t)
	content, err := os.ReadFile(startable)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	image := r.keeper.Snapshot().ImageNamed("tiny")
	if image == nil || image.SHA256 != digest || image.Format != "raw" || image.Size != 512 || image.VirtualSize != 1 || image.Source != startable || image.CTime == 0 {
		t.Fatalf("the image is %+v", image)
	}
	result, err := r.run("OP_IMAGE_ADD", params{"image_name": "again", "source": startable, "sha256": digest, "format": "raw", "node_name": "node1"})
	var told struct{ Name, SHA256, Format string }
	if err != nil || json.Unmarshal([]byte(result), &told) != nil || told.Name != "again" || told.SHA256 != digest || told.Format != "raw" {
		t.Errorf("%s, %v", result, err)
	}
	for _, c := range []struct {
		kind, text string
		p          params
	}{
		{"OpPrereqError", "'tiny' is already in the cluster", params{"image_name": "tiny", "source": startable}},
		{"OpPrereqError", "not a valid name of an image", params{"image_name": "a+b", "source": startable}},
		{"OpPrereqError", "not a valid name of an image", params{"image_name": "../etc", "source": startable}},
		{"OpPrereqError", "no source of an image", params{"image_name": "new", "source": "disk.img"}},
		{"OpPrereqError", "everybody who lists images would see them", params{"image_name": "new", "source": "https://me:secret@example.com/x"}},
		{"OpPrereqError", "no SHA-256", params{"image_name": "new", "source": startable, "sha256": "abc"}},
		{"OpPrereqError", "node9", params{"image_name": "new", "source": startable, "node_name": "node9"}},
		{"OpExecError", "no such file on the node", params{"image_name": "new", "source": "/nonexistent/x"}},
		{"OpExecError", "it has another SHA-256", params{"image_name": "new", "source": startable, "sha256": strings.Repeat("0", 64)}},
	} {
		r.refusesLike(c.kind, c.text, "OP_IMAGE_ADD", c.p)
	}
	r.must("null", "OP_IMAGE_REMOVE", params{"image_name": "again"})
	r.refusesLike("OpPrereqError", "Image 'again' not found", "OP_IMAGE_REMOVE", params{"image_name": "again"})
	r.down["node1"] = true
	r.refusesLike("OpPrereqError", "No node of 1 that were asked", "OP_IMAGE_ADD", params{"image_name": "new", "source": startable})
}

func TestCreateFromAnImage(t *testing.T) {
	r, installed := imageRig(t)
	if _, err := r.run("OP_CLUSTER_SET_PARAMS", params{"osparams": params{"image": params{"ssh_keys": "ssh-ed25519 ALL"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("OP_INSTANCE_CREATE", fromImage(params{"osparams_private": params{"user_data": "#cloud-config password"}, "osparams_secret": params{"network_config": "version: 2"}})); err != nil {
		t.Fatal(err)
	}
	all := *installed
	if len(all) != 1 || all[0].image != orderedImage(r.keeper.Snapshot().ImageNamed("tiny")) {
		t.Fatalf("what was installed is %+v", all)
	}
	for name, want := range map[string]string{"user_data": "#cloud-config password", "network_config": "version: 2", "ssh_keys": "ssh-ed25519 ALL"} {
		if got := all[0].params[name]; got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if text := strings.Join(r.log, "\n"); strings.Contains(text, "password") || !strings.Contains(text, "writing image tiny") {
		t.Errorf("the log is %s", text)
	}
	// Its parameters are those of images.
	inst := all[0].instance
	if _, err := r.run("OP_INSTANCE_SET_PARAMS", params{"instance_name": inst, "osparams": params{"ssh_keys": "ssh-ed25519 ONE"}}); err != nil {
		t.Error(err)
	}
	r.refusesLike("OpExecError", "nosuch", "OP_INSTANCE_SET_PARAMS", params{"instance_name": inst, "osparams": params{"nosuch": "x"}})
	// Installed with another system, and from the image again.
	for _, os := range []string{"noop", "image+tiny"} {
		if _, err := r.run("OP_INSTANCE_REINSTALL", params{"instance_name": inst, "os_type": os}); err == nil {
			continue
		} else if os == "image+tiny" || !strings.Contains(err.Error(), "user_data") { // a parameter of the image alone
			t.Fatal(os, err)
		}
	}
	if all = *installed; len(all) != 2 || all[1].params["user_data"] != "#cloud-config password" || all[1].params["network_config"] != "" {
		t.Errorf("what was installed again is %+v", all)
	}
}

func TestWhatCannotBeInstalledFromAnImage(t *testing.T) {
	r, installed := imageRig(t)
	for _, c := range []struct {
		kind, text string
		p          params
	}{
		{"OpPrereqError", "only pretended", fromImage(params{"hypervisor": "fake"})},
		{"OpPrereqError", "Image 'none' not found", fromImage(params{"os_type": "image+none"})},
		{"OpPrereqError", "must include a variant", fromImage(params{"os_type": "image"})},
		{"OpPrereqError", "are not supported by the OS image: mirror", fromImage(params{"osparams": params{"mirror": "x"}})},
		{"OpPrereqError", "user_data has 70000 bytes", fromImage(params{"osparams_private": params{"user_data": strings.Repeat("x", 70000)}})},
		{"OpPrereqError", "begins a private key", fromImage(params{"osparams": params{"ssh_keys": "-----BEGIN OPENSSH PRIVATE KEY-----"}})},
	} {
		if strings.Contains(c.text, "not supported by") {
			c.kind = "OpExecError" // as the reference has it
		}
		r.refusesLike(c.kind, c.text, "OP_INSTANCE_CREATE", c.p)
	}
	big := r.keeper.Snapshot().ImageNamed("tiny").Clone()
	big.VirtualSize = 4096
	if err := r.keeper.Update(t.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) { return []cluster.Change{cluster.Put(big)}, nil }); err != nil {
		t.Fatal(err)
	}
	r.refusesLike("OpPrereqError", "Image tiny needs a disk of 4.0G", "OP_INSTANCE_CREATE", fromImage(nil))
	if len(*installed) > 0 {
		t.Errorf("%+v", *installed)
	}
}

// TestADefinitionOfTheName: what operators have under the name goes on to work, and is not taken for an image.
func TestADefinitionOfTheName(t *testing.T) {
	r, installed := imageRig(t)
	dir := filepath.Join(r.dir, "node1", "os", "image")
	for name, text := range map[string]string{"ganeti_api_version": "20\n", "create": "#!/bin/sh\nexit 0\n", "variants.list": "tiny\nold\n"} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.refusesLike("OpPrereqError", "it cannot be told which is meant", "OP_INSTANCE_CREATE", fromImage(nil))
	if _, err := r.run("OP_INSTANCE_CREATE", fromImage(params{"os_type": "image+old"})); err != nil || len(*installed) > 0 {
		t.Errorf("%v, %+v", err, *installed)
	}
}

// stood is a node that tells of an instance which stands on an image.
type stood struct {
	anyNode

	on  string
	err error
}

func (n stood) State(context.Context, bool) (agent.State, error) {
	disk := hypervisor.Disk{UUID: "d", Image: n.on}
	return agent.State{Instances: []hypervisor.Instance{{Name: "web1", Disks: []hypervisor.Disk{disk}}, {Name: "web2", Disks: []hypervisor.Disk{{}, disk}}, {Name: "web3"}}}, n.err
}

// TestAnImageThatDisksStandOn is not removed, and it is told whose they are. A node that does not tell keeps its copy anyway.
func TestAnImageThatDisksStandOn(t *testing.T) {
	r, _ := imageRig(t)
	image := r.keeper.Snapshot().ImageNamed("tiny")
	r.wrap = func(n Node) Node { return stood{n, image.SHA256, nil} }
	r.refusesLike("OpPrereqError", "disks of instances stand on it: web1 on node1, web2 on node1", "OP_IMAGE_REMOVE", params{"image_name": "tiny"})
	r.wrap = func(n Node) Node { return stood{n, strings.Repeat("0", 64), nil} }
	r.must("null", "OP_IMAGE_REMOVE", params{"image_name": "tiny", "dry_run": true})
	r.wrap = func(n Node) Node { return stood{n, image.SHA256, fault.New(fault.Unavailable, "it is away")} }
	r.must("null", "OP_IMAGE_REMOVE", params{"image_name": "tiny"})
	if text := strings.Join(r.log, "\n"); !strings.Contains(text, "Node node1 does not tell whether disks there stand on image tiny") {
		t.Errorf("the log is %s", text)
	}
}

// TestTheFormatOfADisk is kept with the disk, and told to its node; where it means nothing it is refused.
func TestTheFormatOfADisk(t *testing.T) {
	r := newRig(t)
	disk := func(more params) params { p := params{"size": 8}; maps.Copy(p, more); return p }
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"disks": []any{disk(params{"format": "qcow2"}), disk(params{"format": "raw"}), disk(nil)}}))
	for i, want := range []string{"qcow2", "", ""} {
		if got := diskOf(&r.instance("one").Disks[i]); got.Format != want {
			t.Errorf("disk %d has the format %q", i, got.Format)
		}
	}
	r.refusesLike("OpPrereqError", "There is no format of disks 'vmdk'", "OP_INSTANCE_CREATE", creating(params{"instance_name": "two", "disks": []any{disk(params{"format": "vmdk"})}}))
	r.refusesLike("OpPrereqError", "There is no format of disks '7'", "OP_INSTANCE_CREATE", creating(params{"instance_name": "two", "disks": []any{disk(params{"format": 7})}}))
	r.refusesLike("OpPrereqError", "only valid for disks that are files, not for the template 'plain'", "OP_INSTANCE_CREATE",
		creating(params{"instance_name": "two", "disk_template": "plain", "disks": []any{disk(params{"format": "qcow2"})}}))
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "three", "disk_template": "ext", "disks": []any{disk(params{"provider": "san", "format": "thin"})}}))
	if got := diskOf(&r.instance("three").Disks[0]); got.Format != "" || got.External.Params["format"] != "thin" {
		t.Errorf("a provider is told %+v", got)
	}
}

// brought are the files of images that users brought, by id.
type brought map[string]string

func (b brought) Image(id string) (agent.Image, error) {
	path, there := b[id]
	content, err := os.ReadFile(path)
	if !there || err != nil {
		return agent.Image{}, fault.New(fault.NotFound, "nobody brought %s", id)
	}
	sum := sha256.Sum256(content)
	return agent.Image{Name: id, SHA256: hex.EncodeToString(sum[:]), Format: "raw", Source: cluster.UploadSource(id), Size: int64(len(content)), VirtualSize: 1}, nil
}

func (b brought) Read(id string, at int64) (agent.Piece, error) {
	f, err := os.Open(b[id])
	if err != nil {
		return agent.Piece{}, err
	}
	defer f.Close() //nolint:errcheck // it was read
	return pieces.Read(f, at)
}

func (b brought) Awaits(id string) (string, error) {
	return "", fault.New(fault.NotFound, "nobody waits for %s", id)
}

func (b brought) TakeDisk(_ context.Context, id, _ string, _ io.Reader) error {
	return fault.New(fault.NotFound, "nobody waits for %s", id)
}

// TestAnImageThatAUserBrought comes from the controller, to the node that looks at it and to others, and from a node where the controller has lost it. What else is
// asked for under its name, or as it, is refused.
func TestAnImageThatAUserBrought(t *testing.T) {
	const id = "5b7c7f7e-1111-4c8b-9a52-0d1f6c0e5a02"
	r, installed := imageRig(t, "node1", "node2", "node3")
	source := "upload:" + id
	r.refusesLike("OpPrereqError", "nothing is uploaded to this controller", "OP_IMAGE_ADD", params{"image_name": id, "source": source})
	content, err := os.ReadFile(startable)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, append(content, "more"...), 0o600); err != nil {
		t.Fatal(err)
	}
	files := brought{id: path}
	r.uploads = files
	for _, c := range []struct {
		text string
		p    params
	}{
		{"and no other", params{"image_name": "new", "source": source}},
		{"nobody brought", params{"image_name": strings.ReplaceAll(id, "5", "6"), "source": "upload:" + strings.ReplaceAll(id, "5", "6")}},
		{"has the format raw", params{"image_name": id, "source": source, "format": "qcow2"}},
		{"no source of an image", params{"image_name": "new", "source": "upload:../x"}},
	} {
		r.refusesLike("OpPrereqError", c.text, "OP_IMAGE_ADD", c.p)
	}
	if _, err := r.run("OP_IMAGE_ADD", params{"image_name": id, "source": source, "node_name": "node1"}); err != nil {
		t.Fatal(err)
	}
	image := orderedImage(r.keeper.Snapshot().ImageNamed(id))
	if image.Source != source || image.Size != 516 || r.hasImage("node1", image) != 516 {
		t.Fatalf("it is %+v", image)
	}
	install := func(node string) string {
		t.Helper()
		_, err := r.run("OP_INSTANCE_CREATE", fromImage(params{"instance_name": "on-" + node, "os_type": "image+" + id, "pnode": node}))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(r.log, "\n")
	}
	if told := install("node2"); !strings.Contains(told, "bringing image "+id+" to node node2") || r.hasImage("node2", image) != 516 {
		t.Errorf("the log is %s", told)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if told := install("node3"); !strings.Contains(told, "did not come from the controller") || !strings.Contains(told, "copying image "+id+" from node") || len(*installed) != 2 {
		t.Errorf("the log is %s", told)
	}
}
