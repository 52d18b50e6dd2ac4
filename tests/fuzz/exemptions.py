"""Applies exemptions.toml to the failures of the fuzzer, and fails if an exemption is no longer needed."""

import json
import os
import re
import tomllib
from pathlib import Path

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi import checks

DOCUMENT = os.environ["COUNTERPART_DOCUMENT"]


class Exemption:
    def __init__(self, entry):
        self.check, self.documents, self.reason = entry["check"], entry["documents"], entry["reason"]
        self.messages = [re.compile(message) for message in entry["messages"]]
        self.used = entry.get("rare", False)

    def covers(self, check, text):
        return self.check == check and any(message.fullmatch(text) for message in self.messages)


def read():
    with open(Path(__file__).with_name("exemptions.toml"), "rb") as file:
        found = [Exemption(entry) for entry in tomllib.load(file)["exemption"]]
    return [exemption for exemption in found if DOCUMENT in exemption.documents]


EXEMPTIONS = read()


def message_of(response):
    """Returns the error message of a response; empty for a success."""
    return json.loads(response.text).get("error", {}).get("message", "")


def exempt(check):
    """Registers a check that ignores exempted failures. Its name is `judged_` and the name of the given check."""

    def judged(ctx, response, case):
        try:
            return check(ctx, response, case)
        except Failure:
            covering = [one for one in EXEMPTIONS if one.covers(check.__name__, message_of(response))]
            if not covering:
                raise
            for one in covering:
                one.used = True

    judged.__name__ = f"judged_{check.__name__}"
    return schemathesis.check(judged)


for name in sorted({exemption.check for exemption in EXEMPTIONS}):
    exempt(getattr(checks, name))


@schemathesis.check
class EveryExemptionIsNeeded:
    """Fails if an exemption was not used: it must be removed from exemptions.toml."""

    def after_run(self, ctx):
        idle = [f"{one.check}: {one.reason}" for one in EXEMPTIONS if not one.used]
        assert not idle, f"tests/fuzz/exemptions.toml: remove {DOCUMENT} from the documents of these exemptions, which no failure needed:\n" + "\n".join(idle)
