"use strict";
/* From numbers to colours: darker is always more. */
(() => {
  const MOST_SAMPLED = 400000;
  // In layers' means: the scale never ends below the first, and up to the second at the largest.
  const NEVER_BELOW = 4;
  const MOST_WHOLE = 12;
  const SHARE_ENDS = [2, 3, 4, 6, 8, 12, 16];
  // Shares of the layer's mean: blues below ×1, oranges above, ever darker (CIE lightness 98, 78,
  // 77, 57, 40, 17), so that hue tells the side and lightness the amount.
  const BELOW = ["#f7fbff", "#c9ddf0", "#9ecae1"];
  const ABOVE = ["#fdae6b", "#f08030", "#d95f0e", "#a63603", "#6b2203", "#3d1200"];

  /** Finite values of all lines, ascending; of very many every n-th. */
  function sorted(lines, name) {
    let count = 0;
    for (const line of lines) count += line[name].length;
    const every = Math.ceil(count / MOST_SAMPLED) || 1;
    const found = [];
    let at = 0;
    let most = 0;
    for (const line of lines) {
      for (const value of line[name]) {
        if (value === value) {
          if (at % every === 0) found.push(value);
          if (value > most) most = value;
          at += 1;
        }
      }
    }
    return { values: Float64Array.from(found).sort(), most };
  }

  /** The mean over the layers of what an expert has in them on average. */
  function evenLoad(lines, name) {
    let sum = 0;
    let count = 0;
    for (const line of lines) {
      let total = 0;
      let experts = 0;
      for (const value of line[name]) {
        if (value === value) {
          total += value;
          experts += 1;
        }
      }
      if (total > 0) {
        sum += total / experts;
        count += 1;
      }
    }
    return sum / count;
  }

  /**
   * The end of the scale, which begins at 0, and the largest value. Up to twelve times the layers'
   * mean the scale ends at the largest, so that an overloaded expert is
   * darker than those that are merely busy. Few cells that are so full that all others would look
   * empty lie beyond the end: beyond the 99.9th percentile if the fullest has more than twice that,
   * and beyond ten times the mean; but none below four times the layers' mean. Of less than a
   * thousand cells the percentile is but the second largest, and the largest is what is looked for.
   */
  function range(lines, measure) {
    const { values, most } = sorted(lines, measure);
    if (!(most > 0)) return { top: 1, most: 0 };
    const even = evenLoad(lines, measure);
    let top = most;
    if (most > MOST_WHOLE * even) {
      const usual = values[Math.floor(0.999 * (values.length - 1))];
      if (values.length >= 1000 && usual > 0 && usual < most / 2) top = usual;
      const many = 10 * values.reduce((sum, value) => sum + value, 0) / values.length;
      if (many < top) {
        let beyond = 0;
        for (let at = values.length - 1; at >= 0 && values[at] > many; at -= 1) beyond += 1;
        if (beyond <= 0.02 * values.length) top = many;
      }
      top = Math.min(Math.max(top, NEVER_BELOW * even), most);
    }
    if (measure === "share") top = SHARE_ENDS.find((end) => end >= top) ?? SHARE_ENDS[SHARE_ENDS.length - 1];
    return { top, most };
  }

  /** How many cells have more than `top`. */
  function beyond(lines, measure, top) {
    let count = 0;
    for (const line of lines) for (const value of line[measure]) if (value > top * 1.0001) count += 1;
    return count;
  }

  function stops(colours, from, to) {
    return colours.map((colour, at) => [from + (to - from) * at / (colours.length - 1), colour]);
  }

  /** Plotly's colour scale for a map of the page, or for shares around ×1, up to `top`. */
  function colourscale(map, top) {
    if (map) return stops(map.colours, 0, 1);
    const even = 1 / top;
    return [...stops(BELOW, 0, even), ...stops(ABOVE, even, 1)];
  }

  function gradient(scale) {
    return `linear-gradient(to right, ${scale.map(([at, colour]) => `${colour} ${(at * 100).toFixed(3)}%`).join(", ")})`;
  }

  function channels(colour) {
    return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  }

  /** The colour of `value` on a scale up to `top`. */
  function colourOf(scale, value, top) {
    const at = Math.min(Math.max(value / top, 0), 1);
    const next = Math.max(scale.findIndex(([stop]) => stop >= at), 1);
    const [[low, first], [high, second]] = [scale[next - 1], scale[next]];
    const part = high > low ? (at - low) / (high - low) : 1;
    const [a, b] = [channels(first), channels(second)];
    return `rgb(${a.map((one, channel) => Math.round(one + (b[channel] - one) * part)).join()})`;
  }

  Object.assign(GmmHeatmap, { range, beyond, colourscale, gradient, colourOf });
})();
