"use strict";
(function () {
  const tip = document.getElementById("tip");
  const number = (value) => value.toLocaleString("en-US");
  const share = (part, whole) => (whole > 0 ? (100 * part / whole).toFixed(1) + " %" : "–");
  const dollars = (micro) => "$" + (micro / 1e6).toFixed(micro >= 1e6 || micro === 0 ? 2 : micro >= 1e4 ? 4 : 6);

  /** The last index at which `list` is at most `value`, or -1. */
  function lastAtMost(list, value) {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] <= value) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  function setUp(section) {
    const source = section.querySelector("script.data");
    const data = source && JSON.parse(source.textContent);
    if (!data || data.turn.length === 0) return;
    const turns = Math.max(1, data.turn[data.turn.length - 1]);
    const plots = Array.from(section.querySelectorAll(".plot"));
    const canvas = section.querySelector("canvas.heat");
    const columnTurns = data.heat.columns.map((column) => column[0]);
    const passTurns = data.passes.map((pass) => pass.turn);
    // What each row of the heat map shows after each pass; filled when first needed.
    const expanded = new Map();

    function levelsAfter(column) {
      if (column < 0) return null;
      if (!expanded.has(column)) {
        const rows = new Uint8Array(Math.ceil(data.heat.entries / data.heat.per_row));
        let at = 0;
        for (const [level, count] of data.heat.columns[column][1]) {
          rows.fill(level, at, at + count);
          at += count;
        }
        expanded.set(column, rows);
      }
      return expanded.get(column);
    }

    /** The plotting area of a plot in CSS pixels, from its own top left corner. */
    function area(plot) {
      const svg = plot.querySelector("svg");
      const scale = svg.clientWidth / data.width;
      return {
        left: data.left * scale, top: data.top * scale, width: (data.width - data.left - data.right) * scale,
        height: svg.viewBox.baseVal.height * scale - (data.top + data.bottom) * scale,
      };
    }

    function paint() {
      if (!canvas) return;
      const { left, top, width, height } = area(canvas.parentNode);
      if (!(width > 0 && height > 0)) return;
      Object.assign(canvas.style, { left: left + "px", top: top + "px", width: width + "px", height: height + "px" });
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      const context = canvas.getContext("2d");
      const image = context.createImageData(canvas.width, canvas.height);
      const pixels = new Uint32Array(image.data.buffer);
      const colours = palette(context);
      const entries = Math.max(1, data.heat.entries);
      for (let x = 0; x < canvas.width; x++) {
        const turn = Math.floor(x / canvas.width * turns) + 1;
        const there = data.entries[Math.max(0, lastAtMost(data.turn, turn))];
        const levels = levelsAfter(lastAtMost(columnTurns, turn));
        for (let y = 0; y < canvas.height; y++) {
          const entry = Math.floor(y / canvas.height * entries);
          if (entry >= there) break;
          const level = levels ? levels[Math.floor(entry / data.heat.per_row)] : 0;
          if (level < colours.length) pixels[y * canvas.width + x] = colours[level];
        }
      }
      context.putImageData(image, 0, 0);
    }

    /** The colours of the levels as pixels, whatever the byte order. */
    function palette(context) {
      const style = getComputedStyle(document.documentElement);
      return data.levels.map((_, level) => {
        context.fillStyle = style.getPropertyValue("--level-" + level).trim();
        context.fillRect(0, 0, 1, 1);
        return new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0];
      });
    }

    function passWords(pass) {
      return [
        "Pass: " + pass.reasons.join(", "),
        number(pass.before) + " → " + number(pass.after) + " tokens; " + pass.decided,
        "prefix kept " + pass.kept,
      ].concat(pass.detail);
    }

    function words(turn, entry) {
      const at = Math.max(0, lastAtMost(data.turn, turn));
      const lines = [
        "Turn " + number(data.turn[at]),
        number(data.tokens[at]) + " tokens, " + share(data.tokens[at], data.usable) + " of usable",
        number(data.entries[at]) + " entries; " + share(data.cached[at], data.tokens[at]) + " from the cache",
        "cost so far " + dollars(data.cost[at]),
      ];
      for (const [name, costs] of data.baselines) if (at < costs.length) lines.push("  " + name + " " + dollars(costs[at]));
      if (entry !== null && entry < data.entries[at]) {
        const levels = levelsAfter(lastAtMost(columnTurns, turn));
        const level = levels ? levels[Math.floor(entry / data.heat.per_row)] : 0;
        lines.splice(1, 0, "entry " + number(entry) + ": " + (data.levels[level] || "not there yet"));
      }
      for (let pass = 0; pass < data.passes.length; pass++) {
        if (passTurns[pass] === turn) lines.push.apply(lines, passWords(data.passes[pass]));
      }
      return lines.join("\n");
    }

    function cross(turn) {
      for (const plot of plots) {
        const line = plot.querySelector(".cross");
        line.hidden = turn === null;
        if (turn === null) continue;
        const { left, top, width, height } = area(plot);
        Object.assign(line.style, { left: left + (turn - 0.5) / turns * width + "px", top: top + "px", height: height + "px" });
      }
    }

    function show(text, x, y) {
      tip.textContent = text;
      tip.hidden = false;
      const right = x + 18 + tip.offsetWidth > window.innerWidth;
      tip.style.left = Math.max(4, right ? x - 18 - tip.offsetWidth : x + 18) + "px";
      tip.style.top = Math.max(4, Math.min(y + 12, window.innerHeight - tip.offsetHeight - 8)) + "px";
    }

    function hide() {
      tip.hidden = true;
      cross(null);
    }

    for (const plot of plots) {
      plot.addEventListener("pointermove", (event) => {
        const box = plot.getBoundingClientRect();
        const { left, top, width, height } = area(plot);
        const x = (event.clientX - box.left - left) / width;
        const y = (event.clientY - box.top - top) / height;
        if (x < 0 || x >= 1 || y < 0 || y > 1) return hide();
        const turn = Math.floor(x * turns) + 1;
        cross(turn);
        show(words(turn, plot.contains(canvas) ? Math.floor(y * data.heat.entries) : null), event.clientX, event.clientY);
      });
      plot.addEventListener("pointerleave", hide);
      // The tooltip says more than the titles, which would cover it.
      for (const title of plot.querySelectorAll("g title")) title.remove();
    }
    for (const row of section.querySelectorAll("tr[data-pass]")) {
      const pass = data.passes[Number(row.dataset.pass)];
      const point = (x, y) => {
        cross(pass.turn);
        show(["Turn " + number(pass.turn)].concat(passWords(pass)).join("\n"), x, y);
      };
      row.addEventListener("pointermove", (event) => point(event.clientX, event.clientY));
      row.addEventListener("pointerleave", hide);
      row.addEventListener("focus", () => {
        const box = row.getBoundingClientRect();
        if (row.matches(":focus-visible")) point(box.left + 40, box.bottom);
      });
      row.addEventListener("blur", hide);
    }
    paint();
    new ResizeObserver(paint).observe(section);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  }

  for (const section of document.querySelectorAll("section.report")) setUp(section);
  // A link in the overview opens the session it leads to.
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  window.addEventListener("hashchange", reveal);
  reveal();
})();
