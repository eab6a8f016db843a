"use strict";
/* What the pointer shows: one span, or what every lane does at one time. Texts are set as text,
   never as HTML: they come from files. */
(() => {
  const PARTS = [
    ["Computing", 1, "#117733"],
    ["Communication", 2, "#DDCC77"],
    ["Memory copies", 4, "#88CCEE"],
    ["Free", 5, "#d5d8dd"],
  ];

  const MOST_GAPS = 4; // of the lanes in which something is missing, in the list of all

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function swatch(colour) {
    const made = element("span", undefined, "swatch");
    made.style.background = colour;
    made.style.borderColor = colour;
    return made;
  }

  function heading(colour, text, aside) {
    const made = element("h2");
    if (colour) made.append(swatch(colour));
    made.append(element("span", text));
    if (aside) made.append(element("small", aside));
    return made;
  }

  function table(rows) {
    const made = element("table");
    for (const row of rows) {
      const line = element("tr");
      for (const cell of row) {
        const numeric = typeof cell === "object";
        line.append(element("td", numeric ? cell.number : cell, numeric ? "number" : ""));
      }
      made.append(line);
    }
    return made;
  }

  /** A time of span `at`; nobody knows the time of day of one that was only placed somewhere. */
  function moment(model, at, ns) {
    const wall = model.undated.has(at) ? "" : RLTimeline.wall(model, ns);
    return RLTimeline.relative(model, ns) + (wall ? `  (${wall})` : "");
  }

  /** Step, mini- and micro-batch of a span in words; captures are counted from 1. */
  function place(model, at) {
    const { step, capture, mini_batch: mini, micro_batch: micro } = model.spans;
    const words = [];
    if (step[at] !== null) words.push(`step ${step[at]}${model.inferred.has(at) ? " (inferred)" : ""}`);
    else if (capture[at] !== null) words.push(`capture ${capture[at] + 1}`);
    if (mini[at] !== null) words.push(`mini-batch ${mini[at]}`);
    if (micro[at] !== null) words.push(`micro-batch ${micro[at]}`);
    return words.join(", ");
  }

  function colourOf(model, line, at) {
    const stage = model.stages[model.spans.stage[at]];
    return line.level ? stage.tones[model.tones[model.spans.name[at]]] : stage.colour;
  }

  function nameOf(model, at) {
    return model.names[model.spans.name[at]];
  }

  /** The part of the tip about device time: a bar, and a line for each class that was measured. */
  function breakdown(model, at) {
    const parts = model.breakdown[at];
    if (!parts) return [];
    const [window, computing, communication, overlapped] = parts;
    const bar = element("div", undefined, "parts");
    const rows = [];
    for (const [name, index, colour] of PARTS) {
      const value = parts[index];
      if (value === null) continue;
      const share = window ? value / window : 0;
      // Overlapped time is computing's; the bar shows communication that nothing hides.
      const alone = index === 2 && overlapped !== null ? value - overlapped : value;
      const piece = element("i");
      piece.style.width = `${(window ? alone / window : 0) * 100}%`;
      piece.style.background = colour;
      bar.append(piece);
      const hides = index === 2 && overlapped ? `, ${RLTimeline.duration(overlapped)} of it overlapped` : "";
      rows.push([name, { number: RLTimeline.duration(value) }, `${(share * 100).toFixed(1)} %${hides}`]);
    }
    if (computing === null && communication === null && !rows.length) return [];
    return [bar, table(rows)];
  }

  /** One span: everything that is known about it. `others` more share its pixel. */
  function current(model, hit) {
    const { line, at, others } = hit;
    const row = model.rows[line.lane];
    const stage = model.stages[model.spans.stage[at]];
    const rows = [["Lane", row.label], ...rankRows(row)];
    if (line.level) rows.push(["Inside", stage.name]);
    const where = place(model, at);
    if (where) rows.push([model.spans.step[at] === null ? "Capture" : "Step", where.replace(/^(step|capture) /, "")]);
    rows.push(["Start", moment(model, at, model.start[at])]);
    rows.push(["End", moment(model, at, model.end[at])]);
    rows.push(["Duration", RLTimeline.lasted(model, at)]);
    const made = [heading(colourOf(model, line, at), nameOf(model, at)), table(rows)];
    made.push(...(line.level ? [] : breakdown(model, at)));
    if (model.truncated.has(at)) made.push(element("p", "Not whole: cut off by the end of the capture, or damaged in its file.", "note"));
    if (others) made.push(element("p", `… and ${others.toLocaleString("en")} more in this pixel: zoom in.`, "note"));
    for (const note of [...remarks(model, at), ...row.notes]) made.push(element("p", note, "note"));
    return made;
  }

  /** Sentences about one span: what its file lost, and what is doubtful about its time. */
  function remarks(model, at) {
    const { texts, own } = model.spans.remarks;
    return (own[at] || []).map((number) => texts[number]);
  }

  function rankRows(row) {
    const rows = [["Rank", row.rank]];
    if (row.global_rank !== null) rows.push(["Global rank", row.global_rank]);
    return rows;
  }

  /** A row's label: its full name, files and what is doubtful about it. */
  function about(model, lane) {
    const row = model.rows[lane];
    const rows = [["Role", row.role], ...rankRows(row)];
    row.files.forEach((file, number) => rows.push([number ? "" : "From", file]));
    const notes = [...row.notes, row.clock].filter(Boolean);
    return [heading(null, row.label), table(rows), ...notes.map((note) => element("p", note, "note"))];
  }

  /** What of a lane's label its stage's heading has not said. */
  function shortLabel(label, stage) {
    const rest = label.startsWith(stage) ? label.slice(stage.length).replace(/^[_ -]+/, "") : label;
    return rest || label;
  }

  /** A range's name and its batch; a range that is called after its batch says it once. */
  function rangeWords(model, at) {
    const name = nameOf(model, at);
    const batch = place(model, at).replace(/^(step|capture) -?\d+( \(inferred\))?(, )?/, "");
    if (!batch) return name;
    const [, kind, number] = /^(mini|micro)[ _-]?batch[ _-]?(\d*)$/i.exec(name) || [];
    const told = kind && batch.split(", ").some((one) => one.startsWith(`${kind.toLowerCase()}-batch`)
      && (!number || one.endsWith(` ${Number(number)}`)));
    return told ? batch : `${name}, ${batch}`;
  }

  /** What every lane in `rows` does between `from` and `to` (one pixel), grouped by stage. */
  function everyLane(model, rows, from, to, { hidden, ranges, gaps }) {
    const groups = new Map();
    const lacking = [];
    let idle = 0;
    for (const { lane } of rows) {
      let busy = false;
      const inside = [];
      for (const line of model.lines[lane]) {
        const [at] = RLTimeline.within(model, line, from, to, hidden);
        if (at === undefined) continue;
        busy = true;
        if (line.level) {
          inside.push({ level: line.level, words: rangeWords(model, at) });
          continue;
        }
        const stage = model.spans.stage[at];
        if (!groups.has(stage)) groups.set(stage, []);
        groups.get(stage).push({ lane, at, inside });
      }
      const gap = gaps && RLTimeline.gapAt(model, lane, from, to);
      if (!busy && gap) lacking.push({ lane, gap });
      else if (!busy) idle += 1;
    }
    return { groups, lacking, idle, ranges };
  }

  /** The list of all lanes, at most about `most` lines long. */
  function all(model, time, doing, most) {
    const { groups, lacking, idle, ranges } = doing;
    const made = [heading(null, `At ${RLTimeline.relative(model, time)}`, RLTimeline.wall(model, time))];
    const total = [...groups.values()].reduce((sum, group) => sum + group.length, 0);
    const room = Math.max(most - 2 * groups.size - 2, groups.size * 2);
    for (const [stage, group] of [...groups].sort((a, b) => a[0] - b[0])) {
      const share = total <= room ? group.length : Math.max(2, Math.floor((room * group.length) / total));
      made.push(stageSection(model, model.stages[stage], group, share, ranges));
    }
    if (lacking.length) made.push(gapSection(model, lacking));
    if (idle) made.push(element("p", `No span at this time: ${lanes(idle)}`, "note"));
    return made;
  }

  /** The lanes of one stage; when there are more than `share`, the longest, and how many more. */
  function stageSection(model, style, group, share, ranges) {
    const section = element("section");
    const places = new Set(group.map((entry) => place(model, entry.at)));
    // What all have in common is said once.
    const common = places.size === 1 ? [...places][0] : null;
    section.append(heading(style.colour, style.name, [common, lanes(group.length)].filter(Boolean).join(" · ")));
    const capped = group.length > share;
    const long = (entry) => RLTimeline.length(model, entry.at);
    const shown = capped ? [...group].sort((a, b) => long(b) - long(a)).slice(0, share) : group;
    section.append(table(shown.map((entry) => {
      const cells = [shortLabel(model.rows[entry.lane].label, style.name), { number: RLTimeline.lasted(model, entry.at) }];
      if (common === null) cells.splice(1, 0, place(model, entry.at));
      if (ranges && entry.inside.length) cells.push(entry.inside.sort((a, b) => b.level - a.level)[0].words);
      return cells;
    })));
    if (capped) {
      const rest = (group.length - share).toLocaleString("en");
      section.append(element("p", `… and ${rest} more (the longest are listed)`, "rest"));
    }
    return section;
  }

  /** A gap: what is missing there, and why where that is known. */
  function missing(model, row, gap) {
    const rows = [["Lane", model.rows[row.lane].label]];
    if (model.rows[row.lane].recorded) {
      rows.push(["Others ran from", moment(model, -1, gap.from)], ["to", moment(model, -1, gap.to)]);
    }
    const made = [heading(null, gap.words), table(rows)];
    made[0].prepend(RLTimeline.gapSwatch());
    for (const text of [...gap.reasons, ...model.rows[row.lane].notes]) made.push(element("p", text, "note"));
    return made;
  }

  /** The lanes in which something is missing, the first few by name. */
  function gapSection(model, lacking) {
    const section = element("section");
    const title = heading(null, RLTimeline.GAP_NAME, lanes(lacking.length));
    title.prepend(RLTimeline.gapSwatch());
    section.append(title, table(lacking.slice(0, MOST_GAPS).map(({ lane }) => [model.rows[lane].label])));
    const rest = lacking.length - MOST_GAPS;
    if (rest > 0) section.append(element("p", `… and ${rest.toLocaleString("en")} more`, "rest"));
    return section;
  }

  function lanes(number) {
    return `${number.toLocaleString("en")} ${number === 1 ? "lane" : "lanes"}`;
  }

  /** The span drawn at a place: `down` is the fraction of the row, `reach` the ns of a pixel. */
  function hitIn(model, row, down, time, reach, hidden, ranges) {
    const found = model.lines[row.lane]
      .filter((line) => line.level === 0 || ranges)
      .filter((line) => down >= line.top && down <= line.bottom)
      .sort((a, b) => b.level - a.level);
    for (const line of found) {
      const exact = RLTimeline.within(model, line, time, time + 1, hidden);
      const near = RLTimeline.within(model, line, time - reach, time + reach, hidden);
      const small = near.filter((at) => model.end[at] - model.start[at] < reach * 2);
      if (exact.length) return { line, at: exact[0], others: Math.max(small.length - 1, 0) };
      if (near.length) return { line, at: near[0], others: near.length - 1 };
    }
    return null;
  }

  /** Put the tip beside the pointer, inside the window. */
  function show(tip, content, x, y) {
    tip.replaceChildren(...content);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 16 + width > window.innerWidth - 8 ? x - 16 - width : x + 16;
    const top = Math.min(Math.max(8, y - 24), window.innerHeight - height - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  }

  RLTimeline.hover = { current, missing, about, everyLane, all, hitIn, show };
})();
