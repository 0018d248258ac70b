// Haven, the owner's page: all entities, and rooms to talk with one or several of them.
import { askBeforeLeaving, ended, go, href, html, leave, linkTo, listen, open, place, render, useEffect, useLayoutEffect, useState } from "../core.js";
import { Alert, Icon, JustDone } from "../parts.js";
import * as socket from "../socket.js";
import { Room, STYLE } from "./room.js";

const STATES = { begins: "Connecting …", live: "Live", working: "Live", silent: "Not answering …", away: "Not connected" };

/** What a room is called: its title, else who is in it. */
const titleOf = (room) => room.title || (room.owned_by ? `With ${room.owned_by}` : room.members.map((one) => one.name).join(", ") || "Nobody");

/** The rooms and entities, as they are now. */
function useHouse() {
  const [house, show] = useState(null);
  const [error, fail] = useState("");
  useEffect(() => {
    let due = 0;
    const ask = () => socket.isOpen() && socket.request("rooms").then((data) => (fail(""), show(data)), (problem) => fail(problem.message));
    const soon = () => (due ||= setTimeout(() => ((due = 0), ask()), 150));
    const ends = ["open", "room", "room_gone"].map((name) => socket.hear(name, soon));
    ask();
    return () => (clearTimeout(due), ends.forEach((end) => end()));
  }, []);
  return { house, error };
}

function useAddress() {
  const [at, move] = useState(place());
  // Before the first paint: who follows a link at once must not be passed over.
  useLayoutEffect(() => {
    const follow = () => move(place());
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  return at;
}

/** A new room. */
function NewRoom({ house }) {
  const [error, fail] = useState("");
  const submit = (event) => {
    event.preventDefault();
    const data = new FormData(event.target);
    const entities = data.getAll("entity");
    if (!entities.length) return fail("choose at least one entity");
    socket.request("create", { title: data.get("title").trim(), entities }).then((made) => go(href("room", {}, made.room)), (problem) => fail(problem.message));
  };
  return html`<h1 tabindex="-1">A new room</h1>
    ${house.entities.length === 0
      ? html`<p>There is no entity yet. Make one on the machine where this runs:</p><pre>pps entity create ana</pre>`
      : html`<form class="form card" onSubmit=${submit}>
        <label><span>Title</span> <input name="title" maxlength="120" placeholder="not needed" /></label>
        <fieldset><legend>Who is in it?</legend>${house.entities.map((one) => html`<label class="check" key=${one.name}>
          <input type="checkbox" name="entity" value=${one.name} /> ${one.name} <span class="faint">${one.model || "nobody answers yet"}</span></label>`)}</fieldset>
        ${error && html`<${Alert}>${error}<//>`}
        <p><button>Open the room</button></p></form>`}`;
}

/** All entities, each with the way to its own page. */
function Entities({ house }) {
  const [error, fail] = useState("");
  const visit = (name) => linkTo(name).then((address) => location.assign(address), (problem) => fail(problem.message));
  return html`<h1 tabindex="-1">Entities</h1>${error && html`<${Alert}>${error}<//>`}
    ${house.entities.length === 0 && html`<p>There is none yet. Make one on the machine where this runs:</p><pre>pps entity create ana</pre>`}
    <ul class="plain">${house.entities.map((one) => html`<li key=${one.name} class="card"><h2>${one.name}</h2>
      ${one.problem ? html`<p class="alert">${one.problem}</p>` : html`<p class="faint">${one.model} answers.</p>`}
      <p><button class="plain" onClick=${() => visit(one.name)}>Open ${one.name}'s own page</button></p></li>`)}</ul>`;
}

function OneRoom({ house, id }) {
  const room = house.rooms.find((one) => one.id === id);
  const [isSure, ask] = useState(false);
  const [error, fail] = useState("");
  if (!room) return html`<h1 tabindex="-1">No such room</h1><p>It was taken away, or never was.</p>`;
  const remove = () => socket.request("delete", { room: id }).then(() => go("#/new"), (problem) => fail(problem.message));
  return html`<h1 tabindex="-1">${titleOf(room)}</h1>
    <${Room} key=${id} id=${id} isOwner entities=${house.entities} />
    ${!room.owned_by && html`<p class="row">${isSure
      ? html`<span>What was said stays with those who heard it.</span> <button class="danger" onClick=${remove}>Take the room away</button> <button class="plain" onClick=${() => ask(false)}>Keep it</button>`
      : html`<button class="quiet" onClick=${() => ask(true)}>Take this room away …</button>`}</p>`}
    ${error && html`<${Alert}>${error}<//>`}`;
}

function Frame() {
  const [state, setState] = useState("begins");
  const { house, error } = useHouse();
  const at = useAddress();
  useEffect(() => listen(setState), []);
  const view = at.view || (house?.rooms.length ? "room" : "new");
  const id = at.view === "room" ? at.parts[0] : view === "room" ? house?.rooms[0].id : "";
  useLayoutEffect(() => {
    if (!house) return;
    document.title = "Haven · PPS";
    document.querySelector("main h1")?.focus({ preventScroll: true });
  }, [view, id, Boolean(house)]);
  const link = (address, isHere, words) => html`<a href=${address} aria-current=${isHere ? "page" : null}>${words}</a>`;
  return html`<link rel="stylesheet" href=${STYLE} />
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>Skip to content</a>
    <header class="side">
      <p class="whose"><span class="mark" aria-hidden="true">H</span><strong>Haven</strong></p>
      <nav aria-label="Rooms"><ul class="rooms">
        <li>${link("#/new", view === "new", html`<${Icon} name="turns" />A new room`)}</li>
        <li>${link("#/entities", view === "entities", html`<${Icon} name="names" />Entities`)}</li>
        ${house?.rooms.map((room) => html`<li key=${room.id}>${link(href("room", {}, room.id), room.id === id, html`${titleOf(room)} <small>${room.members.map((one) => one.name).join(", ")}</small>`)}</li>`)}
      </ul></nav>
      <div class="foot"><span class=${`state ${state}`} role="status">${STATES[state]}</span>
        <button class="quiet" onClick=${leave}>Leave</button></div>
    </header>
    <main id="main" tabindex="-1" data-view=${view}>
      ${state === "away" && html`<${Alert}>The server does not answer. What you type is kept and sent when it is there again.<//>`}
      ${error && html`<${Alert}>${error}<//>`}
      <${JustDone} />
      ${!house && !error && html`<p class="faint" role="status">One moment …</p>`}
      ${house && view === "new" && html`<${NewRoom} house=${house} />`}
      ${house && view === "entities" && html`<${Entities} house=${house} />`}
      ${house && view === "room" && html`<${OneRoom} key=${id} house=${house} id=${id} />`}
    </main>`;
}

function Page({ refused }) {
  const [why, end] = useState(refused);
  useEffect(() => ended.hear(end), []);
  return why
    ? html`<main class="outside" id="main"><h1>Haven</h1><${Alert}>${why}<//>
      <p>Open this page with a link that you make on the machine where the memories live:</p><pre>pps haven</pre>
      <p class="faint">The link works once, within a minute. This browser then sees every entity for a week.</p></main>`
    : html`<${Frame} />`;
}

/** The secret of a link in the address; it leaves the address before anything else happens. */
function takeLink() {
  const link = /^#open=(\w+)$/.exec(location.hash)?.[1];
  if (link) history.replaceState(null, "", "#/");
  return link;
}

async function begin() {
  document.documentElement.style.colorScheme = localStorage.getItem("pps lights") || "";
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
