"use strict";
/* A Plotly figure of what is on screen: bars of the visible rows, axes, and the range slider. */
(() => {
  const GAP = 1;
  // More marks than this are joined in ever coarser cells until they are fewer.
  const MOST_MARKS = 12000;
  const MOST_TEXTS = 400;
  const SLIDER = 46;
  const BINS = 500;
  const MARGIN = { top: 24, bottom: 118, right: 22 };
  const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", "Noto Sans", sans-serif';

  /** Plotly reads some HTML in its texts; a name from a file must stay a name. */
  function literal(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  /** Rows from top to bottom: lanes in order, without those whose stages are all hidden. */
  function arrange(model, sorting, hidden) {
    const { lanes, band } = model.sortings[sorting];
    const rows = [];
    let top = 0;
    lanes.forEach((lane, place) => {
      const shown = [...model.stagesOf[lane]].some((stage) => !hidden.has(stage));
      if (!shown) return;
      const height = model.rows[lane].height;
      rows.push({ lane, top, height, band: band[place] });
      top += height;
    });
    return { rows, total: top };
  }

  /** The rows of an arrangement between two heights, in units of plain rows. */
  function between(arrangement, from, to) {
    const { rows } = arrangement;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].top + rows[middle].height > from) high = middle;
      else low = middle + 1;
    }
    let last = low;
    while (last < rows.length && rows[last].top < to) last += 1;
    return rows.slice(low, last);
  }

  /** Bars of `rows` by paint: number of a stage, or of a tone of one. Coarser when too many. */
  function collect(model, view, rows) {
    const paintStage = (at) => model.spans.stage[at] * 4;
    const paintRange = (at) => model.spans.stage[at] * 4 + 1 + model.tones[model.spans.name[at]];
    for (let cell = view.cell; ; cell *= 2) {
      const from = Math.floor(view.from / cell) * cell;
      const window = { from, to: view.to, cell, gap: GAP, hidden: view.hidden };
      const bars = [];
      for (const row of rows) {
        for (const line of model.lines[row.lane]) {
          if (line.level && !view.ranges) continue;
          const top = row.top + line.top * row.height;
          const bottom = row.top + line.bottom * row.height;
          for (const mark of RLTimeline.marks(model, line, window, line.level ? paintRange : paintStage)) {
            const left = from + mark.left * cell;
            const right = from + mark.right * cell;
            bars.push({ left, right, top, bottom, paint: mark.paint, level: line.level });
          }
        }
        if (bars.length > MOST_MARKS) break;
      }
      if (bars.length <= MOST_MARKS) return bars;
    }
  }

  function fillTrace(colour, bars, unit, extra) {
    const x = [];
    const y = [];
    for (const bar of bars) {
      const left = bar.left / unit;
      const right = bar.right / unit;
      x.push(left, right, right, left, null);
      y.push(bar.top, bar.top, bar.bottom, bar.bottom, null);
    }
    return {
      type: "scatter",
      mode: "lines",
      x,
      y,
      fill: "toself",
      fillcolor: colour,
      line: { width: 0, simplify: false },
      hoverinfo: "skip",
      showlegend: false,
      ...extra,
    };
  }

  function barTraces(model, bars) {
    const byPaint = new Map();
    for (const bar of bars) {
      if (!byPaint.has(bar.paint)) byPaint.set(bar.paint, []);
      byPaint.get(bar.paint).push(bar);
    }
    const traces = [];
    const paints = [...byPaint.keys()].sort((a, b) => (a % 4 ? 1 : 0) - (b % 4 ? 1 : 0) || a - b);
    for (const paint of paints) {
      const stage = model.stages[Math.floor(paint / 4)];
      const colour = paint % 4 ? stage.tones[(paint % 4) - 1] : stage.colour;
      const named = paint % 4 ? {} : { name: literal(stage.name), meta: "stage" };
      traces.push(fillTrace(colour, byPaint.get(paint), model.unit.ns, named));
    }
    return traces;
  }

  /** Over time, how many lanes are in each stage: the picture in the range slider. */
  function overviewTraces(model, arrangement, hidden) {
    const width = Math.max(model.extent, 1) / BINS;
    const counts = model.stages.map(() => new Float64Array(BINS));
    for (const { lane } of arrangement.rows) {
      for (const line of model.lines[lane]) {
        if (line.level) continue;
        for (let at = line.first; at < line.last; at += 1) {
          const bins = counts[model.spans.stage[at]];
          const first = Math.max(0, Math.floor(model.start[at] / width));
          const last = Math.min(BINS - 1, Math.floor(model.end[at] / width));
          for (let bin = first; bin <= last; bin += 1) {
            const covered = Math.min(model.end[at], (bin + 1) * width) - Math.max(model.start[at], bin * width);
            bins[bin] += Math.max(covered, 0) / width;
          }
        }
      }
    }
    const base = new Float64Array(BINS);
    const traces = [];
    counts.forEach((bins, stage) => {
      if (hidden.has(stage)) return;
      const bars = [];
      bins.forEach((count, bin) => {
        if (!count) return;
        const top = base[bin] + count;
        bars.push({ left: bin * width, right: (bin + 1) * width, top, bottom: base[bin] });
        base[bin] = top;
      });
      traces.push(fillTrace(model.stages[stage].colour, bars, model.unit.ns, { yaxis: "y2" }));
    });
    return { traces, highest: Math.max(1, ...base) };
  }

  /** Durations written into bars that have room for them. */
  function textTraces(model, view, rows) {
    if (view.row < 20) return [];
    const wide = [];
    for (const row of rows) {
      for (const line of model.lines[row.lane]) {
        if (line.level) continue;
        for (const at of RLTimeline.within(model, line, view.from, view.to, view.hidden)) {
          const left = Math.max(model.start[at], view.shownFrom);
          const right = Math.min(model.end[at], view.shownTo);
          if ((right - left) / view.cell < 52) continue;
          const high = (line.bottom - line.top) * row.height * view.row;
          const part = view.ranges && line.ranges ? 0.44 : 1;
          if (high * part < 9) continue;
          const middle = line.top + ((line.bottom - line.top) * part) / 2;
          wide.push({ at, x: (left + right) / 2 / model.unit.ns, y: row.top + middle * row.height });
          if (wide.length > MOST_TEXTS) return [];
        }
      }
    }
    return [{
      type: "scatter",
      mode: "text",
      x: wide.map((bar) => bar.x),
      y: wide.map((bar) => bar.y),
      text: wide.map((bar) => RLTimeline.duration(model.end[bar.at] - model.start[bar.at])),
      textfont: { size: 10, color: wide.map((bar) => model.stages[model.spans.stage[bar.at]].ink) },
      hoverinfo: "skip",
      showlegend: false,
    }];
  }

  function stepShapes(model, view, plotWidth) {
    const shapes = [];
    const annotations = [];
    let line = -Infinity;
    let label = -Infinity;
    for (const [step, start] of model.steps) {
      if (start < view.shownFrom || start > view.shownTo) continue;
      const at = ((start - view.shownFrom) / (view.shownTo - view.shownFrom)) * plotWidth;
      const x = start / model.unit.ns;
      if (at - line >= 6) {
        shapes.push({
          type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1,
          line: { color: "#8a8f98", width: 1, dash: "4px,3px" },
        });
        line = at;
      }
      if (at - label >= 58) {
        annotations.push({
          xref: "x", yref: "paper", x, y: 1, yanchor: "bottom", xanchor: "left", showarrow: false,
          text: `step ${step}`, font: { size: 12, color: "#1a1a1a" }, xshift: -2,
        });
        label = at;
      }
    }
    return { shapes, annotations };
  }

  function bandShapes(rows) {
    const shapes = [];
    rows.forEach((row) => {
      if (!row.band) return;
      const before = shapes[shapes.length - 1];
      if (before && before.y1 === row.top) before.y1 = row.top + row.height;
      else {
        shapes.push({
          type: "rect", xref: "paper", yref: "y", x0: 0, x1: 1, y0: row.top, y1: row.top + row.height,
          fillcolor: "#f4f5f7", line: { width: 0 }, layer: "below",
        });
      }
    });
    return shapes;
  }

  /**
   * The figure of a view.
   *
   * view: from, to (ns, of what is drawn), shownFrom, shownTo (ns, on screen), top, bottom (units of
   * plain rows on screen), row (pixels of a plain row), cell (ns of a pixel), ranges, hidden (set of
   * stages), width, height (pixels of the figure), left (pixels for labels), labels (by lane).
   */
  function figure(model, arrangement, overview, view) {
    const rows = between(arrangement, view.top, view.bottom);
    const plotWidth = view.width - view.left - MARGIN.right;
    const steps = stepShapes(model, view, plotWidth);
    const every = Math.max(1, Math.ceil(13 / view.row));
    const labelled = rows.filter((_, place) => place % every === 0);
    const data = [
      ...barTraces(model, collect(model, view, rows)),
      ...textTraces(model, view, rows),
      ...overview.traces,
    ];
    const layout = {
      width: view.width,
      height: view.height,
      margin: { l: view.left, r: MARGIN.right, t: MARGIN.top, b: MARGIN.bottom, pad: 0 },
      font: { family: FONT, size: 12, color: "#1a1a1a" },
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      hovermode: false,
      dragmode: view.dragmode,
      showlegend: false,
      uirevision: "view",
      xaxis: {
        range: [view.shownFrom / model.unit.ns, view.shownTo / model.unit.ns],
        title: { text: `Time since origin (${model.unit.symbol})`, font: { size: 12, color: "#565b63" }, standoff: 8 },
        gridcolor: "#e6e8eb",
        zeroline: false,
        showline: true,
        linecolor: "#8a8f98",
        tickfont: { color: "#565b63" },
        ticks: "outside",
        ticklen: 4,
        tickcolor: "#8a8f98",
        exponentformat: "none",
        separatethousands: true,
        rangeslider: {
          visible: true,
          range: [0, model.extent / model.unit.ns],
          thickness: SLIDER / (view.height - MARGIN.top - MARGIN.bottom),
          bgcolor: "#fafbfc",
          bordercolor: "#d5d8dd",
          borderwidth: 1,
          // Only the overview is meant for the slider: the bars lie outside what it shows.
          yaxis: { rangemode: "fixed", range: [-2, -1] },
          yaxis2: { rangemode: "fixed", range: [0, overview.highest * 1.05] },
        },
      },
      yaxis: {
        range: [view.bottom, view.top],
        fixedrange: true,
        tickmode: "array",
        tickvals: labelled.map((row) => row.top + row.height / 2),
        ticktext: labelled.map((row) => literal(view.labels[row.lane])),
        tickfont: { size: Math.max(9, Math.min(12.5, view.row * 0.62)) },
        showgrid: false,
        zeroline: false,
      },
      // The overview's own axis, turned to a part of it where there is nothing.
      yaxis2: { overlaying: "y", range: [-2, -1], fixedrange: true, visible: false },
      shapes: [...bandShapes(rows), ...steps.shapes],
      annotations: steps.annotations,
    };
    return { data, layout, rows };
  }

  Object.assign(RLTimeline, { literal, arrange, between, overviewTraces, figure, MARGIN, FONT });
})();
