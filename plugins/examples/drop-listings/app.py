"""Listings and search hits go first: by the time a file is read, how it was found no longer matters.

Results of tools that list or search, and of shell commands that do, are cleared, oldest first, when they are further
back than some groups, until the target is reached.

[config]: `keep_groups`, the newest groups that are left alone (10); `tools`, parts of the names of further tools.
"""

import json
import re

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import budget, decisions, env, history

ALL = 0xFFFFFFFF
NONE = 0xFFFFFFFF
RESULT = 5
PROTECTED = 4
CLEARED = 4

#: Parts of the names of tools that list or search.
TOOLS = ("glob", "grep", "list", "search", "find", "ls", "tree")
#: A shell command that lists or searches, where the arguments of a call begin one.
COMMAND = re.compile(r'"(?:command|cmd|script)"\s*:\s*(?:\[\s*"[^"]*",\s*"-l?c",\s*)?"\s*(?:cd [^;&]*&&\s*)?'
                     r"(?:ls|find|fd|tree|rg|grep|git (?:grep|ls-files|status|log --oneline))\b")
#: Bytes of arguments that are looked at.
ARGUMENTS = 300
#: Results that are cleared at a time, before the view is weighed again.
BATCH = 16


def settings():
    config = json.loads(env.config())
    keep = config.get("keep_groups", 10)
    if not isinstance(keep, int) or keep < 0:
        raise Err("config: `keep_groups` must be a number of groups")
    return keep, TOOLS + tuple(str(name).lower() for name in config.get("tools", ()))


def words(name):
    """The words of a tool's name: `listFiles`, `list_files`, `Grep`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]


class StageApi(exports.StageApi):
    def check(self) -> None:
        settings()

    def plan(self) -> None:
        keep, names = settings()
        kinds = history.kinds(0, ALL)
        marks = history.marks(0, ALL)
        levels = history.levels(0, ALL)
        groups = history.groups(0, ALL)
        pairs = history.pairs(0, ALL)
        ids = history.tool_ids(0, ALL)
        if not kinds:
            return
        lists = [any(word in names for word in words(tool)) for tool in history.tools()]
        newest = groups[-1] - keep
        old = [
            entry
            for entry, kind in enumerate(kinds)
            if kind == RESULT
            and pairs[entry] != NONE
            and not marks[entry] & PROTECTED
            and levels[entry] < CLEARED
            and groups[entry] <= newest
        ]
        arguments = history.texts([pairs[entry] for entry in old], ARGUMENTS)
        found = [
            entry
            for entry, text in zip(old, arguments)
            if (ids[entry] < len(lists) and lists[ids[entry]]) or COMMAND.search(text)
        ]
        cleared = 0
        for at in range(0, len(found), BATCH):
            if budget.view_tokens() <= budget.target():
                break
            cleared += sum(code == 0 for code in decisions.clear(found[at : at + BATCH]))
        if cleared:
            decisions.explain(f"{cleared} listings and search results")
