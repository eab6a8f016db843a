"use strict";
/* The page's data, and questions about them: what runs in a line at a time, and times in words. */
const RLTimeline = {};

(() => {
  const SECOND = 1e9;

  /** Read the embedded JSON; times become typed arrays, lines are grouped by lane. */
  function read(text) {
    const data = JSON.parse(text);
    const start = Float64Array.from(data.spans.start);
    const end = Float64Array.from(data.spans.duration, (duration, at) => start[at] + duration);
    const lines = data.rows.map(() => []);
    const all = data.spans.unfinished;
    let next = 0;
    for (const [lane, level, first, last, top, bottom] of data.lines) {
      // Both are in the order of the spans.
      while (all[next] < first) next += 1;
      const begin = next;
      while (all[next] < last) next += 1;
      const unfinished = level ? [] : all.slice(begin, next);
      lines[lane].push({ lane, level, first, last, top, bottom, unfinished });
    }
    const truncated = new Set(data.spans.truncated);
    const unfinished = new Set(data.spans.unfinished);
    const inferred = new Set(data.spans.inferred);
    const undated = new Set(data.spans.undated);
    const stagesOf = lines.map((own) => {
      const found = new Set();
      for (const line of own) {
        for (let at = line.first; at < line.last; at += 1) found.add(data.spans.stage[at]);
      }
      return found;
    });
    const gaps = data.rows.map(() => []);
    for (const gap of data.gaps) gaps[gap.lane].push(gap);
    likeOthers(data.rows, stagesOf);
    return { ...data, start, end, lines, gaps, hasGaps: data.gaps.length > 0, truncated, unfinished, inferred, undated, stagesOf };
  }

  /** A lane that was never recorded comes and goes with the stages of its role's other lanes. */
  function likeOthers(rows, stagesOf) {
    const ofRole = new Map();
    const kind = (row) => row.role.replace(/_replica_\d+$/, "");
    rows.forEach((row, lane) => {
      if (!ofRole.has(kind(row))) ofRole.set(kind(row), new Set());
      for (const stage of stagesOf[lane]) ofRole.get(kind(row)).add(stage);
    });
    rows.forEach((row, lane) => {
      if (!row.recorded) stagesOf[lane] = ofRole.get(kind(row));
    });
  }

  /** How long a span is, in nanoseconds. */
  function length(model, at) {
    return model.end[at] - model.start[at];
  }

  /** The first span of `line` that ends after `time`; `line.last` when none does. */
  function firstEndingAfter(model, line, time) {
    let low = line.first;
    let high = line.last;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (model.end[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Spans of `line` that touch the window, as [first, last); `hidden` stages do not count. */
  function within(model, line, from, to, hidden) {
    const found = [];
    for (let at = firstEndingAfter(model, line, from); at < line.last; at += 1) {
      if (model.start[at] >= to) break;
      if (!hidden.has(model.spans.stage[at])) found.push(at);
    }
    return found;
  }

  /** A duration in the unit that people would use, to three digits. */
  function duration(ns) {
    if (ns >= 6000 * SECOND) return `${digits(ns / (3600 * SECOND))} h`;
    if (ns >= 600 * SECOND) return `${digits(ns / (60 * SECOND))} min`;
    if (ns >= SECOND) return `${digits(ns / SECOND)} s`;
    if (ns >= 1e6) return `${digits(ns / 1e6)} ms`;
    if (ns >= 1e3) return `${digits(ns / 1e3)} µs`;
    return `${Math.round(ns)} ns`;
  }

  function digits(value) {
    return value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(value))));
  }

  /** Time since the origin in the page's unit, as fine as a microsecond. */
  function relative(model, ns) {
    const places = model.unit.symbol === "s" ? 6 : 3;
    return `${(ns / model.unit.ns).toFixed(places)} ${model.unit.symbol}`;
  }

  /** The UTC time of day at `ns` after the origin, or "" when no wall clock is known. */
  function wall(model, ns) {
    if (model.origin === null) return "";
    const time = BigInt(model.origin) + BigInt(Math.round(ns));
    const date = new Date(Number(time / 1000000n));
    if (Number.isNaN(date.getTime())) return "";
    const micros = String((time / 1000n) % 1000000n).padStart(6, "0");
    return `${date.toISOString().slice(11, 19)}.${micros} UTC`;
  }

  Object.assign(RLTimeline, { read, length, firstEndingAfter, within, duration, relative, wall });
})();
