"use strict";
/* The torn right end of a bar whose end nobody knows.
   The same as rl_insight/visualizers/timeline_torn.py. */
(() => {
  const END_UNKNOWN = "end unknown";
  const TORN_COLOUR = "#7d838c";
  // Pixels: how deep the teeth are and how high each is, and a strip of a bar too low for them.
  const DEEP = 9;
  const TOOTH = 7;
  const STRIP = 2;
  const LEAST_HEIGHT = 8;

  /** How long a span is in words; "≥" where it lasted longer than anything tells. */
  function lasted(model, at) {
    const least = model.unfinished.has(at) ? "≥ " : "";
    return least + RLTimeline.duration(RLTimeline.length(model, at));
  }

  /** Outlines of what is missing of `bar`, [[x, y], …] with x in ns and y in plain rows. */
  function torn(bar, view) {
    const { left, right, top, bottom } = bar;
    const width = (right - left) / view.cell;
    const height = (bottom - top) * view.row;
    const made = [];
    if (height < LEAST_HEIGHT) {
      const strip = Math.max(1, Math.min(STRIP, Math.floor(width / 5)));
      for (const from of [1, 3]) {
        if (from + 1 >= width) continue;
        const end = right - from * strip * view.cell;
        const begin = end - strip * view.cell;
        made.push([[begin, bottom], [begin, top], [end, top], [end, bottom]]);
      }
      return made;
    }
    const deep = Math.min(DEEP, width / 2) * view.cell;
    const teeth = Math.max(2, Math.round(height / TOOTH));
    const edge = [[right, bottom], [right, top]];
    for (let corner = 0; corner <= 2 * teeth; corner += 1) {
      edge.push([corner % 2 ? right : right - deep, top + ((bottom - top) * corner) / (2 * teeth)]);
    }
    return [edge];
  }

  /**
   * The torn ends of `bars` as one outline: each begins and ends at its bar's bottom, along which
   * lines lead there and back that enclose nothing.
   */
  function tornTraces(model, view, bars) {
    const x = [];
    const y = [];
    for (const bar of bars) {
      if (!bar.torn) continue;
      const edge = view.from / model.unit.ns;
      for (const outline of torn(bar, view)) {
        x.push(edge, ...outline.map(([time]) => time / model.unit.ns), edge);
        y.push(bar.bottom, ...outline.map(([, height]) => height), bar.bottom);
      }
    }
    if (!x.length) return [];
    return [{
      type: "scatter",
      mode: "none",
      name: END_UNKNOWN,
      x,
      y,
      fill: "toself",
      fillcolor: "#fff",
      line: { simplify: false },
      hoverinfo: "skip",
      showlegend: false,
    }];
  }

  /** The entry of the legend, which is no button: there is nothing to hide. */
  function tornEntry() {
    const entry = document.createElement("span");
    entry.className = "entry";
    entry.title = "The capture or its file ended before this stage did: it took at least as long as its bar.";
    const swatch = document.createElement("span");
    swatch.className = "swatch torn";
    entry.append(swatch, document.createTextNode(END_UNKNOWN));
    return entry;
  }

  Object.assign(RLTimeline, { END_UNKNOWN, TORN_COLOUR, lasted, tornTraces, tornEntry });
})();
