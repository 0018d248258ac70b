// The page of an entity: its frame, its views, and who is let in.
//
// A view is one module in `views/` and one row of VIEWS. It exports `{ id, title, View }`: its address is `#/id`, its
// name stands in the navigation (`hidden` keeps it out, `only` tells of the schema whether it is there), and `View` is a component that gets `parts` and `query` of the
// address. It asks operations with `useCall` or `call`, makes addresses with `href`, and shows text as text: htm and
// preact escape it, and the page's policy lets no text become HTML. Pieces that views share are in `parts.js`.
// Every view begins with a heading (`<h1>`), and says what to do where there is nothing yet.
import { askBeforeLeaving, ended, entity, html, listen, open, place, render, useEffect, useState, leave } from "./core.js";
import { Alert, Icon, useSchema } from "./parts.js";
import anchors from "./views/anchors.js";
import ask from "./views/ask.js";
import forgotten from "./views/forgotten.js";
import graph from "./views/graph.js";
import health from "./views/health.js";
import injected from "./views/injected.js";
import isolation from "./views/isolation.js";
import item from "./views/item.js";
import jobs from "./views/jobs.js";
import records from "./views/records.js";
import squad from "./views/squad.js";
import time from "./views/time.js";
import topics from "./views/topics.js";
import turns from "./views/turns.js";

const VIEWS = [ask, graph, time, records, topics, turns, anchors, squad, forgotten, injected, jobs, health, isolation, item];

function Frame() {
  const [at, move] = useState(place());
  const [state, setState] = useState("begins");
  const schema = useSchema();
  useEffect(() => {
    const moved = () => move(place());
    window.addEventListener("hashchange", moved);
    window.addEventListener("keydown", stepInList);
    listen(setState);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  const view = VIEWS.find((one) => one.id === at.view) || VIEWS[0];
  useEffect(() => {
    document.title = `${view.title} · ${entity}`;
    document.querySelector("main h1")?.focus({ preventScroll: true });
    document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
    window.scrollTo(0, 0);
  }, [view.id]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>
      Skip to content
    </a>
    <header class="side">
      <p class="whose"><span class="mark" aria-hidden="true">${entity[0]}</span><strong>${entity}</strong></p>
      <nav aria-label="Views">
        <ul>
          ${VIEWS.filter((one) => !one.hidden && (!one.only || one.only(schema))).map(
            (one) => html`<li key=${one.id}>
              <a href=${`#/${one.id}`} aria-current=${one.id === view.id ? "page" : null}>
                <${Icon} name=${one.id} />${one.title}
              </a>
            </li>`,
          )}
        </ul>
      </nav>
      <footer class="foot">
        <span class=${`state ${state}`} role="status">${STATES[state]}</span>
        <button class="quiet" onClick=${turnLights}>Light or dark</button>
        <button class="quiet" onClick=${leave}>Leave</button>
      </footer>
    </header>
    <main id="main" tabindex="-1">
      ${state === "away" && html`<${Alert}>The server does not answer. What is shown may be old; this page tries again by itself.<//>`}
      <${view.View} key=${view.id} parts=${at.parts} query=${at.query} />
    </main>
  `;
}

const STATES = { begins: "Connecting …", live: "Live", working: "Taking in …", away: "Not connected" };

/** Arrows go from one item of a list to the next; Tab goes through all that can be pressed. */
function stepInList(event) {
  const here = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  if (!here || event.defaultPrevented || event.target.closest("input, select, textarea")) return;
  let next = event.target.closest("li")?.[here];
  while (next && !next.querySelector("a, button, summary")) next = next[here];
  if (!next) return;
  event.preventDefault();
  next.querySelector("a, button, summary").focus();
}

function turnLights() {
  const chosen = document.documentElement.style.colorScheme;
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  localStorage.setItem("pps lights", dark ? "light" : "dark");
  lights(dark ? "light" : "dark");
  window.dispatchEvent(new Event("lights"));
}

const lights = (which) => (document.documentElement.style.colorScheme = which || "");

function Outside({ why }) {
  return html`<main class="outside" id="main">
    <h1>${entity}</h1>
    <${Alert}>${why}<//>
    <p>Open this page with a link that you make on the machine where the memory lives:</p>
    <pre>pps open ${entity}</pre>
    <p class="faint">The link works once, within a minute. This browser then sees ${entity} for a week, and nothing else.</p>
  </main>`;
}

function Page({ refused }) {
  const [why, end] = useState(refused);
  useEffect(() => ended.hear(end), []);
  return why ? html`<${Outside} why=${why} />` : html`<${Frame} />`;
}

/** The secret of a link in the address; it leaves the address before anything else happens. */
function takeLink() {
  const link = /^#open=(\w+)$/.exec(location.hash)?.[1];
  if (link) history.replaceState(null, "", "#/");
  return link;
}

async function begin() {
  lights(localStorage.getItem("pps lights"));
  // A link that is opened in a tab that has this page already changes nothing but what is behind the #.
  window.addEventListener("hashchange", (event) => {
    const link = takeLink();
    if (!link) return;
    event.stopImmediatePropagation();
    open(link).then(() => location.reload(), (problem) => ended.tell(problem.message));
  });
  askBeforeLeaving();
  const link = takeLink();
  const refused = link ? await open(link).then(() => "", (problem) => problem.message) : "";
  render(html`<${Page} refused=${refused} />`, document.body);
}

begin();
