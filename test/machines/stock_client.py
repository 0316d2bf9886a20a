"""Has Debian's stock RAPI client make, start, stop and grow one machine.

stock_client.py READY: the file that `drover dev --ready-file` wrote. It waits for a line
of its input behind each step, which it names on its output.
"""

import json
import sys

from ganeti.rapi import client as rapi

ready = json.load(open(sys.argv[1]))
host, port = ready["rapi"][len("https://"):].rsplit(":", 1)
c = rapi.GanetiRapiClient(host, port=int(port), username=ready["rapi_user"], password=ready["rapi_password"])


def step(name, job):
    assert c.WaitForJobCompletion(job, period=0.2), (name, c.GetJobStatus(job))
    print(name, flush=True)
    sys.stdin.readline()


NAME = "stock.example"
step("created", c.CreateInstance("create", NAME, "file", [{"size": 1}], [], os="tiny", hypervisor="kvm",
                                 beparams={"memory": 64, "vcpus": 1}, ip_check=False, name_check=False))
step("rebooted", c.RebootInstance(NAME, reboot_type="soft"))
step("grown", c.GrowInstanceDisk(NAME, 0, 4))
step("stopped", c.ShutdownInstance(NAME, timeout=60))
step("started", c.StartupInstance(NAME))
console = c.GetInstanceConsole(NAME)
assert console["kind"] == "msg" and NAME in console["message"], console
step("removed", c.DeleteInstance(NAME))
