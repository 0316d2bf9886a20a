"""Asks confd what Ganeti's own library can ask, and prints the answers as JSON.

confd_client.py QUESTIONS

QUESTIONS is a JSON list of [type, query]. The output has the answers, each as [status, answer], and what all files about the cluster hold.
The directory is that of GANETI_ROOTDIR.
"""

import json
import sys

from ganeti import constants, ssconf
from ganeti.confd import client

replies = {}


def told(upcall):
  if upcall.type == client.UPCALL_REPLY:
    replies[upcall.salt] = upcall.server_reply


asker = client.GetConfdClient(told)
answers = []
for kind, query in json.loads(sys.argv[1]):
  request = client.ConfdClientRequest(type=kind, query=query)
  asker.SendRequest(request, async_=False)
  late, _, _ = asker.WaitForReply(request.rsalt)
  if late:
    sys.exit("nobody answered %s" % ((kind, query), ))
  answers.append([replies[request.rsalt].status, replies[request.rsalt].answer])

store = ssconf.SimpleStore()
files = store.ReadAll()
missing = sorted(constants.VALID_SS_KEYS - set(files))
json.dump({"answers": answers, "files": files, "missing": missing, "master": store.GetMasterNode(), "candidates": store.GetMasterCandidates(),
           "hvparams": store.GetHvparamsForHypervisor("fake")}, sys.stdout)
