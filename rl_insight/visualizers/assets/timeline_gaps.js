"use strict";
/* What is not there: lanes and stretches that are hatched because nothing was recorded in them.
   They are no spans: nothing counts, sums or measures them. */
(() => {
  const GAP_NAME = "not recorded";
  const GAP_COLOUR = "#7d838c";
  const NARROWEST = 3; // pixels: a thinner hatch is a line
  const INSET = 0.1; // of a row, as a bar's

  /** The gap of `lane` that touches the window, or undefined. */
  function gapAt(model, lane, from, to) {
    return model.gaps[lane].find((gap) => gap.from < to && gap.to > from);
  }

  /** The hatched stretches of `rows` in the window, all in one trace. */
  function gapTraces(model, view, rows) {
    if (!view.gaps) return [];
    const x = [];
    const y = [];
    for (const row of rows) {
      for (const gap of model.gaps[row.lane]) {
        const left = Math.max(gap.from, view.from);
        const right = Math.min(Math.max(gap.to, gap.from + NARROWEST * view.cell), view.to);
        if (left >= right) continue;
        const top = row.top + INSET * row.height;
        const bottom = row.top + (1 - INSET) * row.height;
        const [from, to] = [left / model.unit.ns, right / model.unit.ns];
        x.push(from, from, to, to, from, null);
        y.push(bottom, top, top, bottom, bottom, null);
      }
    }
    if (!x.length) return [];
    return [{
      type: "scatter",
      mode: "lines",
      x,
      y,
      fill: "toself",
      fillcolor: "#fbfbfc",
      fillpattern: { shape: "/", fgcolor: "#b4b9c1", bgcolor: "#fbfbfc", size: 7, solidity: 0.18, fillmode: "overlay" },
      line: { color: "#b4b9c1", width: 1, simplify: false },
      hoverinfo: "skip",
      showlegend: false,
    }];
  }

  function gapSwatch() {
    const made = document.createElement("span");
    made.className = "swatch gap";
    return made;
  }

  /** The entry of the legend, which is no stage: a click hides the hatching and its lanes. */
  function gapButton(press) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(gapSwatch(), document.createTextNode(GAP_NAME));
    button.addEventListener("click", press);
    return button;
  }

  Object.assign(RLTimeline, { GAP_NAME, GAP_COLOUR, gapAt, gapTraces, gapSwatch, gapButton });
})();
