"""Drives a running cluster with the stock OpenStack clients of Debian.

Arguments: the file that `drover dev --ready-file` wrote, and the names of checks, if not all of them are to be made;
what the file says of identity and its account is all that the clients are told. They run in this process, as their command lines do: starting Python for each would take
most of the time. Every check is one line of JSON on standard output: {"check": name} or {"check": name, "error": text}.
"""

import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback

with contextlib.redirect_stderr(io.StringIO()):  # they warn of what is deprecated
    from novaclient import client as nova_client
    from novaclient import exceptions as nova_errors
    from novaclient import shell as nova_shell
    from openstackclient import shell as openstack_shell


# They ask again after seconds; a cluster in memory is quicker.
slept = time.sleep
time.sleep = lambda seconds: slept(min(seconds, 0.05))


class Failed(Exception):
    """A command line that ended with a status."""


class Clouds(object):
    """The clients, as a user has them."""

    def __init__(self, ready):
        self.ready = ready
        os.environ.update({
            "OS_AUTH_URL": ready["identity"], "OS_USERNAME": ready["os_username"], "OS_PASSWORD": ready["os_password"],
            "OS_PROJECT_NAME": ready["os_project"], "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default",
            "OS_IDENTITY_API_VERSION": "3", "OS_COMPUTE_API_VERSION": "2.52"})

    @staticmethod
    def call(main, args):
        out, err = io.StringIO(), io.StringIO()
        status = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(list(args)) or 0
            except SystemExit as end:
                status = end.code or 0
        for handler in list(logging.getLogger().handlers):  # each run adds its own
            logging.getLogger().removeHandler(handler)
        if status:
            raise Failed("%s: %s %s %s" % (" ".join(args), status, out.getvalue(), err.getvalue()))
        return out.getvalue()

    def openstack(self, *args):
        return self.call(openstack_shell.main, args)

    @staticmethod
    def alone(changes, *args):
        """Runs the client in a process of its own: it reads who it is from the environment once."""
        env = {name: value for name, value in dict(os.environ, **changes).items() if value is not None}
        done = subprocess.run(["/usr/bin/openstack"] + list(args), env=env, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise Failed("%s: %s %s %s" % (" ".join(args), done.returncode, done.stdout, done.stderr))
        return done.stdout.strip()

    def rows(self, *args):
        return json.loads(self.openstack(*args, "-f", "json"))

    def nova(self, *args):
        return self.call(nova_shell.main, args)

    def library(self):
        r = self.ready
        return nova_client.Client("2.52", r["os_username"], r["os_password"], r["os_project"], auth_url=r["identity"],
                                  user_domain_name="Default", project_domain_name="Default")

    def create(self, name, *args):
        return self.rows("server", "create", "--image", "noop", "--flavor", "m1.diskless", "--network", "none", "--wait", *args, name)

    def tags(self, name):
        tags = self.rows("server", "show", name)["tags"]
        return sorted(tags.split(", ") if isinstance(tags, str) and tags else tags or [])

    def names(self, *args):
        return sorted(row["Name"] for row in self.rows("server", "list", *args))

    def clean(self):
        found = self.names()
        if found:
            self.openstack("server", "delete", "--wait", *found)


def refused(pattern, call, *args):
    try:
        call(*args)
    except Failed as err:
        assert re.search(pattern, str(err)), "%s does not say %s" % (err, pattern)
        return
    raise AssertionError("%s was not refused" % (args,))


def check_openstack_tags(c):
    shown = c.create("web1", "--tag", "t1", "--tag", "a b", "--property", "rack=3")
    assert shown["status"] == "ACTIVE", shown
    assert c.tags("web1") == ["a b", "t1"]
    c.openstack("server", "set", "--tag", "t2", "--tag", "νέο", "web1")
    assert c.tags("web1") == ["a b", "t1", "t2", "νέο"]
    c.openstack("server", "unset", "--tag", "t1", "web1")
    assert c.tags("web1") == ["a b", "t2", "νέο"]
    refused("404|has no tag", c.openstack, "server", "unset", "--tag", "t1", "web1")
    refused("400|is invalid", c.openstack, "server", "set", "--tag", "a,b", "web1")
    assert c.tags("web1") == ["a b", "t2", "νέο"]


def check_openstack_filters(c):
    c.create("web1", "--tag", "a", "--tag", "b")
    c.create("web2", "--tag", "b")
    assert c.names("--tags", "a") == ["web1"]
    assert c.names("--tags", "b") == ["web1", "web2"]
    assert c.names("--tags", "a", "--tags", "b") == ["web1"]
    assert c.names("--tags-any", "a") == ["web1"] if "--tags-any" in c.openstack("server", "list", "--help") else True
    assert c.names("--not-tags", "a") == ["web2"]
    assert c.names("--tags", "b", "--not-tags", "a") == ["web2"]
    assert c.names("--name", "^web2$") == ["web2"]
    assert c.names("--limit", "1") in (["web1"], ["web2"])
    assert c.names("--status", "SHUTOFF") == []
    assert c.names("--flavor", "m1.diskless") == ["web1", "web2"]


def check_openstack_several(c):
    c.create("web", "--min", "2", "--max", "3", "--tag", "a")
    assert c.names("--tags", "a") == ["web-1", "web-2", "web-3"]


def check_openstack_power(c):
    c.create("web1")

    def status(want):
        for _ in range(1000):
            row = c.rows("server", "show", "web1")
            if row["status"] == want and not row["OS-EXT-STS:task_state"]:
                return
            time.sleep(0.05)
        raise AssertionError("it is %s, want %s" % (row, want))
    c.openstack("server", "stop", "web1")
    status("SHUTOFF")
    c.openstack("server", "start", "web1")
    status("ACTIVE")
    c.openstack("server", "reboot", "--wait", "web1")
    c.openstack("server", "reboot", "--hard", "--wait", "web1")
    status("ACTIVE")
    c.openstack("flavor", "create", "larger", "--id", "z", "--ram", "256", "--vcpus", "2", "--disk", "0")
    for settle in "revert", "confirm":
        c.openstack("server", "resize", "--flavor", "larger", "--wait", "web1")
        status("VERIFY_RESIZE")
        c.openstack("server", "resize", settle, "web1")
        status("ACTIVE")
    assert "larger" in str(c.rows("server", "show", "web1")["flavor"])
    refused("must change flavor", c.openstack, "server", "resize", "--flavor", "larger", "web1")
    c.openstack("server", "set", "--name", "web2", "web1")
    assert c.names() == ["web2"]
    c.openstack("server", "delete", "--wait", "web2")
    assert c.names() == []


def check_openstack_rebuild(c):
    made = c.rows("server", "create", "--image", "noop", "--flavor", "m1.tiny", "--network", "none", "--property", "a=b", "--wait", "web1")
    c.openstack("server", "rebuild", "--image", "noop", "--wait", "web1")
    now = c.rows("server", "show", "web1")
    assert now["id"] == made["id"] and now["status"] == "ACTIVE" and "a" in str(now["properties"]), now
    c.openstack("server", "rebuild", "--wait", "web1")
    c.nova("rebuild", "--poll", "--name", "web2", "--meta", "c=d", "web1", "noop")
    now = c.rows("server", "show", "web2")
    assert now["id"] == made["id"] and now["status"] == "ACTIVE" and "'c': 'd'" in str(now["properties"]) and "'a'" not in str(now["properties"]), now
    c.library().servers.find(name="web2").rebuild("5d7d4e4c-6f4c-4c8b-9a52-0d1f6c0e5a01", description="anew")
    for _ in range(1000):  # by the library: a start of the program takes longer than the rebuild
        now = c.library().servers.get(made["id"])
        if now.status == "ACTIVE":
            break
        time.sleep(0.05)
    assert now.status == "ACTIVE" and not getattr(now, "OS-EXT-STS:task_state"), now.to_dict()
    refused("adminPass", c.openstack, "server", "rebuild", "--password", "sesame", "web2")
    listed = c.rows("server", "event", "list", "web2")
    assert [row["Action"] for row in listed] == ["rebuild"] * 4 + ["create"], listed
    shown = c.rows("server", "event", "show", "web2", listed[0]["Request ID"])
    assert "OP_INSTANCE_REINSTALL" in str(shown["events"]) and "Success" in str(shown["events"]), shown


def check_openstack_groups(c):
    """Each node takes one server of a group that is apart; a group that is together fits on one."""
    apart = c.rows("server", "group", "create", "--policy", "anti-affinity", "web")
    assert "anti-affinity" in str(apart) and apart["members"] in ("", []), apart
    made, last = [], None
    while not last:
        name = "web%d" % (len(made) + 1)
        c.openstack("server", "create", "--image", "noop", "--flavor", "m1.diskless", "--network", "none", "--hint", "group=" + apart["id"], name)
        for _ in range(1000):
            now = c.library().servers.find(name=name)
            if now.status != "BUILD":
                break
            time.sleep(0.05)
        if now.status == "ACTIVE":
            made.append(now.id)
        else:
            last = now
    assert made and "%d that have as many of its group as may be on one node" % len(made) in last.fault["message"], last.to_dict()
    shown = c.rows("server", "group", "show", apart["id"])
    assert all(one in str(shown["members"]) for one in made), shown
    assert [row["Name"] for row in c.rows("server", "group", "list")] == ["web"]
    together = c.rows("--os-compute-api-version", "2.64", "server", "group", "create", "--policy", "affinity", "db")
    assert together["policy"] == "affinity", together
    c.nova("boot", "--image", "noop", "--flavor", "m1.diskless", "--nic", "none", "--hint", "group=" + together["id"], "--poll", "db1")
    assert "anti-affinity" in c.nova("server-group-list"), "the list of nova"
    refused("same_host", c.openstack, "server", "create", "--image", "noop", "--flavor", "m1.diskless", "--network", "none", "--hint", "same_host=" + made[0], "web5")
    c.openstack("server", "group", "delete", apart["id"], together["id"])
    assert c.rows("server", "group", "list") == []
    c.clean()


def check_openstack_events(c):
    made = c.create("web1")
    c.openstack("server", "reboot", "--hard", "--wait", "web1")
    listed = c.rows("server", "event", "list", "--long", "web1")
    assert [row["Action"] for row in listed] == ["reboot", "create"], listed
    shown = c.rows("server", "event", "show", "web1", listed[1]["Request ID"])
    assert shown["action"] == "create" and shown["instance_uuid"] == made["id"] and shown["message"] is None, shown
    assert "OP_INSTANCE_CREATE" in str(shown["events"]) and "Success" in str(shown["events"]), shown
    refused("404|not found", c.openstack, "server", "event", "show", "web1", "req-0")
    c.openstack("server", "delete", "--wait", "web1")
    listed = c.rows("server", "event", "list", made["id"])
    assert [row["Action"] for row in listed] == ["delete", "reboot", "create"], listed
    assert "reboot" in c.nova("instance-action-list", made["id"])


def check_openstack_quotas(c):
    project = c.rows("project", "show", c.ready["os_project"])["id"]
    c.create("web1")
    shown = c.openstack("quota", "show", project)
    assert re.search(r"instances *\| *-1 ", shown), shown
    c.openstack("quota", "set", "--instances", "1", "--cores", "4", "--key-pairs", "7", project)
    shown = c.openstack("quota", "show", project)
    assert re.search(r"instances *\| *1 ", shown) and re.search(r"key.pairs *\| *7 ", shown), shown
    refused("Quota exceeded for instances: Requested 1, but already used 1 of 1 instances.*web1", c.openstack, "server", "create", "--image", "noop", "--flavor", "m1.diskless", "--network", "none", "web2")
    refused("must be greater than or equal to already used", c.openstack, "quota", "set", "--instances", "0", project)
    c.openstack("quota", "set", "--force", "--instances", "0", project)
    assert re.search(r"instances.*1", c.openstack("quota", "list", "--detail", "--compute", "--project", project))
    limits = dict((row["Name"], row["Value"]) for row in c.rows("limits", "show", "--absolute"))
    assert limits["maxTotalInstances"] == 0 and limits["totalInstancesUsed"] == 1 and limits["maxTotalCores"] == 4, limits
    c.openstack("quota", "set", "--class", "--ram", "100000", "default")
    assert "100000" in c.openstack("quota", "show", "--default", project)
    c.openstack("quota", "set", "--class", "--ram", "-1", "default")
    c.nova("quota-delete", "--tenant", project)
    assert re.search(r"instances *\| *-1 ", c.nova("quota-show", "--tenant", project))


def check_openstack_properties(c):
    def properties():
        shown = c.rows("server", "show", "web1")["properties"]
        return shown if isinstance(shown, dict) else dict(re.findall(r"(\w+)='([^']*)'", shown))
    c.create("web1", "--property", "rack=3")
    c.openstack("server", "set", "--property", "rack=4", "--property", "row=ν", "web1")
    assert properties() == {"rack": "4", "row": "ν"}, properties()
    c.openstack("server", "unset", "--property", "rack", "web1")
    assert properties() == {"row": "ν"}, properties()
    c.nova("meta", "web1", "set", "a=1", "b=2")
    c.nova("meta", "web1", "delete", "row", "a")
    assert properties() == {"b": "2"}, properties()
    refused("404|not found", c.nova, "meta", "web1", "delete", "a")


def check_nova_sorted(c):
    for name in ("b", "c", "a"):
        c.create(name)

    def names(*args):
        return [line.split("|")[2].strip() for line in c.nova("list", *args).splitlines()[3:-1]]
    assert names("--sort", "display_name:asc") == ["a", "b", "c"], names("--sort", "display_name:asc")
    assert names("--sort", "display_name:desc") == ["c", "b", "a"]
    assert names("--sort", "created_at:asc") == ["b", "c", "a"]
    refused("400|Invalid", c.nova, "list", "--sort", "nosuch:asc")


def check_openstack_networks(c):
    assert [row["Name"] for row in c.rows("network", "list")] == ["office"]
    net = c.rows("network", "show", "office")
    assert [row["Subnet"] for row in c.rows("subnet", "list", "--network", "office")] == ["192.0.2.0/24"]
    new = ("server", "create", "--image", "noop", "--flavor", "m1.diskless", "--wait")
    c.rows(*new, "--network", "office", "web1")
    c.rows(*new, "--nic", "net-id=%s,v4-fixed-ip=192.0.2.77" % net["id"], "web2")
    assert "192.0.2.77" in str(c.rows("server", "show", "web2")["addresses"])
    addresses = {row["Name"]: row["Networks"] for row in c.rows("server", "list")}
    assert addresses == {"web1": {"office": ["192.0.2.2"]}, "web2": {"office": ["192.0.2.77"]}}, addresses
    assert "192.0.2.77" in str(c.rows("port", "list", "--server", "web2"))
    refused("already in use", c.openstack, *new, "--nic", "net-id=%s,v4-fixed-ip=192.0.2.77" % net["id"], "web3")
    refused("management", c.openstack, *new, "--network", "management", "web3")
    c.openstack("server", "delete", "--wait", "web2")
    assert "192.0.2.77" not in str(c.rows("port", "list"))


def check_openstack_keypairs(c):
    assert "PRIVATE KEY" in c.openstack("keypair", "create", "mine")
    assert [row["Name"] for row in c.rows("keypair", "list")] == ["mine"]
    assert c.openstack("keypair", "show", "--public-key", "mine").startswith("ssh-ed25519 ")
    refused("409|already exists", c.openstack, "keypair", "create", "mine")
    refused("takes no key_name", c.openstack, "server", "create", "--image", "noop", "--flavor", "m1.diskless", "--network", "none", "--key-name", "mine", "web1")
    c.openstack("keypair", "delete", "mine")
    assert c.rows("keypair", "list") == []


def check_openstack_console_log(c):
    """Machines that are pretended print nothing."""
    c.create("web1")
    refused("501|not implemented", c.openstack, "console", "log", "show", "--lines", "3", "web1")
    refused("501|not implemented", c.nova, "console-log", "web1")


def check_sdk_creates(c):
    """As Ansible does: waits until there is an address."""
    import openstack
    cloud = openstack.connect()
    server = cloud.create_server("web1", image="noop", flavor="m1.diskless", network="office", wait=True, timeout=60)
    assert server.status == "ACTIVE" and server.public_v4 == "192.0.2.2", (server.status, server.public_v4, server.addresses)
    assert cloud.delete_server("web1", wait=True, timeout=60)


def check_openstack_catalogue(c):
    assert "m1.tiny" in c.openstack("flavor", "list")
    assert "noop" in c.openstack("image", "list")
    assert c.rows("image", "show", "noop")["status"] == "active"
    assert c.rows("flavor", "show", "m1.tiny")["ram"] == 512
    assert {"compute", "identity", "image"} <= {row["Type"] for row in c.rows("catalog", "list")}
    assert "id" in c.rows("token", "issue")
    assert [row["Zone Name"] for row in c.rows("availability", "zone", "list", "--compute")] == ["nova"]


def check_openstack_images(c):
    """Uploaded, looked at, changed, given back and deleted; and nobody else's."""
    with tempfile.TemporaryDirectory() as of:
        raw, packed, back = (os.path.join(of, name) for name in ("raw.img", "packed.gz", "back.img"))
        with open(raw, "wb") as f:
            f.write(b"disk" * 300000)
            f.truncate(30 << 20)
        with open(packed, "wb") as f:
            f.write(b"\x1f\x8b" + b"x" * 10000000)
        made = c.rows("image", "create", "--file", raw, "--private", "--property", "rack=3", "--tag", "t1", "mine")
        shown = c.rows("image", "show", made["id"])
        assert (shown["status"], shown["visibility"], shown["size"], shown["properties"]["rack"], shown["tags"]) == ("active", "private", 30 << 20, "3", ["t1"]), shown
        c.openstack("image", "save", "--file", back, "mine")
        with open(raw, "rb") as a, open(back, "rb") as b:
            assert a.read() == b.read()
        refused("packed by gzip", c.openstack, "image", "create", "--file", packed, "packed")
        refused("raw was said|no image of the format qcow2", c.openstack, "image", "create", "--disk-format", "qcow2", "--file", raw, "wrong")
        refused("no disk_format that is taken", c.openstack, "image", "create", "--disk-format", "iso", "--file", raw, "wrong")
        assert {row["Name"] for row in c.rows("image", "list")} == {"noop", "mine"}, c.rows("image", "list")
        c.openstack("image", "set", "--name", "other", "--property", "os_distro=debian", "--tag", "t2", "mine")
        c.openstack("image", "unset", "--property", "rack", "--tag", "t1", "other")
        shown = c.rows("image", "show", "other")
        assert shown["properties"]["os_distro"] == "debian" and "rack" not in shown["properties"] and shown["tags"] == ["t2"], shown
        c.openstack("project", "create", "lab")
        c.openstack("user", "create", "--password", "sesame", "--project", "lab", "bob")
        c.openstack("role", "add", "--project", "lab", "--user", "bob", "member")
        bob = {"OS_USERNAME": "bob", "OS_PASSWORD": "sesame", "OS_PROJECT_NAME": "lab"}
        assert "other" not in c.alone(bob, "image", "list")
        refused("No Image found", c.alone, bob, "image", "show", made["id"])
        refused("is invalid|could not be found|No Image", c.alone, bob, "server", "create", "--image", made["id"], "--flavor", "m1.tiny", "--network", "none", "web1")
        refused("publicize_image", c.alone, bob, "image", "create", "--file", raw, "--public", "his")
        c.openstack("image", "set", "--public", "other")
        assert "other" in c.alone(bob, "image", "list", "--public")
        refused("another project's", c.alone, bob, "image", "delete", made["id"])
        c.alone(bob, "image", "create", "--file", raw, "his")
        refused("owns images", c.openstack, "project", "delete", "lab")
        c.alone(bob, "image", "delete", "his")
        c.openstack("image", "delete", "other")
        assert [row["Name"] for row in c.rows("image", "list")] == ["noop"]
        c.openstack("user", "delete", "bob")
        c.openstack("project", "delete", "lab")


def check_openstack_newest(c):
    """As a user who asks for the newest version that the client knows."""
    c.openstack("project", "create", "lab")
    c.openstack("user", "create", "--password", "sesame", "--project", "lab", "bob")
    c.openstack("role", "add", "--project", "lab", "--user", "bob", "member")
    bob = {"OS_USERNAME": "bob", "OS_PASSWORD": "sesame", "OS_PROJECT_NAME": "lab"}
    for version in ("2.73", "2.92", "2.latest"):
        bob["OS_COMPUTE_API_VERSION"] = version
        made = json.loads(c.alone(bob, "server", "create", "--image", "noop", "--flavor", "m1.diskless", "--network", "none", "--tag", "a", "--wait", "new1", "-f", "json"))
        assert made["status"] == "ACTIVE", made
        shown = json.loads(c.alone(bob, "server", "show", "new1", "-f", "json"))
        assert shown["tags"] == ["a"] and shown.get("OS-EXT-SRV-ATTR:hostname") == (None if version == "2.73" else made["OS-EXT-SRV-ATTR:hostname"]), shown
        c.alone(bob, "server", "lock", "--reason", "in use", "new1")
        assert "new1" in c.alone(bob, "server", "list", "--locked", "--long")
        assert "new1" not in c.alone(bob, "server", "list", "--unlocked")
        refused("is locked", c.alone, bob, "server", "stop", "new1")
        refused("is locked", c.alone, bob, "server", "delete", "new1")
        assert json.loads(c.alone(bob, "server", "show", "new1", "-f", "json"))["locked_reason"] == "in use"
        c.alone(bob, "server", "unlock", "new1")
        events = json.loads(c.alone(bob, "server", "event", "list", "new1", "-f", "json"))
        assert [event["Action"] for event in events] == ["unlock", "lock", "create"], events
        c.alone(bob, "server", "event", "show", "new1", events[2]["Request ID"])
        assert "m1.tiny" in c.alone(bob, "flavor", "list", "--long")
        c.alone(bob, "limits", "show", "--absolute")
        c.alone(bob, "quota", "show", "lab")
        c.alone(bob, "server", "delete", "--wait", "new1")
    c.openstack("user", "delete", "bob")
    c.openstack("project", "delete", "lab")


def check_openstack_flavors(c):
    """Of administrators; others see what is for them, and change nothing."""
    os.environ["OS_COMPUTE_API_VERSION"] = "2.55"
    made = json.loads(c.alone({}, "flavor", "create", "--id", "b1", "--ram", "64", "--disk", "0", "--vcpus", "3", "--description", "for trying", "big", "-f", "json"))
    assert (made["id"], made["ram"], made["vcpus"], made["disk"], made["description"], made["os-flavor-access:is_public"]) == ("b1", 64, 3, 0, "for trying", True), made
    c.alone({}, "flavor", "set", "--description", "for work", "big")
    assert json.loads(c.alone({}, "flavor", "show", "big", "-f", "json"))["description"] == "for work"
    os.environ["OS_COMPUTE_API_VERSION"] = "2.52"
    refused("409|already exists", c.openstack, "flavor", "create", "--ram", "64", "--disk", "0", "--vcpus", "3", "big")
    refused("one disk", c.openstack, "flavor", "create", "--ram", "64", "--disk", "0", "--vcpus", "1", "--swap", "1", "swapping")
    c.openstack("flavor", "create", "--ram", "64", "--disk", "0", "--vcpus", "1", "--private", "--id", "s1", "secret")
    assert "secret" not in c.openstack("flavor", "list") and "secret" in c.openstack("flavor", "list", "--all") and "big" not in c.openstack("flavor", "list", "--private")
    c.openstack("flavor", "set", "--project", "demo", "secret")
    assert c.rows("flavor", "show", "secret")["access_project_ids"]
    assert "secret" in c.openstack("flavor", "list")
    assert [row["Name"] for row in c.rows("flavor", "list", "--limit", "2", "--marker", "1")] == ["m1.small", "m1.medium"]
    assert [row["Name"] for row in c.rows("flavor", "list", "--min-ram", "1025")] == ["m1.medium"]
    c.openstack("flavor", "unset", "--project", "demo", "secret")
    assert "secret" not in c.openstack("flavor", "list")
    c.openstack("project", "create", "lab")
    c.openstack("user", "create", "--password", "sesame", "--project", "lab", "bob")
    c.openstack("role", "add", "--project", "lab", "--user", "bob", "member")
    bob = {"OS_USERNAME": "bob", "OS_PASSWORD": "sesame", "OS_PROJECT_NAME": "lab"}
    listed = c.alone(bob, "flavor", "list")
    assert "big" in listed and "secret" not in listed, listed
    refused("os_compute_api:os-flavor-manage:create", c.alone, bob, "flavor", "create", "--ram", "64", "--disk", "0", "--vcpus", "1", "mine")
    refused("os_compute_api:os-flavor-manage:delete", c.alone, bob, "flavor", "delete", "big")
    c.openstack("server", "create", "--image", "noop", "--flavor", "big", "--network", "none", "--wait", "web1")
    c.openstack("flavor", "delete", "big", "secret")
    assert "big" not in c.openstack("flavor", "list", "--all")
    assert "big" in str(c.rows("server", "show", "web1")["flavor"]), c.rows("server", "show", "web1")
    c.openstack("user", "delete", "bob")
    c.openstack("project", "delete", "lab")


def check_openstack_accounts(c):
    c.openstack("project", "create", "lab")
    c.openstack("user", "create", "--password", "sesame", "--project", "lab", "bob")
    c.openstack("role", "add", "--project", "lab", "--user", "bob", "member")
    assert [row["Role"] for row in c.rows("role", "assignment", "list", "--user", "bob", "--names")] == ["member"]
    secret = c.rows("application", "credential", "create", "--role", "member", "ci")
    c.create("web1", "--tag", "mine")
    bob = {"OS_USERNAME": "bob", "OS_PASSWORD": "sesame", "OS_PROJECT_NAME": "lab"}
    assert c.alone(bob, "server", "list", "-f", "json") == "[]"
    refused("No server with a name or ID of 'web1'|No Server found", c.alone, bob, "server", "show", "web1")
    refused("401|requires authentication", c.alone, dict(bob, OS_PASSWORD="wrong"), "server", "list")
    ci = {"OS_AUTH_TYPE": "v3applicationcredential", "OS_APPLICATION_CREDENTIAL_ID": secret["id"], "OS_APPLICATION_CREDENTIAL_SECRET": secret["secret"]}
    ci.update((name, None) for name in ("OS_USERNAME", "OS_PASSWORD", "OS_PROJECT_NAME", "OS_USER_DOMAIN_NAME", "OS_PROJECT_DOMAIN_NAME"))
    assert "web1" in c.alone(ci, "server", "list", "--tags", "mine")
    refused("403|not authorized", c.alone, ci, "user", "create", "--password", "x", "eve")
    c.openstack("application", "credential", "delete", "ci")
    c.openstack("user", "delete", "bob")
    c.openstack("project", "delete", "lab")


def check_nova_tags(c):
    c.nova("boot", "--image", "noop", "--flavor", "m1.diskless", "--nic", "none", "--tags", "t1,t2", "--poll", "web1")
    listed = c.nova("server-tag-list", "web1")
    assert "t1" in listed and "t2" in listed, listed
    c.nova("server-tag-add", "web1", "t3", "a b")
    assert c.tags("web1") == ["a b", "t1", "t2", "t3"]
    c.nova("server-tag-delete", "web1", "t1")
    c.nova("server-tag-set", "web1", "x", "νέο")
    assert c.tags("web1") == ["x", "νέο"]
    c.nova("server-tag-delete-all", "web1")
    assert c.tags("web1") == []
    refused("404|has no tag", c.nova, "server-tag-delete", "web1", "t1")


def check_nova_filters_and_power(c):
    c.create("web1", "--tag", "a")
    c.create("web2", "--tag", "b")
    for option, seen in (("--tags", {"web1"}), ("--tags-any", {"web1"}), ("--not-tags", {"web2"}), ("--not-tags-any", {"web2"})):
        listed = c.nova("list", option, "a")
        assert {name for name in ("web1", "web2") if name in listed} == seen, (option, listed)
    c.nova("stop", "web1")
    nova = c.library()
    server = nova.servers.find(name="web1")
    for _ in range(1000):
        server = nova.servers.get(server.id)
        if server.status == "SHUTOFF":
            break
        time.sleep(0.05)
    assert server.status == "SHUTOFF", server.status
    c.nova("start", "web1")
    c.nova("show", "web1")
    c.nova("delete", "web2")  # which does not wait
    for _ in range(1000):
        if c.names() == ["web1"]:
            break
        time.sleep(0.05)
    assert c.names() == ["web1"]


def check_nova_library(c):
    nova = c.library()
    server = nova.servers.find(id=c.create("web1")["id"])
    assert server.tag_list() == []
    server.add_tag("t1")
    server.add_tag("t1")
    assert server.tag_list() == ["t1"]
    server.delete_tag("t1")
    server.set_tags(["b", "a", "b"])
    assert server.tag_list() == ["a", "b"]
    assert nova.servers.get(server.id).tags == ["a", "b"]
    server.delete_all_tags()
    server.delete_all_tags()
    for tag, error in (("a,b", nova_errors.BadRequest), ("a/b", nova_errors.NotFound), ("x" * 61, nova_errors.BadRequest)):
        try:
            server.add_tag(tag)
        except error:
            continue
        raise AssertionError("%r was not refused" % tag)
    # The client cleans these paths: what it sends must not be taken for the server itself.
    for tag in ("..", ".", ""):
        try:
            server.delete_tag(tag)
        except nova_errors.NotFound:
            pass
    assert nova.servers.get(server.id).status == "ACTIVE"
    assert [s.name for s in nova.servers.list(search_opts={"tags": "none"})] == []
    for i in range(3):
        c.create("page%d" % i)
    assert len(nova.servers.list(limit=1)) == 1
    assert len(nova.servers.list(limit=-1)) == 4


def main():
    with open(sys.argv[1]) as ready:
        clouds = Clouds(json.load(ready))
    checks = {name[len("check_"):]: value for name, value in globals().items() if name.startswith("check_")}
    for name in sys.argv[2:] or list(checks):
        check = checks[name]
        line = {"check": name}
        try:
            check(clouds)
            clouds.clean()
        except Exception:  # every kind of failure is reported
            line["error"] = traceback.format_exc()
            with contextlib.suppress(Failed):
                clouds.clean()
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
