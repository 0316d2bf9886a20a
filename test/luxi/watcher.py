"""Runs Ganeti's watcher as it is, but that what starts daemons is a program that does nothing: there are none of Ganeti's to start."""

import sys

from ganeti import pathutils

pathutils.DAEMON_UTIL = "/bin/true"

from ganeti import watcher  # noqa: E402

sys.argv[0] = "ganeti-watcher"
sys.exit(watcher.Main())
