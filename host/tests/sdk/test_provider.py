"""The scripted provider refuses what the real ones refuse."""
import unittest

from provider import Refused, check_chat, check_messages, sign


def call(i, arguments="{}"):
    return {"id": i, "type": "function", "function": {"name": "f", "arguments": arguments}}


USER = {"role": "user", "content": "hello"}
CALLS = {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}


def tool(i):
    return {"role": "tool", "tool_call_id": i, "content": ""}


class Chat(unittest.TestCase):
    def fine(self, *messages):
        check_chat({"messages": list(messages)})

    def refused(self, *messages):
        with self.assertRaises(Refused):
            check_chat({"messages": list(messages)})

    def test_results_in_any_order_and_reused_ids_are_fine(self):
        self.fine(USER, CALLS, tool("b"), tool("a"), CALLS, tool("a"), tool("b"), {"role": "assistant", "content": "done"})

    def test_broken_pairs_are_refused(self):
        self.refused()
        self.refused(USER, CALLS, tool("a"))
        self.refused(USER, CALLS, tool("a"), USER, tool("b"))
        self.refused(USER, CALLS, USER, tool("a"), tool("b"))
        self.refused(USER, tool("a"))
        self.refused(USER, CALLS, tool("a"), tool("b"), tool("b"))

    def test_bad_messages_are_refused(self):
        self.refused({"role": "user", "content": None})
        self.refused(USER, {"role": "assistant", "content": None})
        self.refused(USER, {"role": "assistant", "content": None, "tool_calls": []})
        self.refused(USER, {"role": "model", "content": "x"})


def use(i):
    return {"type": "tool_use", "id": i, "name": "f", "input": {}}


def result(i, content="x"):
    return {"type": "tool_result", "tool_use_id": i, "content": content}


def text(t):
    return {"type": "text", "text": t}


def think(t, signature=None):
    return {"type": "thinking", "thinking": t, "signature": signature or sign(t)}


class Messages(unittest.TestCase):
    def body(self, *contents):
        return {"tools": [{"name": "f"}], "thinking": {"type": "enabled"}, "messages": [{"role": "assistant" if i % 2 else "user", "content": c} for i, c in enumerate(contents)]}

    def fine(self, *contents, **issued):
        check_messages(self.body(*contents), issued)

    def refused(self, *contents, **issued):
        with self.assertRaises(Refused):
            check_messages(self.body(*contents), issued)

    def test_results_first_then_text_is_fine(self):
        self.fine("go", [think("hm"), text("t"), use("a"), use("b")], [result("b"), result("a", ""), text("and more")])

    def test_broken_pairs_are_refused(self):
        self.refused("go", [use("a")], "no result")
        self.refused("go", [use("a"), use("b")], [result("a")])
        self.refused("go", [use("a")], [text("first me"), result("a")])
        self.refused([result("a")])
        self.refused("go", [use("a")], [result("a"), result("a")])
        self.refused("go", [use("a")], [result("a")], [use("a")], [result("a")])
        self.refused("go", [use("a")], [result("a")], "done", [result("a")])

    def test_neighbours_of_one_role_count_as_one(self):
        body = self.body("go", [use("a")], [result("a")])
        body["messages"].insert(2, {"role": "user", "content": "a note between call and result"})
        with self.assertRaises(Refused):
            check_messages(body)
        body = self.body("go", "fine")
        body["messages"] += [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
        check_messages(body)

    def test_text_must_not_be_empty(self):
        self.refused("")
        self.refused([text(" \n")])
        self.refused([])
        self.refused("go", [use("a")], [result("a", [text("")])])

    def test_ends_must_be_the_users(self):
        self.refused()
        self.refused("go", "answer")

    def test_thoughts_must_come_back_as_they_were_sent(self):
        self.refused("go", [think("hm", "AAAA"), use("a")], [result("a")])
        self.refused("go", [think("changed", sign("hm")), use("a")], [result("a")])
        self.fine("go", [think("hm"), use("a")], [result("a")], a=[think("hm")])
        self.refused("go", [use("a")], [result("a")], a=[think("hm")])
        self.fine("go", [use("a")], [result("a")], [use("b")], [result("b")], a=[think("hm")], b=[])


if __name__ == "__main__":
    unittest.main()
