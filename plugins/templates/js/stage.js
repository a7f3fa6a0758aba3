// Clears results that are longer than 10,000 bytes, oldest first, until the target is reached.
import { config } from "foreshorten:plugin/env@0.1.0";
import { kinds, marks, sizes } from "foreshorten:plugin/history@0.1.0";
import { target, viewTokens } from "foreshorten:plugin/budget@0.1.0";
import { clear } from "foreshorten:plugin/decisions@0.1.0";

const ALL = 0xffffffff;
const TOOL_RESULT = 5; // of kinds
const PROTECTED = 4; // a bit of marks

export const stageApi = {
  // Called once when it is loaded: looks at its configuration. `throw "why"` refuses it.
  check() {
    JSON.parse(config());
  },

  // Makes decisions. `throw "why"` drops them all.
  plan() {
    const { longest = 10000 } = JSON.parse(config());
    const kind = kinds(0, ALL);
    const mark = marks(0, ALL);
    const size = sizes(0, ALL);
    for (let entry = 0; entry < kind.length; entry++) {
      const open = kind[entry] === TOOL_RESULT && !(mark[entry] & PROTECTED);
      if (!open || size[entry] <= longest) continue;
      if (viewTokens() <= target()) break;
      // The answer is a code for each: 0 accepted, else why not.
      clear([entry]);
    }
  },
};
