import unittest

import host
import app


class Test(unittest.TestCase):
    def test_it_asks_first_and_writes_then(self):
        asked, written = [], []
        host.imports.summarizing.prior = lambda: "Three files were read."
        host.imports.summarizing.replies = lambda: []
        host.imports.summarizing.sections = lambda: ["Session intent"]
        host.imports.summarizing.span_text = lambda start, count: "user: mend the build"
        host.imports.summarizing.max_output_tokens = lambda: 500
        host.imports.summarizing.ask = lambda *given: asked.append(given)
        host.imports.summarizing.section = lambda *given: written.append(given)
        app.SummarizerApi().step()
        self.assertRegex(asked[0][1], "(?s)Three files were read.*user: mend the build$")
        host.imports.summarizing.replies = lambda: ["## Session intent\nMend the build"]
        app.SummarizerApi().step()
        self.assertEqual(written, [("", "## Session intent\nMend the build")])


if __name__ == "__main__":
    unittest.main()
