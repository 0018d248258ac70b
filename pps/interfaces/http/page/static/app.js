// The page of an entity: its frame, its views, and who is let in.
//
// A view is one module in `views/`, which is loaded when the view is opened first, and one row of VIEWS. Its address is
// `#/id`, its title stands in the navigation (`hidden` keeps it out, `only` tells of the schema whether it is there).
// Views that belong together are tabs: those `within` another one stand beside it above the view, and the navigation has
// only that one, called `section` where that is more than its own title.
// The module's default export is a component that gets `parts` and `query` of the address, and what is `waiting` for the
// person in the squad. It asks operations with `useCall` or `call`, makes addresses with `href`, and shows text as text:
// htm and preact escape it, and the page's policy lets no text become HTML. Pieces that views share are in `parts.js`.
// The view of a shipped feature says `feature`: it is there while that is on. Other features give theirs as data, which
// `views/feature.js` shows.
// Every view begins with a heading (`<h1>`), and says what to do where there is nothing yet.
import { Problem, askBeforeLeaving, callEarly, ended, entity, features, html, inTime, listen, news, open, place, render, useEffect, useLayoutEffect, useState, leave } from "./core.js";
import { SearchBox, isInBox } from "./search_box.js";
import { Alert, Badge, Icon, JustDone, isMember, useSchema, useWaiting } from "./parts.js";

const VIEWS = [
  { id: "home", title: "Home" },
  { id: "talk", title: "Talk", feature: "haven" },
  { id: "turns", title: "Conversations" },
  { id: "names", title: "People and places" },
  { id: "records", title: "Records" },
  { id: "anchors", title: "Anchors" },
  { id: "ask", title: "Ask" },
  { id: "topics", title: "Topics", feature: "topics" },
  { id: "squad", title: "Squad", feature: "squad", only: isMember },
  { id: "changes", title: "Changes" },
  { id: "forgotten", title: "Forgotten", within: "changes" },
  { id: "health", title: "Health", section: "Upkeep" },
  { id: "jobs", title: "Jobs", within: "health" },
  { id: "injected", title: "Injected", within: "health" },
  { id: "isolation", title: "Isolation", within: "health" },
  { id: "graph", title: "Graph", within: "names", hidden: true },
  { id: "time", title: "Time", within: "changes" },
  { id: "merges", title: "One and the same?", within: "names", hidden: true },
  { id: "search", title: "Search", hidden: true },
  { id: "item", title: "Item", hidden: true },
];

let asked = null;
/** Which features are on, and the views that they give as data; asked for once. */
const featuresOn = () => (asked ||= features().catch((problem) => {
  asked = null;
  throw problem;
}));

/** The view of an id; the first one where there is none. */
async function find(id) {
  const own = VIEWS.find((one) => one.id === id);
  if (own || !id) return own || VIEWS[0];
  const { views } = await featuresOn().catch(() => ({ views: [] }));
  return views.find((one) => one.id === id) || VIEWS[0];
}

const loaded = new Map(); // view's id → its component
let attempts = 0;

/** Load a view's component; an address that could not be loaded is never asked again by a browser, so it gets a number. */
async function load(view) {
  const address = `./views/${view.operation ? "feature" : view.id}.js${attempts ? `?attempt=${attempts}` : ""}`;
  try {
    const module = await inTime(import(address));
    loaded.set(view.id, view.operation ? module.featureView(view) : module.default);
    return loaded.get(view.id);
  } catch (error) {
    attempts += 1;
    const why = error instanceof Problem ? error.message : "the server does not answer";
    const isGone = !(error instanceof Problem)
      && (await fetch(new URL(address, import.meta.url)).then((answer) => answer.status === 404, () => false));
    return (props) => html`<${NotLoaded} view=${view} isGone=${isGone} why=${why} ...${props} />`;
  }
}

/** A view whose module could not be loaded: it is tried again as soon as there is news of the server. */
function NotLoaded({ view, isGone, why, again }) {
  useEffect(() => news.hear(again), []);
  return html`<h1 tabindex="-1">${view.title}</h1>
    ${isGone
      ? html`<${Alert}>PPS was updated since this page was opened.<//><p><button onClick=${() => location.reload()}>Load the page again</button></p>`
      : html`<${Alert}>${why}<//><p><button class="plain" onClick=${again}>Try again</button></p>`}`;
}

/** The address, its view, and that view's component, which follow the address as soon as the component is there. */
function useView() {
  const [shown, show] = useState({ at: place(), view: null, View: null, isBusy: true });
  const [turn, again] = useState(0);
  useEffect(() => {
    let latest = 0;
    const move = async () => {
      const at = place();
      const mine = (latest += 1);
      const view = await find(at.view);
      if (!loaded.has(view.id)) show((old) => ({ ...old, isBusy: true }));
      const View = loaded.get(view.id) || (await load(view));
      if (mine === latest) show({ at, view, View, isBusy: false });
    };
    move();
    window.addEventListener("hashchange", move);
    return () => (latest = Infinity, window.removeEventListener("hashchange", move));
  }, [turn]);
  return { ...shown, again: () => again((n) => n + 1) };
}

function Frame() {
  const { at, view, View, isBusy, again } = useView();
  const [state, setState] = useState("begins");
  const schema = useSchema();
  const [on, setOn] = useState(null);
  const isOn = (view) => !view.feature || Boolean(on?.features.includes(view.feature));
  const isThere = (one) => isOn(one) && (!one.only || one.only(schema));
  const waiting = useWaiting(isOn(VIEWS.find((one) => one.id === "squad")) ? schema : undefined);
  useEffect(() => {
    featuresOn().then(setOn, () => null);
    window.addEventListener("keydown", stepInList);
    listen(setState);
  }, []);
  useLayoutEffect(() => {
    if (!view) return;
    document.title = `${view.title} · ${entity}`;
    if (!isInBox()) document.querySelector("main h1")?.focus({ preventScroll: true });
    document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
    window.scrollTo(0, 0);
  }, [view?.id]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>
      Skip to content
    </a>
    <header class="side">
      <p class="whose"><span class="mark" aria-hidden="true">${entity[0]}</span><strong>${entity}</strong></p>
      <${SearchBox} at=${at} isSearch=${view?.id === "search"} />
      <nav aria-label="Views">
        <ul>
          ${[...VIEWS, ...(on?.views || [])].filter((one) => !one.hidden && !one.within && isThere(one)).map(
            (one) => html`<li key=${one.id}>
              <a href=${`#/${one.id}`} aria-current=${one.id === (view?.within || view?.id) ? "page" : null}>
                <${Icon} name=${one.id} />${one.section || one.title}${one.id === "squad" && html`<${Badge} count=${waiting.inbox + waiting.approvals} />`}
              </a>
            </li>`,
          )}
        </ul>
      </nav>
      <div class="foot">
        <span class=${`state ${state}`} role="status">${STATES[state]}</span>
        <button class="quiet" onClick=${turnLights}>Light or dark</button>
        <button class="quiet" onClick=${leave}>Leave</button>
      </div>
    </header>
    <main id="main" tabindex="-1" data-view=${view?.id} aria-busy=${isBusy}>
      ${state === "away" && html`<${Alert}>The server does not answer. What is shown may be old; this page tries again by itself.<//>`}
      <${JustDone} />
      <${Tabs} view=${view} />
      ${View
        ? html`<${View} key=${view.id} parts=${at.parts} query=${at.query} waiting=${waiting} again=${again} />`
        : html`<p class="faint" role="status">One moment …</p>`}
    </main>
  `;
}

/** The views that belong together with one; nothing where that stands alone. */
function Tabs({ view }) {
  if (!view || view.hidden) return null;
  const first = view.within || view.id;
  const tabs = VIEWS.filter((one) => !one.hidden && (one.id === first || one.within === first));
  if (tabs.length < 2) return null;
  return html`<div class="tabs" role="group" aria-label="Shown here">${tabs.map((one) => html`<a key=${one.id} class="chip" href=${`#/${one.id}`}
    aria-current=${one.id === view.id ? "page" : null}>${one.title}</a>`)}</div>`;
}

const STATES = { begins: "Connecting …", live: "Live", working: "Taking in …", silent: "Not answering …", away: "Not connected" };

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
  const first = VIEWS.find((one) => one.id === place().view) || VIEWS[0];
  // Beside the session's opening; `load` tells what is wrong with a view's module.
  const modules = [`./views/${first.id}.js`, ...(first.id === "home" ? ["./conversation.js", "./matches.js"] : [])];
  for (const module of modules) import(module).catch(() => null);
  const refused = link ? await open(link).then(() => "", (problem) => problem.message) : "";
  if (!refused) {
    featuresOn().catch(() => null); // `Frame` asks again
    callEarly("schema_inventory");
    if (first.id === "home") callEarly("overview");
  }
  render(html`<${Page} refused=${refused} />`, document.body);
}

begin();
