// Failures that were not mended stay, and what went well goes first.
//
// A call that failed and was made again with success is mended: both its failures and older successes of the same call
// are cleared. The newest failures that nothing has mended are pinned, so that no later stage takes them. Then other
// results that went well are cleared, oldest first, until the target is reached.
//
// [config]: `pins`, how many failures are pinned (2); `least`, bytes below which a result is left alone (200).
import { config } from "foreshorten:plugin/env@0.1.0";
import { kinds, levels, marks, pairs, sizes, texts, toolIds } from "foreshorten:plugin/history@0.1.0";
import { target, viewTokens } from "foreshorten:plugin/budget@0.1.0";
import { clear, explain, pin } from "foreshorten:plugin/decisions@0.1.0";

const ALL = 0xffffffff;
const NONE = 0xffffffff;
const RESULT = 5;
const ERROR = 1;
const PROTECTED = 4;
const RECALL = 16;
const CLEARED = 4;

// Bytes of arguments by which calls are told apart.
const ARGUMENTS = 400;
// Results that are cleared at a time, before the view is weighed again.
const BATCH = 16;

function settings() {
  const { pins = 2, least = 200 } = JSON.parse(config());
  if (!Number.isInteger(pins) || pins < 0) throw "config: `pins` must be a number of results";
  return { pins, least };
}

export const stageApi = {
  check() {
    settings();
  },

  plan() {
    const { pins, least } = settings();
    const kind = kinds(0, ALL);
    const mark = marks(0, ALL);
    const level = levels(0, ALL);
    const size = sizes(0, ALL);
    const pair = pairs(0, ALL);
    const tool = toolIds(0, ALL);

    const results = [];
    for (let entry = 0; entry < kind.length; entry++) {
      if (kind[entry] === RESULT && pair[entry] !== NONE && !(mark[entry] & RECALL)) results.push(entry);
    }
    const given = texts(results.map((entry) => pair[entry]), ARGUMENTS);
    // The newest success of every call: what is older than it, of the same call, is mended or out of date.
    const mended = new Map();
    const key = (at) => `${tool[results[at]]} ${given[at]}`;
    results.forEach((entry, at) => {
      if (!(mark[entry] & ERROR)) mended.set(key(at), entry);
    });
    const old = [];
    const broken = [];
    const well = [];
    results.forEach((entry, at) => {
      if (mark[entry] & PROTECTED || level[entry] >= CLEARED) return;
      const last = mended.get(key(at));
      if (last !== undefined && last > entry) old.push(entry);
      else if (mark[entry] & ERROR) broken.push(entry);
      else if (size[entry] >= least) well.push(entry);
    });

    const pinned = pins > 0 ? broken.slice(-pins).filter((entry) => pin(entry) === 0).length : 0;
    let cleared = 0;
    for (const group of [old.filter((entry) => size[entry] >= least), well]) {
      for (let at = 0; at < group.length && viewTokens() > target(); at += BATCH) {
        cleared += clear(group.slice(at, at + BATCH)).filter((code) => code === 0).length;
      }
    }
    if (pinned + cleared > 0) explain(`${cleared} results that went well or were mended; ${pinned} failures pinned`);
  },
};
