"""Clears results that are longer than 10,000 bytes, oldest first, until the target is reached."""

import json

from wit_world import exports
from wit_world.imports import budget, decisions, env, history

ALL = 0xFFFFFFFF
TOOL_RESULT = 5  # of kinds
PROTECTED = 4  # a bit of marks


class StageApi(exports.StageApi):
    def check(self) -> None:
        """Called once when it is loaded: looks at its configuration.

        To refuse it, `from componentize_py_types import Err` and `raise Err("why")`.
        """
        json.loads(env.config())

    def plan(self) -> None:
        """Makes decisions. `raise Err("why")` drops them all."""
        longest = json.loads(env.config()).get("longest", 10_000)
        kinds = history.kinds(0, ALL)
        marks = history.marks(0, ALL)
        sizes = history.sizes(0, ALL)
        for entry, kind in enumerate(kinds):
            if kind != TOOL_RESULT or marks[entry] & PROTECTED or sizes[entry] <= longest:
                continue
            if budget.view_tokens() <= budget.target():
                break
            # The answer is a code for each: 0 accepted, else why not.
            decisions.clear([entry])
