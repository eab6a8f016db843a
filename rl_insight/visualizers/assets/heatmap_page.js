"use strict";
/* The page itself: its controls change a state; `draw` shows it. */
(() => {
  const byId = (id) => document.getElementById(id);
  const model = GmmHeatmap.read(byId("data").textContent);
  const { hover, MARGIN } = GmmHeatmap;
  const { number } = hover;
  const map = byId("map");
  const panel = byId("balance");
  const tip = byId("tip");

  const BALANCE = 230;
  const DOUBLE = 300; // ms between the clicks of a double-click, as Plotly has it

  const state = {
    step: "",
    role: "",
    ranks: "sum",
    some: "",
    someSummed: true,
    phase: "all",
    batch: "first",
    average: false,
    measure: "tokens",
    map: { tokens: model.maps[0].name, share: GmmHeatmap.AROUND },
    marked: "",
    hold: false,
  };
  const controls = GmmHeatmap.controls(model, state);
  let held = {};
  let clicked = { at: -Infinity, before: null }; // the last click into the heatmap
  let view = null; // what is on screen
  let at = null; // the cell that the keys are at
  let drawing = 0;

  // ---- drawing ----

  async function draw() {
    drawing += 1;
    const mine = drawing;
    delete document.body.dataset.ready;
    await drawChosen(mine);
    if (mine === drawing) document.body.dataset.ready = "true";
  }

  async function drawChosen(mine) {
    hideCursor();
    const chosen = controls.places();
    const chunks = chosen.map((place) => model.chunks[place]);
    if (chosen.some((place) => !model.unpacked.has(place))) byId("said").textContent = "Unpacking …";
    let unpacked;
    try {
      unpacked = await GmmHeatmap.load(model, chosen);
    } catch (error) {
      return say(error.message);
    }
    if (mine !== drawing) return undefined; // something else was chosen meanwhile
    controls.refill(chunks, unpacked);
    const { made, warned, assumes } = controls.choice(chunks);
    const sliced = GmmHeatmap.slice(unpacked, made);
    if (!sliced.lines.length) return say(["Nothing was recorded for this choice.", ...warned].join(" "));
    if (sliced.left) warned.push(`${number(sliced.left)} more lines are not drawn: choose fewer steps or ranks, or average the layers.`);
    if (model.map_note) warned.push(`${model.map_note[0].toUpperCase()}${model.map_note.slice(1)}.`);
    if (sliced.lines.some((line) => line.layer < 0 && !line.of)) warned.push("Rows named op… are single calls: their order does not tell their layer.");
    warn(warned, assumes);

    const placed = controls.comparable(chunks);
    const measure = state.measure;
    const found = GmmHeatmap.range(sliced.lines, measure);
    const top = state.hold && held[measure] ? held[measure] : found.top;
    held[measure] = top;
    const chosenMap = model.maps.find((one) => one.name === state.map[measure]);
    const scale = GmmHeatmap.colourscale(chosenMap, top);
    const named = GmmHeatmap.labelled(model, sliced);
    const room = Math.max(220, window.innerHeight * 0.62 - 60);
    const height = GmmHeatmap.heightFor(sliced.lines.length, room);
    const width = byId("scroller").clientWidth - (height > room + 1 ? 14 : 0);
    view = {
      sliced, named, measure, scale, top, width, height, room, placed, made,
      marked: state.marked,
      missing: sliced.lines.some((line) => line.experts < sliced.width),
      axis: placed ? "expert_index" : "expert_index (counted on each rank)",
      revision: `${sliced.lines.length} ${sliced.width}`,
    };
    byId("scroller").style.maxHeight = `${Math.ceil(room) + MARGIN.top + MARGIN.bottom + 4}px`;
    const figure = GmmHeatmap.figure(view);
    Object.assign(view, { left: figure.left, plotWidth: figure.plotWidth });
    legend(found);
    summary(chunks);
    at = null;
    await Plotly.react(map, figure.data, figure.layout, CONFIG);
    listen();
    retick();
    drawBalance();
    return undefined;
  }

  function say(sentence) {
    view = null;
    byId("said").textContent = sentence;
    warn([]);
    Plotly.purge(map);
    map.listening = false;
    drawBalance();
  }

  /** What is not as it was asked for, and, without alarm, what is taken for granted. */
  function warn(sentences, assumes = []) {
    for (const [id, said] of [["warned", sentences], ["assumes", assumes]]) {
      byId(id).hidden = !said.length;
      byId(id).textContent = said.join(" ");
    }
  }

  function amount(value) {
    return state.measure === "share" ? `×${value.toFixed(value >= 10 ? 0 : 2)}` : number(Math.round(value));
  }

  function legend(found) {
    const share = state.measure === "share";
    byId("scale-low").textContent = share ? "×0" : "0";
    byId("scale-bar").style.background = GmmHeatmap.gradient(view.scale);
    byId("scale-bar").replaceChildren();
    if (share) {
      const even = document.createElement("i");
      even.style.left = `${100 / view.top}%`;
      even.title = "×1: even";
      byId("scale-bar").append(even);
    }
    const above = GmmHeatmap.beyond(view.sliced.lines, state.measure, view.top);
    const beyond = above ? ` and more (${number(above)} ${above > 1 ? "cells" : "cell"}, up to ${amount(found.most)})` : "";
    byId("scale-high").textContent = `${amount(view.top)}${beyond} ${share ? "of the layer's mean; the line is ×1, even" : state.average ? "tokens per expert, mean of the layers" : "tokens per expert"}`;
    byId("scale-missing").hidden = !view.missing;
    map.classList.toggle("missing", view.missing);
  }

  /** Where a line belongs, in words. */
  function where(line) {
    const chosen = (name, text) => byId(name).selectedOptions[0]?.textContent ?? text;
    const words = [];
    const step = view.made.each.has("step") ? line.step : state.step;
    words.push(step === "sum" ? "all steps" : step === null || step === "null" ? "step unknown" : `step ${step}`);
    words.push(model.roles[line.role]);
    const summed = Math.max(...model.chunks.filter((chunk) => chunk.role === line.role).map((chunk) => chunk.summed));
    const several = line.ranks.size > 1 ? "sum over " : "";
    words.push(summed > 1 && !view.made.each.has("rank") && line.ranks.size === 1 && line.ranks.has(null) ? `sum over ${number(summed)} ranks` : `${several}${hover.rankWords(line.ranks)}`);
    if (line.recording) words.push(`recording ${line.recording}`);
    if (view.made.phase !== "all") words.push(model.phases[view.made.phase]);
    else if (line.phase >= 0) words.push(model.phases[line.phase]);
    if (view.made.each.has("batch")) words.push(line.batch < 0 ? "micro-batch unknown" : `micro-batch ${line.batch}`);
    else if (!byId("batch").disabled) words.push(state.batch === "first" ? "first micro-batch" : state.batch === "all" ? "all micro-batches" : `micro-batch ${chosen("batch", state.batch)}`);
    return words.join(" · ");
  }

  function summary(chunks) {
    const { lines, width } = view.sliced;
    let fullest = null;
    for (const line of lines) {
      for (let expert = 0; expert < width; expert += 1) {
        if (line.total && (!fullest || line.share[expert] > fullest.line.share[fullest.expert])) fullest = { line, expert };
      }
    }
    const parts = [`${number(lines.length)} ${lines.length > 1 ? "rows" : "row"} × ${number(width)} ${width > 1 ? "experts" : "expert"}`];
    if (lines.length && !view.made.each.size && state.role !== "all" && view.made.phase !== "all") parts.push(where(lines[0]));
    const said = byId("said");
    said.textContent = `${parts.join(" · ")}. `;
    if (fullest) {
      const strong = document.createElement("b");
      const place = lines.indexOf(fullest.line);
      strong.textContent = `×${fullest.line.share[fullest.expert].toFixed(2)} of the layer's mean: ${view.named.labels[place]}, expert ${fullest.expert}`;
      said.append("Fullest ", strong, `, ${number(Math.round(fullest.line.tokens[fullest.expert] * 10) / 10)} tokens.`);
    }
  }

  function drawBalance() {
    const role = state.role === "all" ? "all" : Number(state.role);
    const marked = state.step === "sum" || state.step === "each" || state.step === "null" ? [] : [Number(state.step)];
    const width = byId("scroller").clientWidth;
    const figure = GmmHeatmap.balance(model, { role, steps: marked, marked: state.marked, width, height: BALANCE, left: Math.max(view ? view.left : 0, 64) });
    const title = byId("balance-title");
    title.replaceChildren("Balance: max / mean of each layer");
    const legendBox = byId("balance-legend");
    legendBox.replaceChildren();
    if (!figure) {
      Plotly.purge(panel);
      panel.textContent = "No balance was worked out for this role.";
      return;
    }
    title.append(hover.element("small", `${figure.several ? "over steps" : "by layer"}, all ranks and micro-batches, forward phase; 1 is even`));
    if (!panel.data) panel.textContent = "";
    Plotly.react(panel, figure.data, figure.layout, { displayModeBar: false, responsive: false, doubleClick: false });
    if (figure.named.length) legendBox.append(figure.count > figure.named.length ? "Least even:" : "Layers, least even first:");
    for (const { layer, colour } of figure.named) {
      const button = document.createElement("button");
      const chip = hover.element("span", undefined, "swatch");
      chip.style.background = colour;
      chip.style.borderColor = colour;
      button.type = "button";
      button.setAttribute("aria-pressed", String(layer.key === state.marked));
      button.append(chip, `${layer.name} ×${layer.peak.toFixed(2)}`);
      button.addEventListener("click", () => mark(layer.key));
      legendBox.append(button);
    }
    const rest = figure.count - figure.named.length;
    if (figure.named.length && rest > 0) legendBox.append(`${number(rest)} more in grey`);
    if (!panel.listening) {
      panel.listening = true;
      panel.on("plotly_hover", ({ points, event }) => {
        if (points[0].customdata) hover.show(tip, hover.point(model, points[0].customdata), event.clientX, event.clientY);
      });
      panel.on("plotly_unhover", () => { tip.hidden = true; });
      panel.on("plotly_click", ({ points }) => {
        if (points[0].customdata) mark(points[0].customdata.layer.key);
      });
    }
  }

  /** Mark a layer in both panels; marking it again takes the mark away. */
  function mark(key) {
    state.marked = key === state.marked ? "" : key;
    byId("layer").value = state.marked;
    if (view) Plotly.relayout(map, { shapes: GmmHeatmap.shapes(view.sliced, view.named, state.marked) });
    drawBalance();
  }

  // ---- pointer and keys ----

  function ranges() {
    const { xaxis, yaxis } = map.layout;
    return { x: xaxis.range, y: yaxis.range };
  }

  function cellAt(event) {
    const box = map.getBoundingClientRect();
    const { x, y } = ranges();
    const right = (event.clientX - box.left - view.left) / view.plotWidth;
    const down = (event.clientY - box.top - MARGIN.top) / view.height;
    if (right < 0 || right >= 1 || down < 0 || down >= 1) return null;
    const expert = Math.round(x[0] + right * (x[1] - x[0]));
    const row = Math.round(y[1] + down * (y[0] - y[1]));
    const inside = expert >= 0 && expert < view.sliced.width && row >= 0 && row < view.sliced.lines.length;
    return inside ? { row, expert } : null;
  }

  function tipOf({ row, expert }, x, y) {
    const line = view.sliced.lines[row];
    const colour = GmmHeatmap.colourOf(view.scale, line[view.measure][expert], view.top);
    hover.show(tip, hover.cell(line, expert, where(line), view.placed, colour), x, y);
  }

  function pointed(event) {
    const cell = view && !event.buttons ? cellAt(event) : null;
    if (cell) tipOf(cell, event.clientX, event.clientY);
    else tip.hidden = true;
  }

  /** A frame around the cell that the keys are at. */
  function frame({ row, expert }, x, y) {
    const [wide, high] = [view.plotWidth / (x[1] - x[0]), view.height / (y[0] - y[1])];
    const { style } = byId("cursor");
    style.left = `${view.left + (expert - 0.5 - x[0]) * wide}px`;
    style.top = `${MARGIN.top + (row - 0.5 - y[1]) * high}px`;
    style.width = `${wide}px`;
    style.height = `${high}px`;
    byId("cursor").hidden = false;
  }

  function hideCursor() {
    byId("cursor").hidden = true;
    tip.hidden = true;
  }

  function moved(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && at) mark(GmmHeatmap.layerKey(view.sliced.lines[at.row]));
    else if (event.key === "Escape") hideCursor();
    else if (step) {
      const { lines, width } = view.sliced;
      at = at
        ? { row: Math.min(Math.max(at.row + step[0], 0), lines.length - 1), expert: Math.min(Math.max(at.expert + step[1], 0), width - 1) }
        : { row: 0, expert: 0 };
      const { x, y } = ranges();
      const scroller = byId("scroller");
      const down = MARGIN.top + (at.row - y[1]) / (y[0] - y[1]) * view.height;
      if (down < scroller.scrollTop + MARGIN.top || down > scroller.scrollTop + scroller.clientHeight - 20) scroller.scrollTop = down - scroller.clientHeight / 2;
      const box = map.getBoundingClientRect();
      frame(at, x, y);
      tipOf(at, box.left + view.left + (at.expert - x[0]) / (x[1] - x[0]) * view.plotWidth, box.top + down);
    } else return;
    event.preventDefault();
  }

  const CONFIG = {
    displaylogo: false,
    responsive: false,
    doubleClick: false,
    modeBarButtons: [[
      "zoom2d", "pan2d",
      { name: "whole", title: "Whole heatmap", icon: Plotly.Icons.home, click: whole },
      { name: "camera", title: "Download what is shown as a PNG", icon: Plotly.Icons.camera, click: () => Plotly.downloadImage(map, { format: "png", filename: "gmm_heatmap_view", scale: 2 }) },
    ]],
  };

  /** After a zoom rows have another height, and there is room for other labels. */
  function retick() {
    const { x, y } = ranges();
    const height = GmmHeatmap.heightFor(Math.abs(y[0] - y[1]), view.room);
    const resized = height !== view.height;
    view.height = height;
    const { tickvals, ticktext } = GmmHeatmap.ticks(view.named, y[1], y[0], view.height);
    const dtick = GmmHeatmap.tickStep(x[1] - x[0], view.plotWidth);
    const { xaxis, yaxis } = map.layout;
    if (!resized && String(tickvals) === String(yaxis.tickvals) && dtick === xaxis.dtick) return;
    if (resized) byId("scroller").scrollTop = 0;
    Plotly.relayout(map, {
      height: height + MARGIN.top + MARGIN.bottom,
      "yaxis.tickvals": tickvals,
      "yaxis.ticktext": ticktext,
      "xaxis.dtick": dtick,
    });
  }

  function relaid(change) {
    if (view && Object.keys(change).some((name) => /^[xy]axis\.range/.test(name))) retick();
  }

  function whole() {
    // What Plotly would go back to are the ranges of its first drawing, of whatever that was.
    Plotly.relayout(map, { "xaxis.range": [-0.5, view.sliced.width - 0.5], "yaxis.range": [view.sliced.lines.length - 0.5, -0.5] });
  }

  function listen() {
    if (map.listening) return;
    map.listening = true;
    map.on("plotly_relayout", relaid);
    function doubled() {
      // Its first click was no wish to mark anything.
      if (clicked.before !== null && state.marked !== clicked.before) mark(clicked.before || state.marked);
      clicked.before = null;
      whole();
    }
    map.on("plotly_doubleclick", doubled);
    map.on("plotly_click", ({ points, event }) => {
      // A busy browser hands on the second click so late that Plotly sees no double-click; the click
      // itself says that it is one.
      if (event.detail > 1) return doubled();
      if (!points.length || performance.now() - clicked.at < DOUBLE) return;
      clicked = { at: performance.now(), before: state.marked };
      mark(GmmHeatmap.layerKey(view.sliced.lines[points[0].pointNumber[0]]));
    });
  }

  function choose(id, apply) {
    byId(id).addEventListener("change", (event) => {
      apply(event.target.type === "checkbox" ? event.target.checked : event.target.value);
      draw();
    });
  }

  function stepBy(by) {
    const { steps } = controls;
    const place = steps.indexOf(state.step) + by;
    if (!steps.includes(state.step) || place < 0 || place >= steps.length) return;
    state.step = steps[place];
    byId("step").value = state.step;
    controls.agree("step");
    draw();
  }

  choose("step", (value) => {
    state.step = value;
    controls.agree("step");
  });
  choose("role", (value) => {
    state.role = value;
    controls.agree("role");
  });
  choose("ranks", (value) => {
    state.ranks = value;
    byId("some-control").hidden = value !== "some";
    if (value === "some") byId("some").focus();
  });
  choose("some", (value) => { state.some = value; });
  choose("some-summed", (value) => { state.someSummed = value; });
  choose("phase", (value) => { state.phase = value; });
  choose("batch", (value) => { state.batch = value; });
  choose("layers", (value) => { state.average = value === "average"; });
  choose("map-name", (value) => { state.map[state.measure] = value; });
  choose("hold", (value) => { state.hold = value; });
  byId("layer").addEventListener("change", (event) => {
    const { value } = event.target;
    mark(value === "" ? state.marked : value);
  });
  byId("earlier").addEventListener("click", () => stepBy(-1));
  byId("later").addEventListener("click", () => stepBy(1));
  for (const button of document.querySelectorAll("[data-measure]")) {
    button.addEventListener("click", () => {
      state.measure = button.dataset.measure;
      for (const one of document.querySelectorAll("[data-measure]")) one.setAttribute("aria-pressed", String(one === button));
      controls.maps();
      draw();
    });
  }
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const writes = event.target instanceof HTMLInputElement && event.target.type === "text";
    if (writes || event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === ",") stepBy(-1);
    if (event.key === ".") stepBy(1);
  });
  map.addEventListener("mousemove", pointed);
  // Plotly takes the click for itself: what is under the pointer is seen before, on the way down.
  map.addEventListener("pointerdown", (event) => {
    const cell = view ? cellAt(event) : null;
    if (!cell) return;
    [at, byId("cursor").hidden] = [cell, true];
    map.focus({ preventScroll: true });
  }, true);
  map.addEventListener("mouseleave", () => { tip.hidden = true; });
  map.addEventListener("keydown", moved);
  map.addEventListener("blur", hideCursor);
  byId("scroller").addEventListener("scroll", () => { if (document.activeElement !== map) tip.hidden = true; });

  const first = model.phases.indexOf(model.first.phase);
  state.phase = first < 0 ? "all" : String(first);
  state.batch = model.first.micro_batch === "all" ? "all" : "first";
  byId("some-summed").checked = state.someSummed;
  controls.setUp();
  let drawnWidth = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (window.innerWidth !== drawnWidth) draw();
      drawnWidth = window.innerWidth;
    }, 120);
  });
  async function follow(live) {
    const before = live.kept();
    await draw();
    for (const [id, value] of before ?? []) {
      const control = byId(id);
      const known = !(control instanceof HTMLSelectElement) || [...control.options].some((one) => one.value === value);
      if (!known) continue;
      if (control.type === "checkbox") control.checked = value;
      else control.value = value;
      control.dispatchEvent(new Event("change"));
    }
    live.keep(() => [...document.querySelectorAll(".controls select, .controls input, #hold")]
      .map((control) => [control.id, control.type === "checkbox" ? control.checked : control.value]));
  }

  if (globalThis.rlInsightLive) follow(globalThis.rlInsightLive);
  else draw();
})();
