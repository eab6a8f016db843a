"use strict";
/* The panel below: max / mean of each layer over the steps, or over the layers of a single step. */
(() => {
  const NAMED = 8;
  const [LABEL, LETTER] = [58, 7]; // pixels for a layer's label, and of a letter
  // Paul Tol's "muted", checked for colour-blind eyes, and dashes beside it.
  const COLOURS = ["#332288", "#117733", "#CC6677", "#AA4499", "#44AA99", "#882255", "#88CCEE", "#999933"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "solid", "dash", "dot"];
  const MARK = "#d4007f";
  const GREY = "#c3c7cd";

  /** One entry per layer of the roles: its key, name, points by step, and its highest ratio. */
  function layers(model, role) {
    const found = new Map();
    for (const row of model.balance) {
      if (row.ratio === null || (role !== "all" && row.role !== role)) continue;
      const key = GmmHeatmap.layerKey({ layer: row.layer ?? -1, op: row.op ?? -1 });
      if (!key) continue;
      const id = `${row.role} ${key}`;
      if (!found.has(id)) {
        const name = role === "all" && model.roles.length > 1 ? `${model.roles[row.role]} · ${key}` : key;
        found.set(id, { key, name, of: model.roles[row.role], role: row.role, rows: [], peak: 0, place: row.layer ?? row.op });
      }
      const layer = found.get(id);
      layer.rows.push(row);
      layer.peak = Math.max(layer.peak, row.ratio);
    }
    const all = [...found.values()];
    for (const layer of all) layer.rows.sort((a, b) => (a.step ?? Infinity) - (b.step ?? Infinity));
    return all.sort((a, b) => a.role - b.role || a.place - b.place);
  }

  function line(layer, more) {
    return {
      type: "scatter",
      mode: "lines+markers",
      x: layer.rows.map((row) => row.step),
      y: layer.rows.map((row) => row.ratio),
      customdata: layer.rows.map((row) => ({ layer, row })),
      hoverinfo: "none",
      showlegend: false,
      ...more,
    };
  }

  /** All layers that are not named, as one line with gaps. */
  function grey(rest) {
    const [x, y, customdata] = [[], [], []];
    for (const layer of rest) {
      for (const row of layer.rows) {
        x.push(row.step);
        y.push(row.ratio);
        customdata.push({ layer, row });
      }
      x.push(null);
      y.push(null);
      customdata.push(null);
    }
    return {
      type: "scatter", mode: "lines+markers", x, y, customdata, hoverinfo: "none", showlegend: false,
      line: { color: GREY, width: 1 }, marker: { color: GREY, size: 4 },
    };
  }

  function overSteps(all, named, marked) {
    const rest = all.filter((layer) => !named.includes(layer) && layer.key !== marked);
    const data = rest.length ? [grey(rest)] : [];
    named.forEach((layer, at) => {
      if (layer.key === marked) return;
      data.push(line(layer, { line: { color: COLOURS[at], width: 2, dash: DASHES[at] }, marker: { color: COLOURS[at], size: 6 } }));
    });
    for (const layer of all) {
      if (layer.key === marked) data.push(line(layer, { line: { color: MARK, width: 3.5 }, marker: { color: MARK, size: 8 } }));
    }
    return data;
  }

  function overLayers(all, marked) {
    const numbers = all.map((layer) => (layer.key === marked ? MARK : "#5b7fa8"));
    return [{
      type: "bar",
      x: all.map((layer, at) => at),
      y: all.map((layer) => layer.rows[0].ratio),
      customdata: all.map((layer) => ({ layer, row: layer.rows[0] })),
      marker: { color: numbers },
      hoverinfo: "none",
      showlegend: false,
    }];
  }

  /** Labels of bars: layers, and below those of each role its name, as far as there is room. */
  function barLabels(all, width) {
    const each = width / all.length;
    const every = all.length > 1 ? Math.ceil(LABEL / each) : 1;
    const [tickvals, ticktext, annotations] = [[], [], []];
    const roles = [...new Set(all.map((layer) => layer.role))];
    for (const role of roles) {
      const first = all.findIndex((layer) => layer.role === role);
      const own = all.filter((layer) => layer.role === role);
      for (let at = 0; at < own.length; at += every) {
        // The next role's first label needs its room too.
        const close = at + every > own.length && role !== roles[roles.length - 1];
        if (at && close) break;
        tickvals.push(first + at);
        ticktext.push(GmmHeatmap.escaped(own[at].key));
      }
      const most = Math.max(Math.floor(own.length * each / LETTER) - 1, 3);
      const { of } = own[0];
      const text = GmmHeatmap.escaped(of.length > most ? `${of.slice(0, most - 1)}…` : of);
      const place = { x: first + (own.length - 1) / 2, xref: "x", y: 0, yref: "paper", yanchor: "top", yshift: -18 };
      if (roles.length > 1) annotations.push({ ...place, text, showarrow: false });
    }
    return { ticks: { tickvals, ticktext }, annotations };
  }

  /** Figure, named layers with their colours, and title; null where nothing is known. */
  function balance(model, { role, steps, marked, width, height, left }) {
    const all = layers(model, role);
    if (!all.length) return null;
    const known = [...new Set(all.flatMap((layer) => layer.rows.map((row) => row.step)))].filter((step) => step !== null);
    const several = known.length > 1;
    const named = several ? [...all].sort((a, b) => b.peak - a.peak).slice(0, NAMED) : [];
    const data = several ? overSteps(all, named, marked) : overLayers(all, marked);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const top = Math.max(...all.map((layer) => layer.peak));
    const pad = Math.max((high - low) * 0.02, 0.1);
    const plotWidth = width - left - GmmHeatmap.MARGIN.right;
    const bars = barLabels(all, Math.max(plotWidth, 60));
    const layout = {
      width,
      height,
      margin: { l: left, r: GmmHeatmap.MARGIN.right, t: 8, b: 40 },
      font: { family: GmmHeatmap.FONT, size: 12, color: "#1a1a1a" },
      hovermode: "closest",
      hoverdistance: 24,
      dragmode: false,
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      bargap: 0.15,
      annotations: several ? [] : bars.annotations,
      xaxis: several
        ? { title: { text: "step", standoff: 4 }, range: [low - pad, high + pad], tickformat: "d", ...(high - low <= 12 ? { dtick: 1, tick0: low } : {}), gridcolor: "#eceef1", zeroline: false }
        : { range: [-0.6, all.length - 0.4], ...bars.ticks, showgrid: false, zeroline: false, tickangle: 0 },
      yaxis: { title: { text: "max / mean", standoff: 6 }, range: [several ? 0.9 : 0, Math.max(top * 1.06, 1.5)], gridcolor: "#eceef1", zeroline: false },
      shapes: [
        { type: "line", xref: "paper", x0: 0, x1: 1, yref: "y", y0: 1, y1: 1, line: { color: "#565b63", width: 1, dash: "dot" } },
        ...(several ? steps.filter((step) => step !== null).map((step) => (
          { type: "line", yref: "paper", y0: 0, y1: 1, xref: "x", x0: step, x1: step, layer: "below", line: { color: "#9fb6d6", width: 5 } })) : []),
      ],
    };
    return { data, layout, named: named.map((layer, at) => ({ layer, colour: layer.key === marked ? MARK : COLOURS[at] })), several, count: all.length };
  }

  Object.assign(GmmHeatmap, { balance, balanceLayers: layers });
})();
