"use strict";
/* The page's data: JSON, and chunks of packed loads that are unpacked when they are first shown.
   `heatmap_chunks.py` says how they are written. */
const GmmHeatmap = {};
(() => {
  function read(text) {
    const model = JSON.parse(text);
    model.unpacked = new Map();
    model.balance = model.balance.map(([step, role, layer, op, ranks, experts, total, argmax, ratio]) => (
      { step, role, layer, op, ranks, experts, total, argmax, ratio }
    ));
    return model;
  }

  /** The bytes of base64 of zlib. */
  async function inflated(text) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("This browser cannot unpack the data of this page: it needs Chrome or Edge 80, Firefox 113 or Safari 16.4, or newer.");
    }
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** `count` numbers that begin at byte `from`, and where the next ones begin. */
  function numbers(bytes, from, count, kind) {
    const width = Number(kind.slice(1));
    const found = width === 8 ? new Float64Array(count) : new Uint32Array(count);
    if (width === 8) {
      const view = new DataView(bytes.buffer, bytes.byteOffset + from);
      for (let at = 0; at < count; at += 1) found[at] = view.getFloat64(8 * at, true);
    } else {
      for (let plane = 0; plane < width; plane += 1) {
        const start = from + plane * count;
        const factor = 256 ** plane;
        for (let at = 0; at < count; at += 1) found[at] += bytes[start + at] * factor;
      }
    }
    return [found, from + width * count];
  }

  function unpacked(model, chunk, bytes) {
    const made = { chunk };
    let at = 0;
    model.columns.forEach((name, place) => {
      const [counted, next] = numbers(bytes, at, chunk.rows, chunk.kinds[place]);
      // Null is written as 0, n as n + 1.
      made[name] = Float64Array.from(counted, (number) => number - 1);
      at = next;
    });
    [made.loads] = numbers(bytes, at, chunk.cells, chunk.kinds[model.columns.length]);
    made.start = new Float64Array(chunk.rows);
    for (let row = 1; row < chunk.rows; row += 1) made.start[row] = made.start[row - 1] + made.length[row - 1];
    return made;
  }

  /** The chunks of those positions, unpacked; each is unpacked once. */
  function load(model, places) {
    return Promise.all(places.map((place) => {
      if (!model.unpacked.has(place)) {
        const holder = document.getElementById(`chunk${place}`);
        model.unpacked.set(place, inflated(holder.textContent).then((bytes) => unpacked(model, model.chunks[place], bytes)));
      }
      return model.unpacked.get(place);
    }));
  }

  Object.assign(GmmHeatmap, { read, load });
})();
