"use strict";
/* The page itself: its buttons, keys and wheel change a view; `draw` shows it. */
(() => {
  const byId = (id) => document.getElementById(id);
  const model = RLTimeline.read(byId("data").textContent);
  const plot = byId("plot");
  const scroller = byId("scroller");
  const spacer = byId("spacer");
  const cursor = byId("cursor");
  const tip = byId("tip");
  const { MARGIN } = RLTimeline;

  const SLIDER = 66; // pixels that the range slider takes, with its margins
  const MOST_LINES = 30; // of the list of all lanes: more is no longer read
  const TALLEST_PICTURE = 4000; // pixels of rows that the camera takes beyond the screen
  const LEAST_HEIGHT = 120; // pixels of the rows' part of the plot
  const ROW = { least: 21, most: 34, fit: 3 };
  const NARROWEST = 200; // ns on screen: less is finer than any profiler

  const hasRanges = model.lines.some((own) => own.some((line) => line.level > 0));
  for (const own of model.lines) {
    const inner = own.some((line) => line.level > 0);
    for (const line of own) line.ranges = inner;
  }
  const state = {
    hover: "current",
    sorting: "default",
    hidden: new Set(),
    ranges: hasRanges,
    gaps: true,
    fit: false,
    dragmode: "zoom",
    from: 0,
    to: model.extent,
  };
  let arrangement;
  let counts;
  let sliderWidth = 0; // of the picture in the slider; 0 means that it must be drawn
  let view;
  let rows = [];
  let waiting = 0;

  function rearrange() {
    arrangement = RLTimeline.arrange(model, state.sorting, state.hidden, state.gaps);
    counts = RLTimeline.overview(model, arrangement, state.hidden);
    sliderWidth = 0;
  }

  /** Labels cut to at most a third of the page, and the pixels that the longest needs. */
  function fitLabels(width) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `12.5px ${RLTimeline.FONT}`;
    const room = Math.max(110, width * 0.36);
    let widest = 40;
    const labels = model.rows.map(({ label }) => {
      let text = label;
      let wide = pen.measureText(text).width;
      while (wide > room && text.length > 8) {
        const keep = Math.floor(text.length * Math.min(room / wide, 0.97)) - 1;
        const tail = Math.floor(keep * 0.45);
        text = `${label.slice(0, keep - tail)}…${label.slice(label.length - tail)}`;
        wide = pen.measureText(text).width;
      }
      widest = Math.max(widest, wide);
      return text;
    });
    return { labels, left: Math.ceil(widest) + 12 };
  }

  let fitted = { width: 0 };

  /** The view that the window's size, the scroll position and the state make. */
  function look() {
    const width = scroller.clientWidth;
    const height = scroller.clientHeight;
    if (fitted.width !== width) fitted = { width, ...fitLabels(width) };
    const inner = Math.max(60, height - MARGIN.top - MARGIN.bottom - SLIDER);
    const total = Math.max(arrangement.total, 1);
    const roomy = Math.floor(Math.min(inner / total, ROW.most));
    const row = state.fit ? Math.max(roomy, ROW.fit) : Math.max(roomy, ROW.least);
    // A single row is still as high as the buttons beside it.
    const shown = Math.min(Math.max(total, LEAST_HEIGHT / row), inner / row);
    const scrollable = Math.max(0, total - shown) * row;
    spacer.style.height = `${Math.round(scrollable)}px`;
    const top = Math.max(0, Math.min(scroller.scrollTop, scrollable)) / row;
    const plotWidth = Math.max(50, width - fitted.left - MARGIN.right);
    const span = state.to - state.from;
    return {
      width,
      height: Math.round(shown * row) + MARGIN.top + MARGIN.bottom,
      left: fitted.left,
      labels: fitted.labels,
      row,
      top,
      bottom: top + shown,
      plotWidth,
      cell: span / plotWidth,
      shownFrom: state.from,
      shownTo: state.to,
      // A margin on both sides, so that a pan has something to show before it ends.
      from: state.from - span / 2,
      to: state.to + span / 2,
      ranges: state.ranges && row >= 16,
      gaps: state.gaps,
      hidden: state.hidden,
      dragmode: state.dragmode,
    };
  }

  function draw() {
    waiting = 0;
    view = look();
    const figure = RLTimeline.figure(model, arrangement, view);
    rows = figure.rows;
    byId("fit").hidden = !state.fit && view.bottom - view.top >= arrangement.total;
    placeSlider();
    const lanes = arrangement.rows.length;
    const first = arrangement.rows.indexOf(rows[0]) + 1;
    const which = rows.length === 1 ? `lane ${first}` : `lanes ${first}–${first + rows.length - 1}`;
    byId("shown").textContent = rows.length < lanes
      ? `${which} of ${lanes.toLocaleString("en")}: scroll for more`
      : "";
    return Plotly.react(plot, figure.data, figure.layout, CONFIG);
  }

  function placeSlider() {
    const box = byId("slider");
    box.style.marginLeft = `${view.left}px`;
    box.style.width = `${view.plotWidth}px`;
    slider.place(state.from, state.to);
    if (sliderWidth === view.plotWidth) return;
    sliderWidth = view.plotWidth;
    slider.draw(counts);
  }

  function redraw() {
    if (!waiting) waiting = requestAnimationFrame(draw);
  }

  /** Show the time from `from` to `to`, kept inside the run. */
  function show(from, to) {
    const span = Math.min(Math.max(to - from, NARROWEST), model.extent);
    const start = Math.min(Math.max(from, 0), model.extent - span);
    state.from = start;
    state.to = start + span;
    // Now, and not with the next frame: a second key pressed before that goes on from here.
    slider.place(state.from, state.to);
    redraw();
  }

  const slider = RLTimeline.slider(byId("slider"), model, show);

  function zoom(factor, around) {
    show(around - (around - state.from) * factor, around + (state.to - around) * factor);
  }

  function pan(part) {
    const by = (state.to - state.from) * part;
    show(state.from + by, state.to + by);
  }

  function whole() {
    show(0, model.extent);
  }

  /** Save what is on screen as a PNG, with all its rows unless they are very many. */
  function save() {
    const all = arrangement.total * view.row <= TALLEST_PICTURE;
    const [top, bottom] = all ? [0, arrangement.total] : [view.top, view.bottom];
    const height = Math.round((bottom - top) * view.row) + MARGIN.top + MARGIN.bottom;
    const { data, layout } = RLTimeline.poster(model, arrangement, { ...view, top, bottom, height });
    return Plotly.downloadImage(
      { data, layout },
      { format: "png", filename: "rl_timeline", width: layout.width, height: layout.height, scale: 2 },
    );
  }

  const CONFIG = {
    displaylogo: false,
    displayModeBar: true,
    doubleClick: false,
    scrollZoom: false,
    responsive: false,
    modeBarButtons: [
      ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d"],
      [{ name: "whole", title: "Whole run", icon: Plotly.Icons.home, click: whole }],
      [{ name: "camera", title: "Download plot as a PNG", icon: Plotly.Icons.camera, click: save }],
    ],
  };

  function relaid(change) {
    if (change.dragmode) state.dragmode = change.dragmode;
    const pair = change["xaxis.range"];
    const from = pair ? pair[0] : change["xaxis.range[0]"];
    const to = pair ? pair[1] : change["xaxis.range[1]"];
    if (from === undefined && to === undefined) return;
    show(
      from === undefined ? state.from : from * model.unit.ns,
      to === undefined ? state.to : to * model.unit.ns,
    );
  }

  // ---- pointer ----

  function pointed(event) {
    const box = plot.getBoundingClientRect();
    const x = event.clientX - box.left - view.left;
    const y = event.clientY - box.top - MARGIN.top;
    const inside = y >= 0 && y < (view.bottom - view.top) * view.row;
    const height = view.top + y / view.row;
    const row = inside ? rows.find((one) => height >= one.top && height < one.top + one.height) : null;
    return { x, row, inside, down: row ? (height - row.top) / row.height : 0, time: state.from + x * view.cell };
  }

  function hideTip() {
    tip.hidden = true;
    cursor.hidden = true;
  }

  function showCursor(x) {
    cursor.hidden = false;
    cursor.style.left = `${view.left + x}px`;
    cursor.style.top = `${MARGIN.top}px`;
    cursor.style.height = `${(view.bottom - view.top) * view.row}px`;
  }

  function hoverAt(event) {
    if (event.buttons || !view) return hideTip();
    const at = pointed(event);
    if (!at.inside || at.x > view.plotWidth) return hideTip();
    if (at.x < 0) {
      cursor.hidden = true;
      if (!at.row) return hideTip();
      return RLTimeline.hover.show(tip, RLTimeline.hover.about(model, at.row.lane), event.clientX, event.clientY);
    }
    if (state.hover === "all") {
      showCursor(at.x);
      const doing = RLTimeline.hover.everyLane(
        model, arrangement.rows, at.time - view.cell / 2, at.time + view.cell / 2, state,
      );
      const lines = Math.min(MOST_LINES, Math.floor((window.innerHeight - 90) / 21));
      return RLTimeline.hover.show(tip, RLTimeline.hover.all(model, at.time, doing, lines), event.clientX, event.clientY);
    }
    cursor.hidden = true;
    const hit = at.row && RLTimeline.hover.hitIn(model, at.row, at.down, at.time, view.cell * 1.5, state.hidden, view.ranges);
    const gap = !hit && at.row && state.gaps && RLTimeline.gapAt(model, at.row.lane, at.time - view.cell * 1.5, at.time + view.cell * 1.5);
    if (!hit && !gap) return hideTip();
    const content = hit ? RLTimeline.hover.current(model, hit) : RLTimeline.hover.missing(model, at.row, gap);
    return RLTimeline.hover.show(tip, content, event.clientX, event.clientY);
  }

  function wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.deltaX) return;
    const { time, x } = pointed(event);
    if (x < 0) return;
    const turn = event.deltaY || event.deltaX;
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(-1, Math.min(1, turn / 250))), time);
    else if (event.shiftKey) pan(turn / 1200);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 1200);
    else return;
    event.preventDefault();
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = (state.from + state.to) / 2;
    const act = {
      w: () => zoom(0.7, middle), "+": () => zoom(0.7, middle),
      s: () => zoom(1 / 0.7, middle), "-": () => zoom(1 / 0.7, middle),
      a: () => pan(-0.2), ArrowLeft: () => pan(-0.2),
      d: () => pan(0.2), ArrowRight: () => pan(0.2),
      0: whole,
      Escape: hideTip,
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    act();
    event.preventDefault();
  }

  // ---- buttons ----

  function press(buttons, chosen) {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === chosen));
  }

  function choice(attribute, choose) {
    const buttons = [...document.querySelectorAll(`[data-${attribute}]`)];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        press(buttons, button);
        choose(button.dataset[attribute]);
        hideTip();
      });
    }
  }

  function toggle(id, name, after) {
    const button = byId(id);
    button.addEventListener("click", () => {
      state[name] = !state[name];
      button.setAttribute("aria-pressed", String(state[name]));
      if (after) after();
      redraw();
    });
  }

  function legend() {
    const buttons = model.stages.map((stage, index) => {
      const button = document.createElement("button");
      const chip = document.createElement("span");
      chip.className = "swatch";
      chip.style.background = stage.colour;
      chip.style.borderColor = stage.colour;
      button.type = "button";
      button.append(chip, document.createTextNode(stage.name));
      button.addEventListener("click", () => {
        if (state.hidden.has(index)) state.hidden.delete(index);
        else state.hidden.add(index);
        update();
      });
      button.addEventListener("dblclick", () => {
        const alone = state.hidden.size === model.stages.length - 1 && !state.hidden.has(index);
        state.hidden = new Set(alone ? [] : model.stages.keys());
        if (!alone) state.hidden.delete(index);
        update();
      });
      return button;
    });
    const missing = model.hasGaps ? RLTimeline.gapButton(() => {
      state.gaps = !state.gaps;
      update();
    }) : null;
    function update() {
      if (missing) missing.setAttribute("aria-pressed", String(state.gaps));
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(!state.hidden.has(index))));
      rearrange();
      redraw();
    }
    const torn = model.unfinished.size ? [RLTimeline.tornEntry()] : [];
    byId("legend").append(...buttons, ...(missing ? [missing] : []), ...torn);
    update();
  }

  choice("hover", (value) => { state.hover = value; });
  choice("sort", (value) => {
    state.sorting = value;
    rearrange();
    // What the new order puts first is what was asked for.
    scroller.scrollTop = 0;
    redraw();
  });
  byId("ranges").hidden = !hasRanges;
  toggle("ranges", "ranges");
  toggle("fit", "fit", () => { scroller.scrollTop = 0; });
  byId("whole").addEventListener("click", whole);
  legend();

  scroller.addEventListener("scroll", () => { hideTip(); redraw(); });
  scroller.addEventListener("wheel", wheel, { passive: false });
  plot.addEventListener("mousemove", hoverAt);
  plot.addEventListener("mouseleave", hideTip);
  document.addEventListener("keydown", (event) => {
    if (!(event.target instanceof HTMLButtonElement) || event.key === "Escape") key(event);
  });
  new ResizeObserver(redraw).observe(scroller);

  function follow(live) {
    const before = live.kept();
    if (before) RLTimeline.restore(model, before, scroller, show);
    live.keep(() => RLTimeline.kept(model, state, scroller));
  }

  draw().then(() => {
    plot.on("plotly_relayout", relaid);
    plot.on("plotly_doubleclick", whole);
    if (globalThis.rlInsightLive) follow(globalThis.rlInsightLive);
    document.body.dataset.ready = "true";
  });
})();
