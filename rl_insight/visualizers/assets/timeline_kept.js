"use strict";
/* What a timeline shows, in words that still hold when a longer one with other rows replaces it. */
(() => {
  const byId = (id) => document.getElementById(id);
  const pressed = (button) => button.getAttribute("aria-pressed") === "true";

  function buttons() {
    return [...document.querySelectorAll(".toolbar [aria-pressed], #legend button")];
  }

  /** Buttons by name, the times on the wall (the whole run is null), and where the rows stand. */
  function kept(model, state, scroller) {
    const whole = state.from === 0 && state.to === model.extent;
    const zero = BigInt(model.origin ?? 0);
    const times = [state.from, state.to].map((ns) => String(zero + BigInt(Math.round(ns))));
    return {
      buttons: buttons().map((button) => [button.textContent, pressed(button)]),
      times: whole ? null : times,
      top: scroller.scrollTop,
    };
  }

  /** Bring back what `kept` gave; `show` shows a time from the origin of this page. */
  function restore(model, before, scroller, show) {
    const known = new Map(before.buttons);
    for (const button of buttons()) {
      const wanted = known.get(button.textContent);
      // Of a choice one is pressed and the others let go.
      const choice = button.dataset.hover || button.dataset.sort;
      if (wanted !== undefined && wanted !== pressed(button) && (wanted || !choice)) button.click();
    }
    if (before.times) {
      const zero = BigInt(model.origin ?? 0);
      show(...before.times.map((time) => Number(BigInt(time) - zero)));
    }
    scroller.scrollTop = before.top;
  }

  Object.assign(RLTimeline, { kept, restore });
})();
