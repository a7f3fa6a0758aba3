"""On this machine: a stand-in for the host, no WebAssembly. `python3 -m unittest` in this folder."""

import json
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[2] / "templates" / "python"))

import types

import host

sys.modules["componentize_py_types"] = types.SimpleNamespace(Err=type("Err", (Exception,), {}))
import app

CALLS = [
    ("Glob", '{"pattern":"**/*.rs"}'),
    ("read_file", '{"path":"src/ls.rs"}'),  # no listing
    ("bash", '{"command":"rg -n main src | head"}'),
    ("bash", '{"command":"cargo test -- ls"}'),  # no listing
    ("bash", '{"command":"cd /src && ls -la"}'),
    ("shell", '{"command":["bash","-lc","find . -name x"]}'),
    ("listFiles", "{}"),
    ("translate", "{}"),  # no listing
    ("grep", "{}"),  # too new
]


class Test(unittest.TestCase):
    def setUp(self):
        self.cleared, self.said, self.config = [], [], {"keep_groups": 1}
        tools = sorted({tool for tool, _ in CALLS})
        api = host.imports
        api.env.config = lambda: json.dumps(self.config)
        history = api.history
        # A call and its result, and so on; each pair is a group.
        history.kinds = lambda start, count: bytes([4, 5] * len(CALLS))
        history.marks = lambda start, count: [0] * (2 * len(CALLS))
        history.levels = lambda start, count: bytes(2 * len(CALLS))
        history.groups = lambda start, count: [at // 2 for at in range(2 * len(CALLS))]
        history.pairs = lambda start, count: [at ^ 1 for at in range(2 * len(CALLS))]
        history.tool_ids = lambda start, count: [tools.index(CALLS[at // 2][0]) for at in range(2 * len(CALLS))]
        history.tools = lambda: tools
        history.texts = lambda entries, most: [CALLS[entry // 2][1][:most] for entry in entries]
        api.budget.view_tokens = lambda: 100
        api.budget.target = lambda: 10
        api.decisions.clear = lambda entries: self.cleared.extend(entries) or bytes(len(entries))
        api.decisions.explain = self.said.append

    def test_listings_go_and_what_was_read_stays(self):
        app.StageApi().plan()
        self.assertEqual([entry // 2 for entry in self.cleared], [0, 2, 4, 5, 6])
        self.assertEqual(self.said, ["5 listings and search results"])

    def test_nothing_goes_when_there_is_room_or_it_is_new(self):
        host.imports.budget.view_tokens = lambda: 10
        app.StageApi().plan()
        host.imports.budget.view_tokens = lambda: 100
        self.config["keep_groups"] = 100
        app.StageApi().plan()
        self.assertEqual((self.cleared, self.said), ([], []))

    def test_further_tools_are_named_and_a_wrong_setting_is_refused(self):
        self.config["tools"] = ["translate"]
        app.StageApi().plan()
        self.assertIn(7, [entry // 2 for entry in self.cleared])
        self.config["keep_groups"] = "many"
        with self.assertRaises(app.Err):
            app.StageApi().check()


if __name__ == "__main__":
    unittest.main()
