// The box that searches everything: `/` goes to it from everywhere, and results come while one types.
import { go, href, html, useEffect, useLayoutEffect, useRef } from "./core.js";

const PAUSE_MS = 150;
const MOST_CHARACTERS = 1_000;

export const isInBox = () => document.activeElement?.id === "search";

export function SearchBox({ at, isSearch }) {
  const input = useRef(null);
  const due = useRef(0);
  const q = isSearch ? at.query.q || "" : "";
  const look = () => {
    clearTimeout(due.current);
    const words = input.current.value.trim();
    if (words !== q || !isSearch) go(href("search", { ...(isSearch && at.query), q: words }), { replace: isSearch });
  };
  const type = () => {
    clearTimeout(due.current);
    due.current = setTimeout(() => input.current?.value.trim() && look(), PAUSE_MS);
  };
  const step = (event) => {
    if (event.key === "Escape") document.querySelector("main h1")?.focus();
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    document.querySelector("main .result")?.focus();
  };
  useLayoutEffect(() => {
    // What is being typed is never replaced by what is in the address.
    if (!isInBox()) input.current.value = q;
  }, [q]);
  useEffect(() => {
    const jump = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, [contenteditable]")) return;
      event.preventDefault();
      input.current.focus();
      input.current.select();
    };
    window.addEventListener("keydown", jump);
    return () => window.removeEventListener("keydown", jump);
  }, []);
  return html`<form class="find" role="search" aria-label="Everything" onSubmit=${(event) => (event.preventDefault(), input.current.value.trim() && look())}>
    <label for="search" class="unseen">Search people, facts, turns, records and anchors</label>
    <input ref=${input} id="search" type="search" dir="auto" maxlength=${MOST_CHARACTERS} placeholder="Search ( / )" autocomplete="off" aria-keyshortcuts="/" onInput=${type} onKeyDown=${step} />
  </form>`;
}
