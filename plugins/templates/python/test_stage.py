import unittest

import host
import app


class Test(unittest.TestCase):
    def test_a_long_result_is_cleared_and_the_tail_is_left_alone(self):
        cleared = []
        host.imports.env.config = lambda: "{}"
        host.imports.history.kinds = lambda start, count: bytes([1, 4, 5, 4, 5, 4, 5])
        host.imports.history.marks = lambda start, count: [0, 0, 0, 0, 0, 4, 4]
        host.imports.history.sizes = lambda start, count: [7, 2, 20000, 2, 5, 2, 20000]
        host.imports.budget.view_tokens = lambda: 12000
        host.imports.budget.target = lambda: 1000
        host.imports.decisions.clear = cleared.extend
        app.StageApi().plan()
        self.assertEqual(cleared, [2])


if __name__ == "__main__":
    unittest.main()
