"use strict";
/* The heatmap as Plotly draws it. */
(() => {
  const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", "Noto Sans", sans-serif';
  const MARGIN = { top: 40, right: 14, bottom: 8 };
  const TICK = 15; // pixels between labels at least
  const MOST_TICKS = 150; // Plotly takes milliseconds for each
  const GAP_FROM = { width: 7, height: 7 }; // cells this large are told apart by a gap
  const INK = "#1a1a1a";
  const MOST_MARKS = 300;

  const pen = document.createElement("canvas").getContext("2d");

  /** The parts of a line's name that differ among the lines, from the outermost to the layer. */
  function namer(model, sliced) {
    const { lines } = sliced;
    const differs = (name) => new Set(lines.map((line) => line[name])).size > 1;
    const parts = [];
    if (differs("step")) parts.push((line) => (line.step === null ? "step ?" : `step ${line.step}`));
    if (differs("role")) parts.push((line) => shortened(model.roles[line.role], 22));
    if (differs("rank")) parts.push((line) => (line.rank === null ? "rank ?" : `rank ${line.rank}`));
    if (differs("recording")) parts.push((line) => (line.recording ? `recording ${line.recording}` : ""));
    if (differs("batch")) parts.push((line) => (line.batch < 0 ? "batch ?" : `batch ${line.batch}`));
    if (differs("phase")) parts.push((line) => (line.phase < 0 ? "phase ?" : model.phases[line.phase]));
    return (line) => parts.map((part) => part(line)).filter(Boolean).join(" · ");
  }

  function shortened(text, limit) {
    return text.length > limit ? `${text.slice(0, limit - 6)}…${text.slice(-5)}` : text;
  }

  /** The lines' labels, and where a block of lines (one rank, one step, …) begins. */
  function labelled(model, sliced) {
    const name = namer(model, sliced);
    const labels = [];
    const heads = [];
    const edges = [];
    let before = null;
    sliced.lines.forEach((line, at) => {
      const head = name(line);
      if (head !== before && at) edges.push(at);
      before = head;
      heads.push(head);
      const tick = GmmHeatmap.tick(line);
      labels.push(head ? `${head} · ${tick}` : tick);
    });
    // Where every line is a block of its own, lines between them say nothing.
    return { labels, heads, edges: edges.length + 1 === labels.length ? [] : edges };
  }

  /** Pixels of the longest label. */
  function leftOf(labels) {
    pen.font = `12px ${FONT}`;
    let widest = 40;
    let longest = 0;
    for (const label of labels) {
      if (label.length < longest - 3) continue;
      longest = Math.max(longest, label.length);
      widest = Math.max(widest, pen.measureText(label).width);
    }
    return Math.ceil(widest) + 12;
  }

  /** Every n-th line between two places, as many as there is room for, but the first of each block. */
  function ticks(named, from, to, height) {
    const low = Math.max(0, Math.ceil(from));
    const high = Math.min(named.labels.length - 1, Math.floor(to));
    const pixels = height / Math.max(to - from, 1e-9);
    const least = Math.max(TICK, height / MOST_TICKS);
    const every = [1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 50, 100, 200, 400, 500, 1000, 2000, 4000].find((step) => step * pixels >= least) || 4000;
    const starts = [0, ...named.edges];
    const places = [];
    let block = 0;
    for (let at = low; at <= high; at += 1) {
      while (block + 1 < starts.length && starts[block + 1] <= at) block += 1;
      const below = at - starts[block];
      if (below % every) continue;
      const before = places[places.length - 1];
      const close = places.length && (at - before) * pixels < least;
      // The first line of a block matters more than the last label of the one before.
      if (close && !below && !starts.includes(before)) places.pop();
      else if (close) continue;
      places.push(at);
    }
    return { tickvals: places, ticktext: places.map((at) => GmmHeatmap.escaped(named.labels[at])) };
  }

  /** Plotly reads some HTML in its texts; names from files are no HTML. */
  function escaped(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  function band(from, to, more) {
    return { type: "line", xref: "paper", x0: 0, x1: 1, yref: "y", y0: from, y1: to, layer: "above", ...more };
  }

  /** Frames around the marked layer, and a line between blocks. */
  function shapes(sliced, named, marked) {
    const found = named.edges.slice(0, MOST_MARKS * 4).map((at) => band(at - 0.5, at - 0.5, { line: { color: INK, width: 1 } }));
    sliced.lines.forEach((line, at) => {
      if (marked && GmmHeatmap.layerKey(line) === marked && found.length < MOST_MARKS * 5) {
        found.push(band(at - 0.5, at + 0.5, { type: "rect", line: { color: "#d4007f", width: 2 } }));
      }
    });
    return found;
  }

  /** Height of the cells' part in pixels: rows as high as there is room, never thinner than 3. */
  function heightFor(rows, room) {
    return Math.round(Math.min(Math.max(Math.min(rows * 24, room), rows * 3, 60), 14000));
  }

  function figure(view) {
    const { sliced, named, width, height, measure, scale, top, marked } = view;
    const left = leftOf(named.labels);
    const plotWidth = Math.max(60, width - left - MARGIN.right);
    // Behind missing experts lies hatching, which must not shine through gaps.
    const roomy = !view.missing && plotWidth / sliced.width >= GAP_FROM.width && height / sliced.lines.length >= GAP_FROM.height;
    const data = [{
      type: "heatmap",
      z: sliced.lines.map((line) => line[measure]),
      zmin: 0,
      zmax: top,
      colorscale: scale,
      showscale: false,
      hoverinfo: "none",
      xgap: roomy ? 1 : 0,
      ygap: roomy ? 1 : 0,
    }];
    const layout = {
      width,
      height: height + MARGIN.top + MARGIN.bottom,
      margin: { l: left, r: MARGIN.right, t: MARGIN.top, b: MARGIN.bottom },
      font: { family: FONT, size: 12, color: INK },
      paper_bgcolor: "#fff",
      plot_bgcolor: view.missing ? "#dddfe3" : "#fff",
      dragmode: "zoom",
      xaxis: {
        side: "top",
        range: [-0.5, sliced.width - 0.5],
        title: { text: view.axis, standoff: 4 },
        ticks: "outside",
        ticklabeloverflow: "allow",
        ticklen: 3,
        tickformat: "d",
        dtick: tickStep(sliced.width, plotWidth),
        tick0: 0,
        tickangle: 0,
        showgrid: false,
        zeroline: false,
      },
      yaxis: {
        range: [sliced.lines.length - 0.5, -0.5],
        ticks: "outside",
        ticklabeloverflow: "allow",
        ticklen: 3,
        showgrid: false,
        zeroline: false,
        ...ticks(named, -0.5, sliced.lines.length - 0.5, height),
      },
      shapes: shapes(sliced, named, marked),
      uirevision: view.revision,
    };
    return { data, layout, left, plotWidth };
  }

  function tickStep(columns, pixels) {
    return [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((step) => step * pixels / columns >= 30) || Math.ceil(columns / 8);
  }

  Object.assign(GmmHeatmap, { FONT, MARGIN, figure, labelled, ticks, heightFor, shapes, escaped, tickStep });
})();
