"""Runs tests of Tempest, unmodified, against a running cluster.

Arguments: the directory of Tempest's configuration, and names of packages and modules below tempest.api. Each line of standard
output tells how one test ended: {"test": name below tempest.api, "outcome": "pass", "fail" or "skip", "text": why}. What keeps
a class from being set up, or ends badly behind its tests, is told of all its tests.
"""

import json
import os
import sys
import time
import unittest
import warnings

os.environ["TEMPEST_CONFIG_DIR"] = sys.argv[1]
warnings.simplefilter("ignore")  # they warn of what is deprecated

import tempest  # noqa: E402, it reads the environment

# They ask again after a second; a cluster in memory is quicker.
slept = time.sleep
time.sleep = lambda seconds: slept(min(seconds, 0.05))

ABOVE = "tempest.api."


def short(name):
    """A name below tempest.api, without the attributes that may stand behind it."""
    return name[len(ABOVE):].partition("[")[0]


class Results(unittest.TestResult):
    """Writes how the tests of a class end."""

    def __init__(self, tests):
        super().__init__()
        self.tests = tests

    def tell(self, test, outcome, text=""):
        told = [test] if isinstance(test, unittest.TestCase) else self.tests  # what stands for the class is no test
        for one in told:
            print(json.dumps({"test": short(one.id()), "outcome": outcome, "text": text}), flush=True)

    def addSuccess(self, test):
        self.tell(test, "pass")

    def addSkip(self, test, reason):
        self.tell(test, "skip", reason)

    def addError(self, test, err):
        self.tell(test, "fail", self._exc_info_to_string(err, test))

    addFailure = addError


def flat(suite):
    """All tests of a suite."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main():
    wanted = tuple(ABOVE + name + "." for name in sys.argv[2:])
    api = os.path.join(os.path.dirname(tempest.__file__), "api")
    classes = {}
    for test in flat(unittest.TestLoader().discover(api, top_level_dir=os.path.dirname(os.path.dirname(api)))):
        if test.id().startswith(wanted):
            classes.setdefault(type(test), []).append(test)
    for tests in classes.values():
        unittest.TestSuite(tests).run(Results(tests))


main()
