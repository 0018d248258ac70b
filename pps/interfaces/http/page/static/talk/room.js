// A room: who is in it, what was said, and what one says next.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../core.js";
import { Said } from "../markdown.js";
import { Alert, When } from "../parts.js";
import * as socket from "../socket.js";
import { Message } from "./message.js";
import { hearOutbox, outboxOf, post, takeBack } from "./outbox.js";
import { inOrder, useRoom } from "./store.js";

/** The address of what rooms look like, for a page that shows one. */
export const STYLE = new URL("./talk.css", import.meta.url).href;

const CHANGES = { joined: "joined", left: "left", sent_out: "was sent out", called_in: "was called in again" };

/** The messages of a room that are on their way. */
function useOutbox(id) {
  const [, draw] = useState(0);
  useLayoutEffect(() => hearOutbox(() => draw((n) => n + 1)), []);
  return outboxOf(id);
}

/** Who is in the room, with what can be done about it. */
function People({ room, isOwner, entities }) {
  const [error, fail] = useState("");
  const [over, offer] = useState("");
  const { state } = room;
  const change = (entity, how) => socket.request("presence", { room: room.id, entity, change: how }).then(() => fail(""), (problem) => fail(problem.message));
  const handOver = (entity) => socket.request("hand_over", { room: room.id, entity }).then(
    (done) => (fail(""), offer(`${entity} now has ${done.handed_over} messages more.`)), (problem) => fail(problem.message),
  );
  const away = entities.filter((one) => !state.members.some((member) => member.name === one.name));
  return html`<section class="people" aria-label="Who is in the room">
    <ul class="plain">${state.members.map((one) => html`<li key=${one.name} class=${one.is_out ? "out" : ""}>
      <b>${one.name}</b> ${one.is_out ? html`<span class="tag">hears nothing</span>` : one.model && html`<span class="faint">${one.model}</span>`}
      <span class="row deeds">
        ${one.is_at_rest ? html`<span class="faint">archived</span>` : one.is_out
          ? html`<button class="quiet" onClick=${() => change(one.name, "called_in")}>Call ${one.name} in</button>`
          : html`<button class="quiet" onClick=${() => change(one.name, "sent_out")}>Send ${one.name} out</button>`}
        ${isOwner && !state.owned_by && html`<button class="quiet" onClick=${() => handOver(one.name)}>Hand over what ${one.name} missed</button>
          <button class="quiet" onClick=${() => change(one.name, "left")}>Take ${one.name} off</button>`}
      </span>
    </li>`)}</ul>
    ${isOwner && !state.owned_by && away.length > 0 && html`<form class="row" onSubmit=${(event) => (event.preventDefault(), change(new FormData(event.target).get("entity"), "joined"))}>
      <label>Who joins <select name="entity">${away.map((one) => html`<option key=${one.name}>${one.name}</option>`)}</select></label>
      <button class="plain">Let join</button></form>`}
    ${over && html`<p role="status">${over}</p>`}
    ${error && html`<${Alert}>${error}<//>`}
  </section>`;
}

/** What the room and its person are called, and whether anything is kept. */
function Settings({ room }) {
  const [error, fail] = useState("");
  const { state } = room;
  const describe = (how) => socket.request("describe", { room: room.id, ...how }).then(() => fail(""), (problem) => fail(problem.message));
  const submit = (event) => {
    event.preventDefault();
    const { title, person } = Object.fromEntries(new FormData(event.target));
    describe({ ...(title !== undefined && { title: title.trim() }), person: person.trim() });
  };
  return html`<form class="form" onSubmit=${submit}>
    ${!state.owned_by && html`<label><span>Title</span> <input name="title" maxlength="120" defaultValue=${state.title} /></label>`}
    <label><span>What you are called here</span> <input name="person" dir="auto" maxlength="100" defaultValue=${state.person} /></label>
    <p class="row"><button class="plain">Keep that</button>
      <label class="check"><input type="checkbox" checked=${state.off_record} onChange=${(event) => describe({ off_record: event.target.checked })} /> Off the record: nothing that is said is kept</label></p>
    ${error && html`<${Alert}>${error}<//>`}
  </form>`;
}

/** An answer that is being given. */
const Coming = ({ of, stop }) => html`<li class="message theirs coming" aria-busy="true">
  <p class="faint"><bdi><b>${of.author}</b></bdi>${of.off_record && html` <span class="tag">Off the record</span>`}</p>
  ${of.text ? html`<${Said} text=${of.text} />` : html`<p class="faint thinking">${of.author} is thinking …</p>`}
  <p class="row"><button class="plain" onClick=${stop}>Stop</button></p>
</li>`;

/** A message on its way. */
const Sending = ({ of, edit }) => html`<li class="message mine sending">
  <p class="faint"><b>You</b> · ${of.problem ? "not sent" : "on its way …"}</p>
  <${Said} text=${of.text} />
  ${of.problem && html`<${Alert}>${of.problem}<//><p class="row"><button class="plain" onClick=${() => (takeBack(of.message), edit(of.text))}>Type it anew</button>
    <button class="quiet" onClick=${() => takeBack(of.message)}>Drop it</button></p>`}
</li>`;

const newId = () => crypto.randomUUID?.() || "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (digit) =>
  (digit ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (digit / 4)))).toString(16));

/** Where one types. What is typed is kept in this browser until it is sent, unless it is off the record. */
function Composer({ room, draft, editing, endEdit }) {
  const kept = `pps draft ${room.id}`;
  const area = useRef(null);
  const [isOff, turnOff] = useState(false);
  const [error, fail] = useState("");
  const present = room.state.members.filter((one) => !one.is_out);
  const off = isOff || room.state.off_record;
  // Before anybody can type: what is set after the paint would stand beside the first letters.
  useLayoutEffect(() => {
    area.current.value = editing ? editing.text : localStorage.getItem(kept) || "";
    if (editing) area.current.focus();
  }, [room.id, editing?.id]);
  useLayoutEffect(() => {
    if (draft.text === undefined) return;
    area.current.value = draft.text;
    area.current.focus();
  }, [draft]);
  const typed = (event) => {
    if (editing) return;
    if (off || !event.target.value) localStorage.removeItem(kept);
    else localStorage.setItem(kept, event.target.value);
  };
  const send = () => {
    const text = area.current.value.trim();
    if (!text) return;
    if (editing) {
      socket.request("edit", { room: room.id, message: editing.id, new: newId(), text }).then(() => (fail(""), endEdit()), (problem) => fail(problem.message));
      return;
    }
    const to = new FormData(area.current.form).get("to");
    post({ room: room.id, message: newId(), text, to: to ? [to] : [], off_record: off });
    area.current.value = "";
    localStorage.removeItem(kept);
    fail("");
  };
  const key = (event) => {
    if (event.key === "Escape" && editing) endEdit();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  return html`<form class="composer asking" aria-label="Say something" onSubmit=${(event) => (event.preventDefault(), send())}>
    <textarea ref=${area} name="text" rows="2" maxlength="65536" dir="auto" aria-label=${editing ? "Your last message" : "Your message"}
      placeholder=${editing ? "" : "Enter sends, Shift+Enter begins a line"} onInput=${typed} onKeyDown=${key}></textarea>
    <div class="row">
      <button>${editing ? "Say this instead" : "Send"}</button>
      ${editing && html`<button class="plain" type="button" onClick=${endEdit}>Leave it as it was</button>`}
      ${!editing && present.length > 1 && html`<label>To <select name="to"><option value="">whoever is named, else all</option>
        ${present.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>`}
      ${!editing && !room.state.off_record && html`<label class="check"><input type="checkbox" checked=${isOff} onChange=${(event) => (localStorage.removeItem(kept), turnOff(event.target.checked))} /> Off the record</label>`}
      ${room.state.off_record && html`<span class="tag">Off the record</span>`}
    </div>
    ${error && html`<${Alert}>${error}<//>`}
  </form>`;
}

/** Messages and comings and goings together, in their order. */
function timeline(room) {
  const events = (room.state?.changes || []).slice(room.state?.owned_by ? 1 : 0).map((one) => ({ place: one.position, change: one }));
  const messages = inOrder(room).map((one) => ({ place: one.place, message: one }));
  const first = room.more && messages.length ? messages[0].place : 0;
  return [...messages, ...events.filter((one) => one.place >= first)].sort((a, b) => a.place - b.place);
}

/** Who is in the room, heard a message of the person, and has not answered it: nobody asked, or the answer failed. */
const silentOf = (state, messages, of) => state.members
  .filter(({ name, is_out }) => !is_out && name in of.turns && !messages.some((one) => one.author === name && one.reply_to === of.id))
  .map(({ name }) => name);

/** A room; one that shows another in its place gives it the room's id as its key. */
export function Room({ id, isOwner = false, entities = [] }) {
  const followed = useRoom(id);
  const outbox = useOutbox(id);
  const [editing, edit] = useState(null);
  const [draft, redraft] = useState({});
  const [error, fail] = useState("");
  const end = useRef(null);
  const isAtEnd = useRef(true);
  const room = followed?.room;
  const sending = outbox.filter((one) => !room?.messages.has(one.message)); // heard of before its answer came
  const entries = room?.state ? timeline(room) : [];
  useEffect(() => {
    const seen = () => (isAtEnd.current = window.innerHeight + window.scrollY > document.documentElement.scrollHeight - 160);
    window.addEventListener("scroll", seen, { passive: true });
    return () => window.removeEventListener("scroll", seen);
  }, []);
  useLayoutEffect(() => {
    if (isAtEnd.current) end.current?.scrollIntoView({ block: "end" });
  });
  if (room?.refused) return html`<${Alert}>${room.refused}<//>`;
  if (!room?.state) return html`<p class="faint" role="status">One moment …</p>`;
  const { state, answer } = room;
  const stop = () => socket.request("stop", { room: id }).catch((problem) => fail(problem.message));
  const messages = inOrder(room);
  const mine = messages.filter((one) => !one.author).at(-1);
  const isQuiet = !answer && !room.waiting.length && !sending.length;
  const silent = isQuiet && mine ? silentOf(state, messages, mine) : [];
  const isUnanswered = messages.at(-1) === mine;
  const ask = (to) => socket.request("ask", { room: id, message: mine.id, to }).catch((problem) => fail(problem.message));
  const may = (one) => ({
    edit: one === mine && isQuiet && !editing,
    again: isQuiet && one.author && (!mine || one.place > mine.place) && state.members.some((member) => member.name === one.author && !member.is_out),
  });
  return html`<div class="room" data-room=${id}>
    <details class="about"><summary class="why">${state.members.map((one) => (one.is_out ? `${one.name} (out)` : one.name)).join(", ") || "Nobody is here"}</summary>
      <${People} room=${room} isOwner=${isOwner} entities=${entities} /><${Settings} key=${`${id} ${state.title} ${state.person}`} room=${room} /></details>
    ${state.members.filter((one) => one.problem).map((one) => html`<p class="alert" key=${one.name}>${one.problem}</p>`)}
    ${room.more && html`<p><button class="plain" onClick=${() => followed.earlier().catch((problem) => fail(problem.message))}>Show what was said before</button></p>`}
    ${!messages.length && !sending.length && html`<p class="faint">Nothing was said here yet. What you say is kept in the memory of everyone who is in the room, before anybody is asked for an answer.</p>`}
    <ol class="plain messages" aria-label="What was said" aria-live="off">
      ${entries.map(({ message, change }) => (message
        ? html`<${Message} key=${message.id} room=${id} of=${message} may=${may(message)} edit=${() => edit(message)} />`
        : html`<li key=${`c${change.position}`} class="change faint">${change.entity} ${CHANGES[change.change]} · <${When} at=${change.at} time /></li>`))}
      ${answer && !room.messages.has(answer.id) && html`<${Coming} key=${answer.id} of=${answer} stop=${stop} />`}
      ${sending.map((one) => html`<${Sending} key=${one.message} of=${one} edit=${(text) => redraft({ text })} />`)}
    </ol>
    <div class="unseen" aria-live="polite">${messages.at(-1)?.author && isQuiet ? `${messages.at(-1).author}: ${messages.at(-1).text.slice(0, 500)}` : ""}</div>
    ${room.waiting.length > 0 && html`<p class="faint">${room.waiting.join(", ")} ${room.waiting.length === 1 ? "answers" : "answer"} next. <button class="quiet" onClick=${stop}>Stop all</button></p>`}
    ${room.problem && html`<${Alert}>${room.problem.entity}: ${room.problem.text}<//>`}
    ${error && html`<${Alert}>${error}<//>`}
    ${silent.length > 0 && html`<p class="row">${isUnanswered
      ? html`<button class="plain" onClick=${() => ask([])}>Ask for an answer</button>`
      : silent.map((name) => html`<button key=${name} class="quiet" onClick=${() => ask([name])}>Let ${name} answer too</button>`)}</p>`}
    <${Composer} room=${room} draft=${draft} editing=${editing} endEdit=${() => edit(null)} />
    <div ref=${end}></div>
  </div>`;
}
