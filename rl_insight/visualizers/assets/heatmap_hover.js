"use strict";
/* What the pointer shows: one cell of the heatmap or one point of the balance. Texts are set as
   text, never as HTML: they come from files. */
(() => {
  const MOST_RANKS = 6;

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function table(rows) {
    const made = element("table");
    for (const [name, value] of rows) {
      const line = element("tr");
      line.append(element("td", name), element("td", value));
      made.append(line);
    }
    return made;
  }

  function heading(colour, text) {
    const made = element("h2");
    if (colour) {
      const chip = element("span", undefined, "swatch colour");
      chip.style.background = colour;
      made.append(chip);
    }
    made.append(element("span", text));
    return made;
  }

  function number(value) {
    const digits = Number.isInteger(value) ? 0 : 1;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  function ordinal(value) {
    const rest = value % 100;
    const ending = rest >= 11 && rest <= 13 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[value % 10] || "th";
    return `${number(value)}${ending}`;
  }

  /** `rank 3`, or a few of them, or how many. */
  function rankWords(ranks) {
    const known = [...ranks].filter((rank) => rank !== null).sort((a, b) => a - b);
    if (!known.length) return "rank unknown";
    if (known.length <= MOST_RANKS) return `rank${known.length > 1 ? "s" : ""} ${known.join(", ")}`;
    return `${known.length.toLocaleString("en")} ranks`;
  }

  /** Where an expert is: its number on its rank, when ranks hold different ones. */
  function holders(line, expert) {
    const holding = line.sources.filter(({ first, length }) => expert >= first && expert < first + length);
    if (!holding.some(({ first }) => first > 0) && !line.sources.some(({ first }) => first > 0)) return null;
    if (!holding.length) return null;
    const local = new Set(holding.map(({ first }) => expert - first));
    const ranks = new Set(holding.map(({ rank }) => rank));
    const where = local.size === 1 ? `number ${[...local][0]} on ` : "on ";
    return `${where}${rankWords(ranks)}`;
  }

  function cell(line, expert, where, placed, colour) {
    const load = line.tokens[expert];
    const name = placed ? `Expert ${expert}` : `Expert ${expert} (counted on its rank)`;
    const found = [heading(load === load ? colour : null, `${name} · ${GmmHeatmap.tick(line)}`), element("p", where, "when")];
    if (load !== load) return [...found, element("p", "no such expert on this rank", "missing")];
    let more = 0;
    let alike = -1;
    for (const other of line.tokens) {
      if (other > load) more += 1;
      if (other === load) alike += 1;
    }
    const rows = [[line.of ? "Tokens, mean" : "Tokens", number(load)]];
    if (line.total) {
      rows.push([line.of ? "Of the layers' means" : "Of the layer's mean", `× ${line.share[expert].toFixed(2)}${line.of ? "" : ` (mean ${number(Math.round(line.mean * 10) / 10)})`}`]);
      rows.push([line.of ? "Of all tokens" : "Of the layer's total", `${(100 * load / line.total).toFixed(2)} % (of ${number(Math.round(line.total * 10) / 10)})`]);
    } else {
      rows.push(["Of the layer's mean", "the layer has no tokens here"]);
    }
    rows.push(["Place", `${ordinal(more + 1)} of ${number(line.experts)}${alike ? `, as are ${number(alike)} more` : ""}`]);
    const held = holders(line, expert);
    if (held) rows.push(["Held", held]);
    if (line.passes > 1) rows.push(["Summed over", `${number(line.passes)} passes of the engine`]);
    return [...found, table(rows)];
  }

  function point(model, { layer, row }) {
    const step = row.step === null ? "step unknown" : `step ${row.step}`;
    const rows = [
      ["Max / mean", `× ${row.ratio.toFixed(2)}`],
      ["Fullest expert", row.argmax === null ? "unknown" : String(row.argmax)],
      ["Experts", number(row.experts)],
      ["Tokens", number(row.total)],
      ["Ranks", number(row.ranks)],
    ];
    return [heading(null, layer.name), element("p", `${step} · ${model.roles[row.role]} · all ranks and micro-batches`, "when"), table(rows)];
  }

  function show(tip, content, x, y) {
    tip.replaceChildren(...content);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 16 + width > window.innerWidth - 8 ? x - 16 - width : x + 16;
    const top = Math.min(Math.max(8, y - 24), window.innerHeight - height - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  }

  GmmHeatmap.hover = { cell, point, show, number, rankWords, element };
})();
