"""Drives a running cluster with the stock RAPI client of Debian.

Arguments: the file that `drover dev --ready-file` wrote. Every check is one line
of JSON on standard output: {"check": name} or {"check": name, "error": text}.
"""

import json
import sys
import time
import traceback

import pycurl
from ganeti.rapi import client as rapi


class Cluster(object):
    """A client, with the few steps that all checks share."""

    def __init__(self, ready):
        self.ready = ready
        host, port = ready["rapi"][len("https://"):].rsplit(":", 1)
        self.host, self.port = host, int(port)
        # One connection for all requests. The client makes a new one for each else, and most of the time goes into handshakes.
        curl = pycurl.Curl()
        self.client = self.connect(ready["rapi_user"], ready["rapi_password"], curl_factory=lambda: curl)
        self.node = None
        self.client_rules = []

    def connect(self, user, password, **kwargs):
        return rapi.GanetiRapiClient(self.host, port=self.port, username=user, password=password, **kwargs)

    def wait(self, job):
        """Waits until the job has ended and returns it."""
        info, serial = None, None
        end = time.time() + 60
        while time.time() < end:
            change = self.client.WaitForJobChange(job, ["status"], info, serial)
            info = change["job_info"]
            if change["log_entries"]:
                serial = change["log_entries"][-1][0]
            if info[0] in rapi.JOB_STATUS_FINALIZED:
                return self.client.GetJobStatus(job)
        raise AssertionError("job %s has not ended: %s" % (job, self.client.GetJobStatus(job)))

    def succeed(self, job):
        result = self.wait(job)
        assert result["status"] == "success", (job, result["status"], result["opresult"])
        return result

    def status(self, job):
        return self.client.GetJobStatus(job)["status"]

    def create(self, name, **kwargs):
        return self.client.CreateInstance("create", name, "diskless", [], [{}], os="noop", pnode=self.node,
                                          ip_check=False, name_check=False, **kwargs)

    def tag(self, tag, **kwargs):
        return self.client.AddClusterTags([tag], **kwargs)

    def rule(self, priority, predicates, action, reason="a check"):
        uuid = self.client.AddFilter(priority, predicates, action, [["check", reason, 1]])
        self.client_rules.append(uuid)
        return uuid

    def drop(self, uuid):
        self.client.DeleteFilter(uuid)
        self.client_rules.remove(uuid)

    def clean(self):
        for uuid in self.client.GetFilters():
            self.client.DeleteFilter(uuid)
        self.client_rules = []


def refused(code, call, *args, **kwargs):
    """Returns the message of the error that the call must end in."""
    try:
        call(*args, **kwargs)
    except rapi.GanetiApiError as err:
        assert err.code == code, "code %s, want %s: %s" % (err.code, code, err)
        return str(err)
    raise AssertionError("not refused")


NEW_JOBS = ["jobid", [">", "id", "watermark"]]
CREATIONS = ["opcode", ["=", "OP_ID", "OP_INSTANCE_CREATE"]]


def check_versions(c):
    assert c.client.GetVersion() == 2
    assert "instance-create-reqv1" in c.client.GetFeatures()
    assert c.client.GetInfo()["name"]
    assert any(name.startswith("noop") for name in c.client.GetOperatingSystems())


def check_credentials(c):
    refused(401, c.connect("nobody", "x").GetInfo)
    refused(401, c.connect(c.ready["rapi_user"], "wrong").GetInfo)


def check_instance_life(c):
    name = "web1.example.com"
    done = c.succeed(c.create(name, reason="a new shop"))
    trail = done["ops"][0]["reason"]
    assert [e[:2] for e in trail][:2] == [["gnt:user", "a new shop"], ["gnt:library:rlib2:instances", ""]], trail
    assert trail[2][:2] == ["gnt:account:rapi", "drover (127.0.0.1)"], trail
    assert trail[3][0] == "gnt:opcode:instance_create", trail
    info = c.client.GetInstance(name)
    assert info["status"] == "running" and info["pnode"] == c.node and info["beparams"]["memory"] > 0, info
    c.succeed(c.client.ShutdownInstance(name, timeout=5, reason="night"))
    assert c.client.GetInstance(name)["status"] == "ADMIN_down"
    c.succeed(c.client.StartupInstance(name))
    assert c.client.GetInstance(name)["oper_state"] is True
    for kind in ("hard", "soft", "full"):
        c.succeed(c.client.RebootInstance(name, reboot_type=kind))
    c.succeed(c.client.ModifyInstance(name, beparams={"maxmem": 256}))
    assert c.client.GetInstance(name)["beparams"]["maxmem"] == 256
    c.succeed(c.client.AddInstanceTags(name, ["a", "b:c"]))
    assert sorted(c.client.GetInstanceTags(name)) == ["a", "b:c"]
    c.succeed(c.client.DeleteInstanceTags(name, ["a"]))
    assert c.client.GetInstanceTags(name) == ["b:c"]
    assert name in c.client.GetInstances()
    assert [i["name"] for i in c.client.GetInstances(bulk=True)].count(name) == 1
    assert c.client.GetInstanceConsole(name)["instance"] == name
    c.succeed(c.client.DeleteInstance(name))
    refused(404, c.client.GetInstance, name)
    assert name not in c.client.GetInstances()


def check_dry_run(c):
    c.succeed(c.create("dry.example.com", dry_run=True))
    assert "dry.example.com" not in c.client.GetInstances()


def check_failed_job(c):
    job = c.client.StartupInstance("nosuch.example.com")
    done = c.wait(job)
    assert done["status"] == "error", done
    kind, args = done["opresult"][0]
    assert kind == "OpPrereqError" and args[1] == "unknown_entity", done["opresult"]
    assert c.client.WaitForJobCompletion(job, period=0) is False


def check_refused_parameters(c):
    text = refused(400, c.create, "bad.example.com", nosuch=1)
    assert "OpInstanceCreate" in text and "nosuch" in text, text
    text = refused(400, c.client.CreateInstance, "create", "bad.example.com", "no-template", [], [])
    assert "disk_template" in text, text
    assert "bad.example.com" not in c.client.GetInstances()


def check_jobs(c):
    job = c.tag("jobs")
    c.succeed(job)
    assert int(job) in c.client.GetJobs()
    assert [j["status"] for j in c.client.GetJobs(bulk=True) if j["id"] == job] == ["success"]
    assert c.client.WaitForJobCompletion(job, period=0) is True
    assert c.client.CancelJob(job) == [False, "Job %s not found in queue" % job]
    refused(404, c.client.GetJobStatus, 99999999)
    refused(404, c.client.WaitForJobChange, 99999999, ["status"], None, None)


def check_cancel(c):
    hold = c.rule(0, [], "PAUSE")
    job = c.tag("never")
    assert c.status(job) == "queued"
    assert c.client.CancelJob(job) == [True, "Dequeued job %s" % job]
    assert c.status(job) == "canceled"
    c.drop(hold)
    assert "never" not in c.client.GetClusterTags()


def check_filters(c):
    before = len(c.client.GetFilters())
    uuid = c.client.AddFilter(10, [NEW_JOBS], "CONTINUE", [["check", "why", 5]])
    rule = c.client.GetFilter(uuid)
    assert rule["uuid"] == uuid and rule["priority"] == 10 and rule["action"] == "CONTINUE", rule
    assert rule["predicates"] == [NEW_JOBS] and rule["reason_trail"][0] == ["check", "why", 5], rule
    assert rule["watermark"] == max(c.client.GetJobs()), rule
    assert uuid in c.client.GetFilters()
    # A trail that was read can be sent back.
    same = c.client.ReplaceFilter(uuid, 20, [CREATIONS], ["RATE_LIMIT", 2], [e for e in rule["reason_trail"]])
    assert same == uuid
    rule = c.client.GetFilter(uuid)
    assert rule["priority"] == 20 and rule["action"] == ["RATE_LIMIT", 2], rule
    assert rule["predicates"] == [["opcode", ["==", "OP_ID", "OP_INSTANCE_CREATE"]]], rule
    assert [r for r in c.client.GetFilters(bulk=True) if r["uuid"] == uuid] == [rule]
    assert c.client.DeleteFilter(uuid) is None
    refused(404, c.client.GetFilter, uuid)
    refused(404, c.client.DeleteFilter, uuid)
    own = "01234567-89ab-cdef-0123-456789abcdef"
    assert c.client.ReplaceFilter(own, 0, [], "CONTINUE") == own
    c.client.DeleteFilter(own)
    assert len(c.client.GetFilters()) == before


def check_bad_filters(c):
    for priority, predicates, action, place in [
            (-1, [], "ACCEPT", "-1"),
            (0, [["nosuch", ["=", "id", 1]]], "ACCEPT", "nosuch"),
            (0, [["jobid", ["frobnicate", "id", 1]]], "ACCEPT", "frobnicate"),
            (0, [["opcode", ["=~", "OP_ID", "("]]], "ACCEPT", "predicates[0]"),
            (0, [], "EXPLODE", "EXPLODE"),
            (0, [], ["RATE_LIMIT", 0], "RATE_LIMIT"),
    ]:
        text = refused(400, c.client.AddFilter, priority, predicates, action)
        assert place in text, text
    text = refused(400, c.client.AddFilter, 0, [], "ACCEPT", [["gnt:opcode:x", "no", 1]])
    assert "reserved" in text, text
    assert c.client.GetFilters() == []


HELD = "held back"


def held_job(c):
    """A job that was queued before the rule that a check is about."""
    hold = c.rule(5, [["reason", ["=", "reason", HELD]]], "PAUSE", "keeps jobs in the queue")
    old = c.tag("old", reason=HELD)
    assert c.status(old) == "queued"
    return hold, old


def check_drain(c):
    hold, old = held_job(c)
    drain = c.rule(0, [NEW_JOBS], "REJECT", "drained for the move")
    new = c.wait(c.tag("new"))
    assert new["status"] == "canceled", new
    assert drain in json.dumps(new["opresult"]) and "drained for the move" in json.dumps(new["opresult"]), new["opresult"]
    assert c.status(old) == "queued"
    c.drop(hold)
    c.succeed(old)
    c.drop(drain)
    c.succeed(c.tag("after-the-drain"))


def check_soft_drain(c):
    hold, old = held_job(c)
    drain = c.rule(0, [NEW_JOBS], "PAUSE", "soft drain")
    new = c.tag("soft")
    c.drop(hold)
    c.succeed(old)
    assert c.status(new) == "queued"
    c.drop(drain)
    c.succeed(new)


def check_one_maintenance(c):
    """Both ways to say it; the design's own text is a negation inside reason."""
    words = ["=~", "reason", "maintenance pink bunny"]
    for rules in ([(1, [NEW_JOBS, ["not", ["reason", words]]], "PAUSE")],
                  [(1, [["reason", words]], "ACCEPT"), (2, [NEW_JOBS], "PAUSE")]):
        hold, old = held_job(c)
        added = [c.rule(*rule) for rule in rules]
        other = c.tag("other")
        c.succeed(c.tag("bunny", reason="for maintenance pink bunny, step 1"))
        assert c.status(other) == "queued"
        c.drop(hold)
        c.succeed(old)  # it was there before
        assert c.status(other) == "queued"
        for uuid in added:
            c.drop(uuid)
        c.succeed(other)


def check_no_creations(c):
    hold, old = held_job(c)
    queued = c.create("queued.example.com", reason=HELD)
    assert c.status(queued) == "queued"
    rule = c.rule(1, [CREATIONS], "REJECT", "no new instances")
    for job in (queued, c.create("new.example.com")):
        done = c.wait(job)
        assert done["status"] == "canceled" and rule in json.dumps(done["opresult"]), done
    assert c.status(old) == "queued"
    c.drop(hold)
    c.succeed(old)
    c.drop(rule)
    c.succeed(c.create("later.example.com"))
    c.succeed(c.client.DeleteInstance("later.example.com"))
    assert not [n for n in c.client.GetInstances() if n in ("queued.example.com", "new.example.com")]


def check_rate_limit(c):
    rule = c.rule(1, [["opcode", ["=", "OP_ID", "OP_TAGS_SET"]]], ["RATE_LIMIT", 1])
    jobs = [c.tag("rate%d" % i) for i in range(5)]
    for job in jobs:
        c.succeed(job)
    c.drop(rule)


def check_text_of_any_script(c):
    text = u"f\u00fcr M\u00fcller \u4e2d\u6587 \U0001f600"
    rule = c.client.AddFilter(9, [["reason", ["=", "reason", text]]], "CONTINUE", [["check", text, 1]])
    assert c.client.GetFilter(rule)["reason_trail"][0][1] == text
    job = c.tag(u"\u00e4", reason=text)
    done = c.wait(job)
    assert done["ops"][0]["reason"][0][1] == text, done
    assert done["status"] == "success" or u"\u00e4" in json.dumps(done["opresult"], ensure_ascii=False), done
    assert job in [j["id"] for j in c.client.GetJobs(bulk=True)]
    assert rule in [r["uuid"] for r in c.client.GetFilters(bulk=True)]
    c.client.DeleteFilter(rule)


def check_queries(c):
    c.succeed(c.create("query.example.com"))
    result = c.client.Query("instance", ["name", "status"], ["=", "name", "query.example.com"])
    assert result["data"] == [[[0, "query.example.com"], [0, "running"]]], result
    assert [f["name"] for f in result["fields"]] == ["name", "status"], result
    assert c.client.Query("node", ["name", "role"])["data"][0][1] == [0, "M"]
    assert c.client.Query("group", ["name"])["data"] == [[[0, "default"]]]
    assert c.client.Query("filter", ["uuid"])["data"] == []
    job = c.tag("query")
    c.succeed(job)
    assert c.client.Query("job", ["status"], ["=", "id", int(job)])["data"] == [[[0, "success"]]]
    names = [f["name"] for f in c.client.QueryFields("instance", ["name", "status"])["fields"]]
    assert names == ["name", "status"], names
    assert "nosuch" in refused(400, c.client.Query, "instance", ["name"], ["=", "nosuch", "x"])
    c.succeed(c.client.DeleteInstance("query.example.com"))


def check_nodes_and_groups(c):
    assert c.client.GetNodes() and c.client.GetNodes(bulk=True)[0]["role"] == "M"
    assert c.client.GetNode(c.node)["name"] == c.node
    assert c.client.GetNodeRole(c.node) == "master"
    refused(404, c.client.GetNode, "nosuch")
    c.succeed(c.client.AddNodeTags(c.node, ["rack:1"]))
    assert c.client.GetNodeTags(c.node) == ["rack:1"]
    assert c.client.GetGroups() == ["default"]
    assert c.client.GetGroup("default")["node_list"]
    refused(404, c.client.GetGroup, "nosuch")
    assert c.client.GetNetworks() == []
    assert "rack" in c.client.GetClusterTags() or c.succeed(c.tag("rack"))


# How many fields each item has; those of jobs are fifteen more than Ganeti's.
FIELD_COUNTS = {"instance": 297, "node": 51, "group": 25, "network": 19, "export": 2, "job": 34, "lock": 4, "filter": 20}

# The Python types of the values of each kind of field.
NUMBER, ANY = (int, float), (object, )
TYPES = {"text": (str, ), "bool": (bool, ), "number": (int, ), "unit": (int, ), "float": NUMBER, "timestamp": NUMBER, "other": ANY}


def furnish(c):
    """Makes one of everything that can be asked for, and returns the ids."""
    x = c.client
    c.succeed(x.CreateNetwork("asked", "192.0.2.0/24", gateway="192.0.2.1"))
    c.succeed(x.ConnectNetwork("asked", "default", "bridged", "br0"))
    c.succeed(x.CreateGroup("empty", alloc_policy="last_resort"))
    job = x.CreateInstance("create", "asked.example.com", "file", [{"size": 1024}], [{"network": "asked", "ip": "192.0.2.7"}], os="noop",
                           pnode=c.node, ip_check=False, name_check=False, beparams={"maxmem": 256, "minmem": 256, "vcpus": 2},
                           tags=["env:prod", "b"])
    c.succeed(job)
    return {"instance": "asked.example.com", "node": c.node, "group": "empty", "network": "asked", "job": int(job),
            "filter": c.rule(7, [CREATIONS], ["RATE_LIMIT", 3])}


def unfurnish(c):
    x = c.client
    for step in (lambda: x.DeleteInstance("asked.example.com"), lambda: x.DisconnectNetwork("asked", "default"),
                 lambda: x.DeleteNetwork("asked"), lambda: x.DeleteGroup("empty")):
        c.succeed(step())


def rows(result):
    """The rows of a query as dictionaries of [status, value]."""
    names = [f["name"] for f in result["fields"]]
    return [dict(zip(names, row)) for row in result["data"]]


def check_fields_of_every_item(c):
    for what, count in FIELD_COUNTS.items():
        fields = c.client.QueryFields(what)["fields"]
        names = [f["name"] for f in fields]
        assert len(fields) == len(set(names)) == count, (what, len(fields))
        for f in fields:
            assert sorted(f) == ["doc", "kind", "name", "title"] and f["kind"] in TYPES, f
            assert f["title"] and not set(f["title"]) & set(" \t") and f["doc"][0].isupper(), f
        some = c.client.QueryFields(what, [names[-1], "nosuch", names[0]])["fields"]
        assert some == [fields[-1], {"name": "nosuch", "title": "nosuch", "kind": "unknown", "doc": "Unknown field 'nosuch'"}, fields[0]], some


def check_query_of_every_item(c):
    ids = furnish(c)
    for what in FIELD_COUNTS:
        defs = c.client.QueryFields(what)["fields"]
        names = [f["name"] for f in defs]
        whole = c.client.Query(what, names)
        assert whole["fields"] == defs, what
        for row in whole["data"]:
            assert len(row) == len(names)
            for f, (status, value) in zip(defs, row):
                assert status in (0, 2, 3, 4), (what, f["name"], status)
                fits = isinstance(value, TYPES[f["kind"]]) if status == 0 else value is None
                assert fits or value is None, (what, f, status, value)
        # Any order, each field twice, none at all.
        mixed = c.client.Query(what, names[::-1] + names)
        assert set(len(row) for row in mixed["data"]) <= set([2 * len(names)]), what
        if what == "lock":  # they come and go by themselves
            continue
        assert len(mixed["data"]) == len(whole["data"]), what
        assert [f["name"] for f in mixed["fields"]] == names[::-1] + names
        assert c.client.Query(what, []) == {"fields": [], "data": [[]] * len(whole["data"])}, what
        unknown = c.client.Query(what, ["nosuch"])
        assert unknown["data"] == [[[1, None]]] * len(whole["data"]), unknown
        if what not in ids:
            continue
        key = {"job": "id", "filter": "uuid"}.get(what, "name")
        one = c.client.Query(what, names, ["&", ["==", key, ids[what]]])
        assert len(one["data"]) == 1 and rows(one)[0][key] == [0, ids[what]], one["data"]
        others = c.client.Query(what, [key], ["!=", key, ids[what]])
        assert len(others["data"]) == len(whole["data"]) - 1, (what, others)
    unfurnish(c)


def check_values_of_queries(c):
    ids = furnish(c)
    wanted = {
        "instance": {"name": "asked.example.com", "status": "running", "oper_ram": 256, "be/vcpus": 2, "be/memory": 256, "pnode": c.node,
                     "tags": ["b", "env:prod"], "disk.sizes": [1024], "disk_template": "file", "nic.ip/0": "192.0.2.7", "admin_up": True,
                     "nic.network.name/0": "asked", "nic.link/0": "br0", "os": "noop", "admin_state": "up", "disk.count": 1},
        "node": {"name": c.node, "role": "M", "master": True, "offline": False, "pinst_cnt": 1, "pinst_list": ["asked.example.com"],
                 "group": "default", "sinst_list": []},
        "group": {"name": "empty", "alloc_policy": "last_resort", "node_cnt": 0, "node_list": [], "pinst_list": []},
        "network": {"name": "asked", "network": "192.0.2.0/24", "gateway": "192.0.2.1", "inst_list": ["asked.example.com"], "free_count": 252,
                    "reserved_count": 4, "group_list": [["default", "bridged", "br0", ""]]},
        "job": {"id": ids["job"], "status": "success", "summary": ["INSTANCE_CREATE(asked.example.com)"], "opstatus": ["success"],
                "archived": False, "priority": 0},
        "filter": {"uuid": ids["filter"], "priority": 7, "action": ["RATE_LIMIT", 3],
                   "predicates": [["opcode", ["==", "OP_ID", "OP_INSTANCE_CREATE"]]]},
    }
    for what, values in wanted.items():
        key = {"job": "id", "filter": "uuid"}.get(what, "name")
        found = rows(c.client.Query(what, list(values), ["==", key, values[key]]))
        assert found == [dict((name, [0, value]) for name, value in values.items())], (what, found)
    missing = rows(c.client.Query("instance", ["nic.ip/1", "snodes", "network_port"], ["==", "name", "asked.example.com"]))
    assert missing == [{"nic.ip/1": [3, None], "snodes": [0, []], "network_port": [3, None]}], missing
    exports = c.client.Query("export", ["node", "export"])
    assert exports["data"] == [], exports
    unfurnish(c)


COMMON = ["ctime", "mtime", "uuid", "serial_no", "tags"]
BULK = {
    "instance": ["name", "admin_state", "os", "pnode", "snodes", "disk_template", "nic.ips", "nic.macs", "nic.modes", "nic.uuids", "nic.names",
                 "nic.links", "nic.networks", "nic.networks.names", "nic.bridges", "network_port", "disk.sizes", "disk.spindles", "disk_usage",
                 "disk.uuids", "disk.names", "beparams", "hvparams", "oper_state", "oper_ram", "oper_vcpus", "status", "custom_hvparams",
                 "custom_beparams", "custom_nicparams", "custom_osparams"] + COMMON,
    "node": ["name", "offline", "master_candidate", "drained", "dtotal", "dfree", "sptotal", "spfree", "mtotal", "mnode", "mfree",
             "pinst_cnt", "sinst_cnt", "ctotal", "cnos", "cnodes", "csockets", "pip", "sip", "role", "pinst_list", "sinst_list",
             "master_capable", "vm_capable", "ndparams", "group.uuid"] + COMMON,
    "group": ["alloc_policy", "name", "node_cnt", "node_list", "ipolicy", "custom_ipolicy", "diskparams", "custom_diskparams", "ndparams",
              "custom_ndparams"] + COMMON,
    "network": ["name", "network", "gateway", "network6", "gateway6", "mac_prefix", "free_count", "reserved_count", "map", "group_list",
                "inst_list", "external_reservations"] + COMMON,
    "job": ["id", "ops", "status", "summary", "opstatus", "received_ts", "start_ts", "end_ts"],
    "filter": ["watermark", "priority", "predicates", "action", "reason_trail", "uuid"],
}


# What nodes report may be different at the next look.
LIVE = ["dtotal", "dfree", "sptotal", "spfree", "mtotal", "mnode", "mfree", "ctotal", "cnos", "cnodes", "csockets"]


def check_bulk_getters(c):
    """The long lists have the fields that they must, with the values of queries, and the short lists their names."""
    ids = furnish(c)
    x = c.client
    getters = {"instance": (x.GetInstances, x.GetInstance), "node": (x.GetNodes, x.GetNode), "group": (x.GetGroups, x.GetGroup),
               "network": (x.GetNetworks, x.GetNetwork), "job": (x.GetJobs, x.GetJobStatus), "filter": (x.GetFilters, x.GetFilter)}
    for what, (several, single) in getters.items():
        key = {"job": "id", "filter": "uuid"}.get(what, "name")
        objects = several(bulk=True)
        assert sorted(str(o[key]) for o in objects) == sorted(str(n) for n in several()), (what, several())
        queried = dict((row[key][1], row) for row in rows(x.Query(what, BULK[what])))
        assert len(queried) == len(objects) and ids[what] in queried, what
        for o in objects:
            assert sorted(o) == sorted(BULK[what]), (what, sorted(o))
            if what == "instance":
                assert o["beparams"].pop("memory") == o["beparams"]["maxmem"], o
            for name, value in o.items():
                assert name in LIVE or value == queried[o[key]][name][1], (what, name, value, queried[o[key]][name])
        alone = single(ids[what])
        for name, value in alone.items():
            if what == "instance" and name == "beparams":
                assert value.pop("memory") == value["maxmem"]
            if name in BULK[what] and name not in LIVE:
                assert value == queried[ids[what]][name][1], (what, name, value)
        more = {"node": ["secondary_ip"], "job": ["oplog", "opresult"]}.get(what, [])
        assert sorted(alone) == sorted(BULK[what] + more), (what, sorted(alone))
    unfurnish(c)


def check_bad_queries(c):
    deep = None
    for _ in range(120):
        deep = ["!", deep]
    for what, fields, qfilter, place in [
            ("instanc", ["name"], None, "instance"),
            ("node", ["name"], ["foo", "a"], "Unknown filter operand 'foo'"),
            ("node", ["name"], ["&", ["==", "name"]], "qfilter[1]"),
            ("node", ["name"], ["==", "name", 5], "Invalid types"),
            ("node", ["name"], ["==", "offline", True], "string or integer, got true"),
            ("node", ["name"], ["?", "name"], "boolean context"),
            ("node", ["name"], ["=~", "name", "("], "qfilter[2]"),
            ("node", None, None, "Missing 'fields'"),
            ("node", ["name"], ["==", "nmae", "x"], "did you mean 'name'?"),
            ("node", ["name"], deep, "nested deeper than 100"),
    ]:
        text = refused(400, c.client.Query, what, fields, qfilter)
        for coded, plain in (("&#x27;", "'"), ("&quot;", '"'), ("&amp;", "&")):
            text = text.replace(coded, plain)
        assert place in text, text
    assert "node" in refused(400, c.client.QueryFields, "nodes")
    refused(413, c.client.Query, "node", ["name"], ["==", "name", "x" * (11 << 20)])
    assert c.node in c.client.GetNodes()


def check_export_and_import(c):
    name = "kept.example.com"
    checks = {"name_check": False, "ip_check": False, "start": False}
    c.succeed(c.client.CreateInstance("create", name, "file", [{"size": 1024}], [{}], os="noop", pnode=c.node, **checks))
    assert c.succeed(c.client.PrepareExport(name, "local"))["opresult"] == [None]
    assert c.succeed(c.client.ExportInstance(name, "local", c.node))["opresult"] == [[True, [True]]]
    assert rows(c.client.Query("export", ["node", "export"])) == [{"node": [0, c.node], "export": [0, name]}]
    c.succeed(c.client.DeleteInstance(name))
    c.succeed(c.client.CreateInstance("import", name, "file", [], [], pnode=c.node, src_node=c.node, **checks))
    found = c.client.GetInstance(name)
    assert found["disk.sizes"] == [1024] and found["os"] == "noop", found
    c.succeed(c.client.DeleteInstance(name))


def check_storage(c):
    """What disks are kept in is told and changed, and asked for in the ways in which the client asks."""
    x = c.client
    for kind, name in (("file", "/srv/ganeti/file-storage"), ("lvm-vg", "xenvg"), ("lvm-pv", "/dev/fake0")):
        [units] = c.succeed(x.GetNodeStorageUnits(c.node, kind, "node,type,name,size,used,free,allocatable"))["opresult"]
        [(node, told, there, size, used, free, allocatable)] = units
        assert (node, told, there, allocatable) == (c.node, kind, name, True) and size >= free > 0 and used >= 0, units
    for may in (False, True):
        c.succeed(x.ModifyNodeStorageUnits(c.node, "lvm-pv", "/dev/fake0", allocatable=may))
        assert c.succeed(x.GetNodeStorageUnits(c.node, "lvm-pv", "allocatable"))["opresult"] == [[[may]]]
    c.succeed(x.RepairNodeStorageUnits(c.node, "lvm-vg", "xenvg"))
    for job in (x.ModifyNodeStorageUnits(c.node, "lvm-pv", "/dev/sda", allocatable=False), x.RepairNodeStorageUnits(c.node, "lvm-vg", "vg"),
                x.ModifyNodeStorageUnits(c.node, "lvm-vg", "xenvg", allocatable=False), x.GetNodeStorageUnits(c.node, "ext", "name"),
                x.GetNodeStorageUnits(c.node, "file", "nosuch"), x.ModifyNodeStorageUnits(c.node, "lvm-pv", "/dev/fake0")):
        assert x.WaitForJobCompletion(job) is False and c.status(job) == "error", job


def check_multi_allocation(c):
    one = lambda name, memory: c.client.InstanceAllocation("create", name, "diskless", [], [], os="noop", beparams={"memory": memory},
                                                           name_check=False, ip_check=False)
    done = c.succeed(c.client.InstancesMultiAlloc([one("one.example.com", 128), one("vast.example.com", 1 << 30), one("two.example.com", 128)], iallocator="hail"))
    result = done["opresult"][0]
    assert result["allocatable"] == ["one.example.com", "two.example.com"] and result["failed"] == ["vast.example.com"], result
    for taken, job in result["jobs"]:
        assert taken, result
        c.succeed(job)
    for name in result["allocatable"]:
        assert c.client.GetInstance(name)["oper_state"] is True
        c.succeed(c.client.DeleteInstance(name))


def check_every_method(c):
    """All other methods of the client must be understood: each makes a job."""
    c.succeed(c.create("all.example.com"))
    hold = c.rule(0, [], "PAUSE", "these jobs shall not run")
    x, i, n = c.client, "all.example.com", c.node
    jobs = [
        x.RedistributeConfig(), x.ModifyCluster(candidate_pool_size=5), x.DeleteClusterTags(["a"]), x.GetInstanceInfo(i, static=True),
        x.GrowInstanceDisk(i, 0, 1024, wait_for_sync=True), x.ReinstallInstance(i, os="noop", no_startup=True),
        x.RenameInstance(i, "other.example.com"), x.SetNodeRole(n, "drained", force=True), x.ModifyNode(n, vm_capable=True),
        x.DeleteNodeTags(n, ["a"]), x.CreateNetwork("net", "192.0.2.0/24"),
        x.ConnectNetwork("net", "default", "bridged", "br0"), x.DisconnectNetwork("net", "default"), x.ModifyNetwork("net", gateway="192.0.2.1"),
        x.AddNetworkTags("net", ["a"]), x.DeleteNetworkTags("net", ["a"]), x.DeleteNetwork("net"), x.CreateGroup("g", alloc_policy="preferred"),
        x.ModifyGroup("default", alloc_policy="preferred"), x.RenameGroup("default", "d"), x.AssignGroupNodes("default", [n]),
        x.AddGroupTags("default", ["a"]), x.MigrateInstance(i, mode="live"), x.FailoverInstance(i),
        x.ReplaceInstanceDisks(i, disks=[0], mode="replace_on_primary"), x.DeleteGroupTags("default", ["a"]), x.DeleteGroup("nosuch"),
        x.PowercycleNode(n, force=True), x.EvacuateNode(n, iallocator="hail", mode="all"), x.MigrateNode(n, mode="live"),
        x.ActivateInstanceDisks(i, ignore_size=True), x.DeactivateInstanceDisks(i, force=True), x.RecreateInstanceDisks(i, disks=[0]),
        x.PrepareExport(i, "local"), x.ExportInstance(i, "local", n, shutdown=True),
        x.InstancesMultiAlloc([x.InstanceAllocation("create", "m.example.com", "diskless", [], [], os="noop")], iallocator="hail"),
    ]
    assert x.GetGroupTags("default") == []
    for job in jobs:
        assert x.CancelJob(job)[0] is True, job
        assert c.status(job) == "canceled"
    c.drop(hold)
    c.succeed(c.client.DeleteInstance(i))


def main():
    with open(sys.argv[1]) as ready:
        cluster = Cluster(json.load(ready))
    cluster.node = cluster.client.GetNodes()[0]
    checks = [(name, value) for name, value in globals().items() if name.startswith("check_")]
    for name, check in checks:
        line = {"check": name[len("check_"):]}
        try:
            check(cluster)
        except Exception:  # every kind of failure is reported
            line["error"] = traceback.format_exc()
        cluster.clean()
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
