"use strict";
/* A page that follows `rl-insight watch`: it loads itself again when a newer one lies in its place.

The watch leaves a script `live.js` beside the pages that calls `rlInsightLive` with what each page
is now, or with null once nobody watches any more. A script, since a page that was opened as a file
may not read anything else. */
globalThis.rlInsightLive = (() => {
  const PAUSE = 2000; // ms from one look to the next
  const TRIES = 5; // looks in vain: a page that was sent to somebody else has nothing to follow
  const DRAWN = new Date(document.lastModified).toLocaleTimeString("en-GB");
  const { pathname } = location;
  const own = decodeURIComponent(pathname.slice(pathname.lastIndexOf("/") + 1));
  const place = `rl-insight ${pathname}`;
  const sign = document.getElementById("live");
  let stamp;
  let tries = TRIES;
  let view = () => null;

  function say(text) {
    sign.textContent = text;
    sign.hidden = false;
  }

  function told(pages) {
    if (!pages) {
      say("no longer followed");
      return;
    }
    const now = pages[own];
    if (stamp !== undefined && now !== undefined && now !== stamp) {
      remember(JSON.stringify(view()));
      location.reload();
      return;
    }
    say(`live: follows new files, drawn at ${DRAWN}`);
    stamp = now ?? stamp;
    tries = TRIES;
    setTimeout(look, PAUSE);
  }

  /** What the browser holds for this page, with `text` given that; null where it holds nothing. */
  function remember(text) {
    try {
      const before = sessionStorage.getItem(place);
      if (text === null) sessionStorage.removeItem(place);
      else sessionStorage.setItem(place, text);
      return before;
    } catch {
      return null; // some browsers keep nothing for files
    }
  }

  function look() {
    const script = document.createElement("script");
    script.src = `live.js?${Date.now()}`;
    script.addEventListener("load", () => script.remove());
    script.addEventListener("error", () => {
      script.remove();
      tries -= 1;
      if (tries > 0) setTimeout(look, PAUSE);
    });
    document.head.append(script);
  }

  /** What the page showed before it loaded itself again, once; null if it did not. */
  told.kept = () => {
    const text = remember(null);
    return text === null ? null : JSON.parse(text);
  };
  /** Call `what` for what to keep. */
  told.keep = (what) => { view = what; };
  setTimeout(look, 0);
  return told;
})();
