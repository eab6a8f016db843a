"use strict";
/* The range slider: the whole run in small, and on it the window that is shown. The window is moved
   by dragging it, changed by its two handles (or their arrow keys), drawn anew by dragging beside
   it. */
(() => {
  const BINS = 600;
  const SLIVER = 1e-6; // of a bin: what rounding puts beyond a span's end is less
  const LEAST = 2; // pixels: a single lane among thousands is still seen
  const NARROWEST = 6; // pixels of a drag that mean a window and not a click

  /** Over time, how many lanes are in each stage: for each bin and stage a share of the lanes. */
  function overview(model, arrangement, hidden) {
    const width = Math.max(model.extent, 1) / BINS;
    const counts = model.stages.map(() => new Float64Array(BINS));
    for (const { lane } of arrangement.rows) {
      for (const line of model.lines[lane]) {
        if (line.level) continue;
        for (let at = line.first; at < line.last; at += 1) {
          const stage = model.spans.stage[at];
          if (hidden.has(stage)) continue;
          cover(counts[stage], model.start[at] / width, model.end[at] / width);
        }
      }
    }
    return counts;
  }

  /** Add a span from `start` to `end`, in bins, to its stage's; however short, it is in one. */
  function cover(bins, start, end) {
    const inside = (place) => Math.min(Math.max(Math.floor(place), 0), BINS - 1);
    const first = inside(start);
    const last = inside(end);
    if (first === last) {
      bins[first] += Math.max(end - start, SLIVER);
      return;
    }
    const least = Math.min(SLIVER, (end - start) / 4);
    for (let bin = first; bin <= last; bin += 1) {
      const share = Math.min(end, bin + 1) - Math.max(start, bin);
      if (share > least) bins[bin] += share;
    }
  }

  /**
   * The heights of a pile of `counts` whose full height `room` means `highest`. None that is there
   * is lower than `least`: a tail of one lane among thousands would be a fraction of a pixel. What
   * no longer fits then is taken from those that are higher.
   */
  function heights(counts, highest, room, least) {
    const there = counts.filter((count) => count > 0).length;
    const low = Math.min(least, room / Math.max(there, 1));
    const wanted = counts.map((count) => (count > 0 ? Math.max((count / highest) * room, low) : 0));
    const total = wanted.reduce((sum, height) => sum + height, 0);
    if (total <= room) return wanted;
    const part = (room - there * low) / (total - there * low);
    return wanted.map((height) => (height ? low + (height - low) * part : 0));
  }

  function paint(canvas, model, counts) {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    const sums = Float64Array.from({ length: BINS }, (_, bin) => counts.reduce((sum, bins) => sum + bins[bin], 0));
    const highest = Math.max(...sums, 1e-9) * 1.08;
    for (let bin = 0; bin < BINS; bin += 1) {
      const left = Math.floor((bin * canvas.width) / BINS);
      const right = Math.max(Math.floor(((bin + 1) * canvas.width) / BINS), left + 1);
      let bottom = canvas.height;
      heights(counts.map((bins) => bins[bin]), highest, canvas.height, LEAST * ratio).forEach((height, stage) => {
        if (!height) return;
        pen.fillStyle = model.stages[stage].colour;
        pen.fillRect(left, bottom - height, right - left, height);
        bottom -= height;
      });
    }
  }

  /**
   * Make the slider in `box`. `show(from, to)` is called with nanoseconds while it is dragged.
   * Gives `draw(counts)` for the picture and `place(from, to)` for the window.
   */
  function slider(box, model, show) {
    const canvas = box.querySelector("canvas");
    const parts = Object.fromEntries(
      ["before", "after", "window", "from", "to"].map((name) => [name, box.querySelector(`[data-part=${name}]`)]),
    );
    const shown = { from: 0, to: model.extent };

    const whole = () => shown.to - shown.from >= model.extent * 0.9999;
    const timeAt = (clientX) => {
      const { left, width } = box.getBoundingClientRect();
      return (Math.min(Math.max((clientX - left) / width, 0), 1)) * model.extent;
    };

    function place(from, to) {
      shown.from = from;
      shown.to = to;
      const percent = (ns) => `${(ns / Math.max(model.extent, 1)) * 100}%`;
      parts.before.style.width = percent(from);
      parts.after.style.left = percent(to);
      parts.window.style.left = percent(from);
      parts.window.style.width = percent(to - from);
      parts.from.style.left = percent(from);
      parts.to.style.left = percent(to);
      for (const [name, ns] of [["from", from], ["to", to]]) {
        parts[name].setAttribute("aria-valuemax", String(model.extent / model.unit.ns));
        parts[name].setAttribute("aria-valuenow", String(ns / model.unit.ns));
        parts[name].setAttribute("aria-valuetext", RLTimeline.relative(model, ns));
      }
    }

    function drag(event, move) {
      event.preventDefault();
      box.setPointerCapture(event.pointerId);
      const stop = () => {
        box.removeEventListener("pointermove", move);
        box.removeEventListener("pointerup", stop);
        box.removeEventListener("pointercancel", stop);
      };
      box.addEventListener("pointermove", move);
      box.addEventListener("pointerup", stop);
      box.addEventListener("pointercancel", stop);
    }

    function moveEdge(event, fixed) {
      drag(event, (moved) => {
        const time = timeAt(moved.clientX);
        show(Math.min(time, fixed), Math.max(time, fixed));
      });
    }

    box.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const part = event.target.dataset.part;
      const began = timeAt(event.clientX);
      const { from, to } = shown;
      if (part === "from" || part === "to") {
        event.target.focus();
        moveEdge(event, part === "from" ? to : from);
      } else if (part === "window" && !whole()) {
        drag(event, (moved) => {
          const by = timeAt(moved.clientX) - began;
          show(from + by, to + by);
        });
      } else {
        const x = event.clientX;
        drag(event, (moved) => {
          if (Math.abs(moved.clientX - x) < NARROWEST) return;
          const time = timeAt(moved.clientX);
          show(Math.min(time, began), Math.max(time, began));
        });
      }
    });
    box.addEventListener("dblclick", () => show(0, model.extent));

    function keys(name) {
      parts[name].addEventListener("keydown", (event) => {
        const turn = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
        const edge = { Home: 0, End: model.extent }[event.key];
        if (turn === undefined && edge === undefined) return;
        const time = edge === undefined ? shown[name] + (turn * model.extent) / 100 : edge;
        if (name === "from") show(Math.min(Math.max(time, 0), shown.to), shown.to);
        else show(shown.from, Math.max(Math.min(time, model.extent), shown.from));
        event.preventDefault();
        event.stopPropagation();
      });
    }
    keys("from");
    keys("to");

    return { draw: (counts) => paint(canvas, model, counts), place };
  }

  Object.assign(RLTimeline, { overview, slider });
})();
