"""Runs one of Ganeti's command line tools against a given socket.

stock_tool.py SOCKET TOOL [ARGUMENT...]
"""

import importlib
import logging
import sys

from ganeti import pathutils, utils

socket, tool = sys.argv[1:3]
pathutils.QUERY_SOCKET = socket
# The tools log to files of a real installation.
logging.disable(logging.CRITICAL)
utils.SetupLogging = lambda *args, **kwargs: None

module = importlib.import_module("ganeti.client." + tool.replace("-", "_"))
sys.argv = [tool] + sys.argv[3:]
sys.exit(module.Main())
