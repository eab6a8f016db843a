"use strict";
/* From rows to the lines of the heatmap: what is chosen, summed where it is not told apart. */
(() => {
  const MOST_LINES = 4000; // more are too thin to be told apart, and slow to draw
  const MOST_SOURCES = 64; // that a line remembers, to say who holds an expert

  /** Which of a chunk's rows are chosen, as a predicate of the row. */
  function chosen(data, choice) {
    const { chunk } = data;
    const ofRank = chunk.ranks.map((rank) => choice.ranks === null || choice.ranks.has(rank));
    const ofPhase = (row) => choice.phase === "all" || data.phase[row] < 0 || data.phase[row] === choice.phase;
    if (choice.batch === "all") return (row) => ofRank[data.rank[row]] && ofPhase(row);
    const first = new Array(chunk.ranks.length).fill(Infinity);
    for (let row = 0; row < chunk.rows; row += 1) {
      const batch = data.micro_batch[row];
      if (batch >= 0 && ofPhase(row) && batch < first[data.rank[row]]) first[data.rank[row]] = batch;
    }
    const wanted = (row) => (choice.batch === "first" ? first[data.rank[row]] : choice.batch);
    return (row) => {
      const batch = data.micro_batch[row];
      return ofRank[data.rank[row]] && ofPhase(row) && (batch < 0 || batch === wanted(row));
    };
  }

  function place(number) {
    return number === null || number < 0 ? Infinity : number;
  }

  function order(one, other) {
    for (const name of ["step", "role", "rank", "recording", "batch", "phase", "layer", "op"]) {
      const [a, b] = [place(one[name]), place(other[name])];
      if (a !== b) return a - b;
    }
    return 0;
  }

  /** Total, mean over the experts that are there, and each one's share of that mean. */
  function measure(line) {
    let total = 0;
    let experts = 0;
    for (const load of line.tokens) {
      if (load === load) {
        total += load;
        experts += 1;
      }
    }
    line.total = total;
    line.experts = experts;
    line.mean = total / experts;
    line.share = line.tokens.map((load) => (total ? load / line.mean : load));
  }

  /** The mean of lines that differ in their layer only: of tokens, and of each layer's shares. */
  function averaged(lines, width) {
    const groups = new Map();
    for (const line of lines) {
      const key = [line.step, line.role, line.rank, line.recording, line.batch, line.phase].join();
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(line);
    }
    return [...groups.values()].map((group) => {
      const made = { ...group[0], layer: -1, op: -1, of: group.length, sources: [] };
      made.ops = group.every((line) => line.layer < 0);
      for (const name of ["tokens", "share"]) {
        const sums = new Float64Array(width).fill(NaN);
        const counts = new Float64Array(width);
        for (const line of group) {
          line[name].forEach((value, at) => {
            if (value !== value) return;
            sums[at] = counts[at] ? sums[at] + value : value;
            counts[at] += 1;
          });
        }
        made[name] = sums.map((sum, at) => sum / counts[at]);
      }
      const { share } = made;
      measure(made);
      made.share = share;
      return made;
    });
  }

  /**
   * The lines of a choice: `ranks` (null: all, else a Set), `phase` and `batch` (a number, `all`, or
   * for the batch `first`), `each` (a Set of `step`, `rank`, `batch`: what is told apart and not
   * summed), `average` (all layers as one). Phases and roles are never summed: they are the same
   * tokens. A line holds `tokens` and `share` per expert, NaN where there is no such expert.
   */
  function slice(unpacked, choice) {
    const filters = unpacked.map((data) => chosen(data, choice));
    let width = 0;
    unpacked.forEach((data, at) => {
      for (let row = 0; row < data.chunk.rows; row += 1) {
        if (filters[at](row)) width = Math.max(width, data.first[row] + data.length[row]);
      }
    });
    const lines = new Map();
    const beyond = new Set();
    unpacked.forEach((data, at) => {
      const { chunk } = data;
      for (let row = 0; row < chunk.rows; row += 1) {
        if (!filters[at](row)) continue;
        const rank = chunk.ranks[data.rank[row]];
        const names = {
          step: choice.each.has("step") ? chunk.step : null,
          role: chunk.role,
          rank: choice.each.has("rank") ? rank : null,
          recording: choice.each.has("rank") ? chunk.recordings[data.rank[row]] : 0,
          batch: choice.each.has("batch") ? data.micro_batch[row] : -1,
          phase: choice.phase === "all" ? data.phase[row] : -1,
          layer: data.layer[row],
          op: data.layer[row] < 0 ? data.op_index[row] : -1,
        };
        const key = `${names.step},${names.role},${names.rank},${names.recording},${names.batch},${names.phase},${names.layer},${names.op}`;
        let line = lines.get(key);
        if (!line) {
          if (lines.size >= MOST_LINES && !choice.average) {
            beyond.add(key);
            continue;
          }
          line = { ...names, key, tokens: new Float64Array(width).fill(NaN), sources: [], rows: 0, passes: 1, ranks: new Set() };
          lines.set(key, line);
        }
        const from = data.start[row];
        for (let expert = 0; expert < data.length[row]; expert += 1) {
          const to = data.first[row] + expert;
          const before = line.tokens[to];
          line.tokens[to] = before === before ? before + data.loads[from + expert] : data.loads[from + expert];
        }
        line.rows += 1;
        line.ranks.add(rank);
        line.passes = Math.max(line.passes, data.passes[row]);
        if (line.sources.length < MOST_SOURCES) line.sources.push({ rank, first: data.first[row], length: data.length[row] });
      }
    });
    const found = [...lines.values()];
    found.forEach(measure);
    const all = choice.average ? averaged(found, width) : found;
    return { lines: all.sort(order), width, left: beyond.size };
  }

  /** `layer3`, or `op12` where the layer is not known; of an average, of how many it is. */
  function tick(line) {
    if (line.of) return `mean of ${line.of.toLocaleString("en")} ${line.ops ? "op" : "layer"}${line.of > 1 ? "s" : ""}`;
    if (line.layer >= 0) return `layer${line.layer}`;
    return line.op >= 0 ? `op${line.op}` : "op?";
  }

  /** What marks the same layer in the heatmap and in the balance below. */
  function layerKey(line) {
    if (line.layer !== null && line.layer >= 0) return `layer${line.layer}`;
    return line.op !== null && line.op >= 0 && !line.of ? `op${line.op}` : "";
  }

  Object.assign(GmmHeatmap, { slice, tick, layerKey });
})();
