"use strict";
/* The controls of the page: what they offer, and what a choice of them means. */
(() => {
  const MOST_STACKED = 8; // ranks that are drawn one below another without being asked for
  const AROUND = "blue and orange around ×1";

  const byId = (id) => document.getElementById(id);
  const { number } = GmmHeatmap.hover;

  function distinct(numbers) {
    return [...new Set(numbers)].sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
  }

  /** The controls of `state`, which keeps what was asked for even where it cannot be shown. */
  function controls(model, state) {
    const steps = distinct(model.chunks.map((chunk) => chunk.step));
    let phase = "all"; // the one that was asked for where it is known, else what is
    let ranksShown = "sum"; // likewise

    function fill(select, options, value) {
      select.replaceChildren(...options.map(([key, text, disabled]) => {
        const option = document.createElement("option");
        option.value = key;
        option.textContent = text;
        option.disabled = Boolean(disabled);
        return option;
      }));
      select.value = value;
      select.disabled = options.length < 2;
    }

    function stepName(step) {
      return step === null ? "unknown" : String(step);
    }

    function places() {
      return model.chunks.flatMap((chunk, place) => {
        const ofStep = state.step === "sum" || state.step === "each" || String(chunk.step) === state.step;
        return ofStep && (state.role === "all" || String(chunk.role) === state.role) ? [place] : [];
      });
    }

    function newest(role) {
      const own = distinct(model.chunks.filter((chunk) => role === "all" || String(chunk.role) === role).map((chunk) => chunk.step));
      const known = own.filter((step) => step !== null);
      return String(known.length ? known[known.length - 1] : null);
    }

    /** Not every role is in every step: what was chosen last stays, the other one gives way. */
    function agree(last) {
      if (places().length) return;
      if (last === "role") state.step = newest(state.role);
      else state.role = String(model.chunks.find((chunk) => String(chunk.step) === state.step).role);
      byId("step").value = state.step;
      byId("role").value = state.role;
    }

    /** The ranks of a text such as `0,2,4-7`; null where it is none. */
    function parsed(text) {
      const found = new Set();
      for (const part of text.split(/[\s,;]+/).filter(Boolean)) {
        const match = /^(\d+)(?:-(\d+))?$/.exec(part);
        if (!match) return null;
        const [low, high] = [Number(match[1]), Number(match[2] ?? match[1])];
        if (high < low || high - low > 1e6) return null;
        for (let rank = low; rank <= high; rank += 1) found.add(rank);
      }
      return found.size ? found : null;
    }

    function byRole(chunks) {
      return distinct(chunks.map((chunk) => chunk.role)).map((role) => chunks.filter((chunk) => chunk.role === role));
    }

    function several(chunk) {
      return chunk.ranks.length > 1 || chunk.summed > 1;
    }

    /** Whether one id is taken for one expert on all ranks in the `own` chunks of a role. */
    function assumed(own) {
      // A step of a single rank says nothing about other ranks.
      return own.some(several) && own.every((chunk) => chunk.comparable && !chunk.placed);
    }

    /** The ranks that are `wanted` (null: all) of `own` chunks; of unknown ranks each dump is one. */
    function owners(own, wanted) {
      return new Set(own.flatMap((chunk) => chunk.ranks.flatMap((rank, at) => {
        if (wanted !== null && !wanted.has(rank)) return [];
        return [rank === null ? `dump ${chunk.recordings[at]}` : rank];
      })));
    }

    /** Whether expert ids of different ranks mean the same in those chunks of each role. */
    function comparable(chunks) {
      return byRole(chunks).every((own) => (
        own.every((chunk) => chunk.placed) || assumed(own) || owners(own, null).size < 2
      ));
    }

    /** How many ranks of `own` chunks are chosen, those that the page was given as a sum included. */
    function chosenRanks(own, wanted) {
      return Math.max(owners(own, wanted).size, ...own.map((chunk) => chunk.summed));
    }

    /** The choice for `slice`, sentences where it is not what was asked for, and what it assumes. */
    function choice(chunks) {
      const each = new Set();
      const ranks = distinct(chunks.flatMap((chunk) => chunk.ranks));
      const together = comparable(chunks);
      const made = { ranks: null, each, phase: phase === "all" ? "all" : Number(phase), batch: state.batch, average: state.average };
      const warned = [];
      const assumes = [];
      if (state.step === "each") each.add("step");
      if (state.batch === "each") {
        each.add("batch");
        made.batch = "all";
      } else if (state.batch !== "first" && state.batch !== "all") made.batch = Number(state.batch);
      if (ranksShown === "each") each.add("rank");
      else if (ranksShown === "some") {
        const wanted = parsed(state.some);
        byId("some").setAttribute("aria-invalid", String(state.some !== "" && wanted === null));
        if (wanted) {
          const missing = [...wanted].filter((rank) => !ranks.includes(rank));
          if (missing.length) warned.push(`No such rank here: ${missing.slice(0, 6).join(", ")}${missing.length > 6 ? ", …" : ""}.`);
        } else warned.push("Name ranks as in 0,2,4-7; until then the first is shown.");
        made.ranks = wanted ?? new Set(ranks.slice(0, 1));
        if (!state.someSummed || (!together && made.ranks.size > 1)) each.add("rank");
      } else if (ranksShown !== "sum") made.ranks = new Set([ranksShown === "null" ? null : Number(ranksShown)]);
      if (!together) {
        warned.push("Expert numbers are counted on each rank, and which expert that is on another rank is not known: ranks cannot be summed. If every rank holds all experts, heatmap.parser.ep_size=1 says so; else it tells the expert-parallel size.");
      }
      const takenAlike = byRole(chunks).some((own) => assumed(own) && chosenRanks(own, made.ranks) > 1);
      if (together && takenAlike && !each.has("rank")) {
        assumes.push("Nothing recorded speaks of expert parallelism, so every rank is taken to hold all experts. heatmap.parser.ep_size=1 confirms that, another number tells the expert-parallel size.");
      }
      const known = steps.some((step) => step !== null);
      if (state.role === "all" && state.step === "null" && known) assumes.push("Shown is what was recorded without a step; step “all, one below another” shows the rest too.");
      return { made, warned, assumes };
    }

    function setUp() {
      const roles = distinct(model.chunks.map((chunk) => chunk.role));
      state.role = String(roles[0]);
      state.step = newest(state.role);
      fill(byId("step"), [
        ...(steps.length > 1 ? [["sum", "all, summed"], ["each", "all, one below another"]] : []),
        ...steps.map((step) => [String(step), stepName(step)]),
      ], state.step);
      fill(byId("role"), [
        ...roles.map((role) => [String(role), model.roles[role]]),
        ...(roles.length > 1 ? [["all", "all, one below another"]] : []),
      ], state.role);
      maps();
    }

    function maps() {
      const names = model.maps.map((one) => [one.name, one.name]);
      fill(byId("map-name"), state.measure === "share" ? [[AROUND, AROUND], ...names] : names, state.map[state.measure]);
    }

    /** The controls whose options depend on the steps and roles. */
    function refill(chunks, unpacked) {
      const ranks = distinct(chunks.flatMap((chunk) => chunk.ranks));
      const summed = Math.max(...chunks.map((chunk) => chunk.summed));
      const together = comparable(chunks);
      // Of one rank, or of unknown ones, there may be several dumps.
      const apart = Math.max(ranks.length, ...chunks.map((chunk) => chunk.ranks.length));
      const named = ranks.length > 1 ? [
        ["some", "some …"],
        ...ranks.map((rank) => [String(rank), rank === null ? "unknown" : `rank ${rank}`]),
      ] : [];
      const known = state.ranks === "each" || named.some(([key]) => key === state.ranks);
      ranksShown = known && apart > 1 ? state.ranks : "sum";
      if (ranksShown === "sum" && !together) ranksShown = apart <= MOST_STACKED || !named.length ? "each" : String(ranks[0]);
      const only = summed > 1 ? `sum of ${number(summed)}` : ranks[0] === null ? "unknown" : String(ranks[0]);
      fill(byId("ranks"), apart < 2 ? [["sum", only]] : [
        ["sum", together ? `sum of ${number(apart)}` : "sum: ids are not comparable", !together],
        ["each", "each, one below another"],
        ...named,
      ], ranksShown);
      byId("some-control").hidden = ranksShown !== "some";
      byId("some-summed").disabled = !together;

      const phases = distinct(unpacked.flatMap((data) => [...new Set(data.phase)])).filter((one) => one >= 0);
      phase = state.phase === "all" || !phases.length ? "all" : String(phases.includes(Number(state.phase)) ? state.phase : phases[0]);
      const allPhases = phases.length > 1 ? [["all", "all, one below another"]] : [];
      if (phases.length === 1) phase = String(phases[0]);
      fill(byId("phase"), phases.length ? [...phases.map((one) => [String(one), model.phases[one]]), ...allPhases] : [["all", "unknown"]], phase);

      const batches = distinct(unpacked.flatMap((data) => [...new Set(data.micro_batch)])).filter((one) => one >= 0);
      if (!["first", "all", "each"].includes(state.batch) && !batches.includes(Number(state.batch))) state.batch = "first";
      fill(byId("batch"), batches.length
        ? [["first", "first"], ...(batches.length > 1 ? [["all", `all ${number(batches.length)}, summed`], ["each", "all, one below another"], ...batches.map((batch) => [String(batch), String(batch)])] : [])]
        : [["first", "unknown, or all of them"]], batches.length > 1 || state.batch === "first" ? state.batch : "first");

      const layers = new Map();
      for (const data of unpacked) {
        for (let row = 0; row < data.chunk.rows && layers.size < 5000; row += 1) {
          const key = GmmHeatmap.layerKey({ layer: data.layer[row], op: data.op_index[row] });
          if (key) layers.set(key, data.layer[row] >= 0 ? data.layer[row] : 1e9 + data.op_index[row]);
        }
      }
      const keys = [...layers].sort((a, b) => a[1] - b[1]).map(([key]) => key);
      if (state.marked && !layers.has(state.marked)) state.marked = "";
      fill(byId("layer"), [["", "none"], ...keys.map((key) => [key, key])], state.marked);
      const place = steps.map(String).indexOf(state.step);
      byId("earlier").disabled = place <= 0;
      byId("later").disabled = place < 0 || place === steps.length - 1;
    }

    return { steps: steps.map(String), places, agree, comparable, choice, setUp, maps, refill };
  }

  Object.assign(GmmHeatmap, { controls, AROUND });
})();
