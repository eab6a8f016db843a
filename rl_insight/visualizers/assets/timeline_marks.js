"use strict";
/* What is drawn of a line of spans when the window has fewer pixels than spans.
   The same as rl_insight/visualizers/timeline_marks.py, for any window. */
(() => {
  /**
   * The bars of `line` in the window from `from` to `to`, as {left, right, paint, single} in cells
   * of `cell` nanoseconds from `from`. Only spans that `keep(at)` count; `paint(at)` numbers the
   * colour of one.
   *
   * A span of at least `gap + 2` cells is a bar of its own, with `gap` empty cells before a
   * neighbour that touches it. Shorter ones fill every cell that they touch; in a shared cell the
   * paint that covers most of it wins, and neighbouring cells of one paint are one bar.
   */
  function marks(model, line, window, keep, paint) {
    const { from, to, cell, gap } = window;
    const made = [];
    const weights = new Map();
    let current = -1;

    function flush() {
      if (!weights.size) return;
      let strongest = null;
      for (const [colour, weight] of weights) {
        if (strongest === null || weight > weights.get(strongest)) strongest = colour;
      }
      weights.clear();
      const before = made[made.length - 1];
      if (before && !before.single && before.right === current && before.paint === strongest) {
        before.right = current + 1;
      } else {
        made.push({ left: current, right: current + 1, paint: strongest, single: false });
      }
    }

    for (let at = RLTimeline.firstEndingAfter(model, line, from); at < line.last; at += 1) {
      if (model.start[at] >= to) break;
      if (!keep(at)) continue;
      const left = (model.start[at] - from) / cell;
      const right = (model.end[at] - from) / cell;
      const colour = paint(at);
      if (right - left >= gap + 2) {
        flush();
        made.push({ left: Math.floor(left), right: Math.ceil(right), paint: colour, single: true });
        continue;
      }
      const last = Math.max(Math.ceil(right), Math.floor(left) + 1);
      for (let touched = Math.floor(left); touched < last; touched += 1) {
        if (touched !== current) {
          flush();
          current = touched;
        }
        const covered = Math.min(right, touched + 1) - Math.max(left, touched);
        weights.set(colour, (weights.get(colour) || 0) + covered);
      }
    }
    flush();
    separate(made, gap);
    return made;
  }

  function separate(made, gap) {
    for (let index = 0; index + 1 < made.length; index += 1) {
      const mark = made[index];
      const next = made[index + 1].left;
      if (mark.right + gap > next) {
        const limit = next - (mark.single ? gap : 0);
        mark.right = Math.max(Math.min(mark.right, limit), mark.left + 1);
      }
    }
  }

  RLTimeline.marks = marks;
})();
