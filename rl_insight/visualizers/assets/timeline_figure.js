"use strict";
/* A Plotly figure of what is on screen: bars of the visible rows, axes, and step marks. */
(() => {
  const GAP = 1;
  // More marks than this are joined in ever coarser cells until they are fewer.
  const MOST_MARKS = 12000;
  const MOST_TEXTS = 400;
  const MOST_LEGEND_LINES = 5;
  const MARGIN = { top: 24, bottom: 46, right: 46 };
  // Pixels: bars that are thinner are drawn in whole pixels, at least one. Blurred, they would fade.
  const THIN = 2;
  // Ranges are drawn in stages that are usually so many pixels wide; narrower, they are a smear.
  const ROOM_FOR_RANGES = 24;
  const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", "Noto Sans", sans-serif';

  /** Plotly reads some HTML and formulas in its texts; a name from a file must stay a name. */
  function literal(text) {
    const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" };
    return text.replace(/[&<>$]/g, (character) => entities[character]);
  }

  /**
   * Rows from top to bottom: lanes in order, without those whose stages are all hidden; with `gaps`
   * also lanes that were never recorded.
   */
  function arrange(model, sorting, hidden, gaps) {
    const { lanes, group } = model.sortings[sorting];
    const rows = [];
    let top = 0;
    lanes.forEach((lane, place) => {
      const stages = [...model.stagesOf[lane]];
      const shown = stages.some((stage) => !hidden.has(stage)) || !stages.length;
      if (!shown || !(gaps || model.rows[lane].recorded)) return;
      const height = model.rows[lane].height;
      rows.push({ lane, top, height, band: group[place] % 2 });
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

  /** Top and bottom of a bar, in plain rows; those of a thin one are moved to edges of pixels. */
  function sharp(view, top, bottom) {
    if ((bottom - top) * view.row >= THIN) return [top, bottom];
    const [upper, lower] = [(top - view.top) * view.row, (bottom - view.top) * view.row];
    // Never below the pixel that it ends in, which may be the next lane's.
    const from = Math.min(Math.round(upper), Math.ceil(lower - 0.01) - 1);
    const to = Math.max(Math.round(lower), from + 1);
    return [view.top + from / view.row, view.top + to / view.row];
  }

  /** Bars of `rows` by paint: number of a stage, or of a tone of one. Coarser when too many. */
  function collect(model, view, rows) {
    const paintStage = (at) => model.spans.stage[at] * 4;
    const paintRange = (at) => model.spans.stage[at] * 4 + 1 + model.tones[model.spans.name[at]];
    for (let cell = view.cell; ; cell *= 2) {
      const from = Math.floor(view.from / cell) * cell;
      const window = { from, to: view.to, cell, gap: GAP };
      const least = ROOM_FOR_RANGES * view.cell;
      const shown = (at) => !view.hidden.has(model.spans.stage[at]);
      const roomy = (at) => shown(at) && model.typical[model.spans.stage[at]] >= least;
      const bars = [];
      for (const row of rows) {
        for (const line of model.lines[row.lane]) {
          if (line.level && !view.ranges) continue;
          const [top, bottom] = sharp(view, row.top + line.top * row.height, row.top + line.bottom * row.height);
          const places = line.unfinished.map((at) => Math.floor((model.start[at] - from) / cell));
          const begins = new Set(places);
          const [keep, paint] = line.level ? [roomy, paintRange] : [shown, paintStage];
          for (const mark of RLTimeline.marks(model, line, window, keep, paint)) {
            const left = from + mark.left * cell;
            const right = from + mark.right * cell;
            const torn = mark.single && begins.has(mark.left);
            bars.push({ left, right, top, bottom, paint: mark.paint, level: line.level, torn });
          }
        }
        if (bars.length > MOST_MARKS) break;
      }
      if (bars.length <= MOST_MARKS) return bars;
    }
  }

  /**
   * All bars of one colour as one closed outline, which a browser fills at once: up, along and down
   * around each bar, and between bars along lines that enclose nothing (the row's bottom, and the
   * left edge). Plotly would make an element for every bar of a broken outline.
   */
  function fillTrace(colour, bars, unit) {
    const x = [];
    const y = [];
    const edge = bars[0].left / unit;
    let bottom = null;
    for (const bar of bars) {
      const left = bar.left / unit;
      const right = bar.right / unit;
      if (bar.bottom !== bottom) {
        if (bottom !== null) {
          x.push(edge);
          y.push(bottom);
        }
        bottom = bar.bottom;
        x.push(edge);
        y.push(bottom);
      }
      x.push(left, left, right, right);
      y.push(bottom, bar.top, bar.top, bottom);
    }
    x.push(edge);
    y.push(bottom);
    return {
      type: "scatter",
      mode: "none",
      x,
      y,
      fill: "toself",
      fillcolor: colour,
      line: { simplify: false },
      hoverinfo: "skip",
      showlegend: false,
    };
  }

  /**
   * A trace per colour, stages under the ranges that lie on them, and what fills much under what
   * fills little, which would be hidden where bars of many tracks share a pixel.
   */
  function barTraces(model, bars) {
    const groups = new Map();
    for (const bar of bars) {
      const stage = model.stages[Math.floor(bar.paint / 4)];
      const colour = bar.paint % 4 ? stage.tones[(bar.paint % 4) - 1] : stage.colour;
      const above = bar.level ? 1 : 0;
      const key = `${above} ${colour}`;
      if (!groups.has(key)) groups.set(key, { above, colour, area: 0, bars: [] });
      const group = groups.get(key);
      group.area += (bar.right - bar.left) * (bar.bottom - bar.top);
      group.bars.push(bar);
    }
    return [...groups.values()]
      .sort((a, b) => a.above - b.above || b.area - a.area)
      .map(({ colour, bars: own }) => fillTrace(colour, own, model.unit.ns));
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
          // Beside a torn end a figure has two signs more, and less room.
          const torn = model.unfinished.has(at) ? 12 : 0;
          if ((right - left) / view.cell < 44 + torn) continue;
          const high = (line.bottom - line.top) * row.height * view.row;
          const part = view.ranges && line.ranges ? 0.44 : 1;
          if (high * part < 9) continue;
          const middle = line.top + (line.bottom - line.top) * part * (part < 1 ? 0.56 : 0.5);
          const center = (left + right - torn * view.cell) / 2;
          wide.push({ at, x: center / model.unit.ns, y: row.top + middle * row.height });
          if (wide.length > MOST_TEXTS) return [];
        }
      }
    }
    return [{
      type: "scatter",
      mode: "text",
      x: wide.map((bar) => bar.x),
      y: wide.map((bar) => bar.y),
      text: wide.map((bar) => RLTimeline.lasted(model, bar.at)),
      textfont: { size: 10, color: wide.map((bar) => model.stages[model.spans.stage[bar.at]].ink) },
      hoverinfo: "skip",
      showlegend: false,
    }];
  }

  /** A line and a label where each step begins, as many as there is room for. */
  function stepShapes(model, view, plotWidth) {
    const shapes = [];
    const annotations = [];
    const at = (start) => ((start - view.shownFrom) / (view.shownTo - view.shownFrom)) * plotWidth;
    const visible = model.steps.filter(([, start]) => start >= view.shownFrom && start <= view.shownTo);
    const crowded = visible.some(([, start], index) => index && at(start) - at(visible[index - 1][1]) < 24);
    let free = -Infinity;
    for (const [step, start] of visible) {
      const x = start / model.unit.ns;
      const wide = 30 + 7 * String(step).length;
      // At the right edge there is room only on the other side of the line.
      const turned = at(start) + wide > plotWidth;
      const left = turned ? at(start) - wide : at(start);
      const labelled = left >= free;
      if (labelled || !crowded) {
        shapes.push({
          type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, layer: "below",
          line: { color: "#9aa0a8", width: 1, dash: "4px,3px" },
        });
      }
      if (!labelled) continue;
      annotations.push({
        xref: "x", yref: "paper", x, y: 1, yanchor: "bottom", xanchor: turned ? "right" : "left", showarrow: false,
        text: `step ${step}`, font: { size: 12, color: "#1a1a1a" }, xshift: turned ? 2 : -2,
      });
      free = left + wide + 14;
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
   * plain rows on screen), row (pixels of a plain row), cell (ns of a pixel), ranges, gaps, hidden
   * (set of stages), width, height (pixels of the figure), left (pixels for labels), labels (by lane).
   */
  function figure(model, arrangement, view) {
    const rows = between(arrangement, view.top, view.bottom);
    const plotWidth = view.width - view.left - MARGIN.right;
    const steps = stepShapes(model, view, plotWidth);
    const every = Math.max(1, Math.ceil(13 / view.row));
    const labelled = rows.filter((_, place) => place % every === 0);
    const bars = collect(model, view, rows);
    const data = [
      ...RLTimeline.gapTraces(model, view, rows),
      ...barTraces(model, bars),
      ...RLTimeline.tornTraces(model, view, bars),
      ...textTraces(model, view, rows),
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
      },
      yaxis: {
        range: [view.bottom, view.top],
        fixedrange: true,
        tickmode: "array",
        tickvals: labelled.map((row) => row.top + row.height / 2),
        ticktext: labelled.map((row) => {
          const text = literal(view.labels[row.lane]);
          return model.rows[row.lane].recorded ? text : `<span style="color:#6b7078">${text}</span>`;
        }),
        tickfont: { size: Math.max(9, Math.min(12.5, view.row * 0.62)) },
        ticklabelstandoff: 7,
        showgrid: false,
        zeroline: false,
      },
      modebar: { orientation: "v", color: "#8a8f98", activecolor: "#1f4e8c", bgcolor: "rgba(0,0,0,0)" },
      shapes: [...bandShapes(rows), ...steps.shapes],
      annotations: steps.annotations,
    };
    return { data, layout, rows };
  }

  /** The figure as a picture of its own: with title, facts and legend above it. */
  function poster(model, arrangement, view) {
    const { data, layout } = figure(model, arrangement, view);
    const edge = 16;
    const width = view.width + edge;
    const legend = legendLines(model, view, width - 2 * edge);
    const lines = [
      `<span style="font-size:17px"><b>${literal(model.title)}</b></span>`,
      `<span style="color:#565b63">${literal(model.facts)}</span>`,
      ...legend,
    ];
    const head = 20 * lines.length + 22;
    layout.width = width;
    layout.height = view.height + head;
    layout.margin = { ...layout.margin, l: view.left + edge, t: MARGIN.top + head };
    layout.annotations.push({
      xref: "paper", yref: "paper", x: 0, y: 1, xanchor: "left", yanchor: "bottom", align: "left",
      xshift: -view.left, yshift: MARGIN.top + 4, showarrow: false, font: { size: 12.5 },
      text: lines.join("<br>"),
    });
    return { data, layout };
  }

  function legendLines(model, view, room) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `12.5px ${FONT}`;
    const lines = [];
    let free = 0;
    function add(sign, colour, name) {
      const wide = pen.measureText(`${sign} ${name}`).width + 28;
      if (wide > free) {
        lines.push([]);
        free = room;
      }
      free -= wide;
      lines[lines.length - 1].push(`<span style="color:${colour}">${sign}</span> ${literal(name)}`);
    }
    // First, since the last lines may be cut, and nothing else in the picture explains it.
    if (model.hasGaps && view.gaps) add("▨", RLTimeline.GAP_COLOUR, RLTimeline.GAP_NAME);
    if (model.unfinished.size) add("≥", RLTimeline.TORN_COLOUR, RLTimeline.END_UNKNOWN);
    model.stages.forEach((stage, index) => {
      if (!view.hidden.has(index)) add("■", stage.colour, stage.name);
    });
    const shown = lines.slice(0, MOST_LEGEND_LINES).map((line) => line.join("\u2003\u2003"));
    if (shown.length < lines.length) shown[shown.length - 1] += "\u2003\u2003…";
    return shown;
  }

  Object.assign(RLTimeline, { literal, arrange, between, figure, poster, MARGIN, FONT });
})();
