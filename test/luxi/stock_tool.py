"""Runs Ganeti's command line tools against a given socket, one after the other.

stock_tool.py SOCKET

Each line of the input is a command line as a JSON list; each line of the output
is {"stdout", "stderr", "status"}. What all tools import is imported once, and
each command runs in a process of its own that is forked from there: a comparison
of hundreds of commands costs one start of Python.
"""

import importlib
import json
import logging
import os
import sys
import tempfile
import traceback

from ganeti import pathutils

pathutils.QUERY_SOCKET = sys.argv[1]

from ganeti import cli, utils  # noqa: E402,F401 -- cli is what takes long to import

# The tools log to files of a real installation.
logging.disable(logging.CRITICAL)
utils.SetupLogging = lambda *args, **kwargs: None


def become(line, stdout, stderr):
  """Is the tool: in a process of its own, which it ends."""
  nothing = os.open(os.devnull, os.O_RDONLY)
  for here, there in ((nothing, 0), (stdout.fileno(), 1), (stderr.fileno(), 2)):
    os.dup2(here, there)
  status = 1
  try:
    module = importlib.import_module("ganeti.client." + line[0].replace("-", "_"))
    sys.argv = line
    status = module.Main()
  except SystemExit as err:
    status = err.code
    if isinstance(status, str):
      print(status, file=sys.stderr)
      status = 1
  except BaseException:  # what Python itself would do with it
    traceback.print_exc()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(status or 0)


def run(line):
  """Runs a tool and returns what it wrote, and its status."""
  with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
    child = os.fork()
    if not child:
      become(line, stdout, stderr)
    _, status = os.waitpid(child, 0)
    for out in (stdout, stderr):
      out.seek(0)
    return {
      "stdout": stdout.read().decode(),
      "stderr": stderr.read().decode(),
      "status": os.waitstatus_to_exitcode(status),
    }


for text in sys.stdin:
  print(json.dumps(run(json.loads(text))), flush=True)
