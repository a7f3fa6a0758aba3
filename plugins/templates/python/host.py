"""Stands in for the host in unit tests: `wit_world`, whose functions a test sets."""

import sys
import types

imports = types.ModuleType("wit_world.imports")
for _name in ("env", "history", "budget", "decisions", "condensing", "memo", "summarizing"):
    setattr(imports, _name, types.SimpleNamespace())
world = types.ModuleType("wit_world")
world.imports = imports
world.exports = types.SimpleNamespace(StageApi=object, SummarizerApi=object)
sys.modules.update({"wit_world": world, "wit_world.imports": imports})
