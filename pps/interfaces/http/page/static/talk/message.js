// One message of a room: its words, and, folded beside an answer, what its author was given and wrote down from it.
import { acts, callOf, entity, href, html, useEffect, useState } from "../core.js";
import { Said } from "../markdown.js";
import { Alert, Span, When, counted, hasEnded, wasNeverTrue } from "../parts.js";
import * as socket from "../socket.js";

const MARKS = { stopped: "Stopped", "cut off": "Cut off" };
const who = (of) => of.speaker || "You";

/** A fact that was written down from a message, with what can be done about it in one click. */
function WrittenFact({ of, name, changed }) {
  const [error, fail] = useState("");
  const act = (operation, given, title, undo) => callOf(name, operation, given).then(
    (data) => (fail(""), acts.tell({ title, undo: { of: name, operation: "undo", given: { id: undo(data) } } }), changed()),
    (problem) => fail(problem.message),
  );
  const text = of.text || `${of.subject_name} ${of.relation} ${of.object_name}`;
  const isOver = hasEnded(of);
  return html`<li class=${isOver ? "ended" : ""}>
    ${entity ? html`<a class="item said" dir="auto" href=${href("item", {}, of.id)}>${text}</a>` : html`<span class="said" dir="auto">${text}</span>`} <${Span} of=${of} />
    ${error && html`<${Alert}>${error}<//>`}
    <span class="row deeds">
      ${!wasNeverTrue(of) && html`<button class="quiet" aria-label=${`Was not so: ${text}`} onClick=${() => act("fact_correct", { id: of.id, verdict: "never_true" }, "Marked: it was not so.", (data) => data.turn_id)}>Was not so</button>`}
      ${!isOver && html`<button class="quiet" aria-label=${`Wrong by now: ${text}`} onClick=${() => act("fact_correct", { id: of.id, verdict: "no_longer_true" }, "Marked: wrong by now.", (data) => data.turn_id)}>Wrong by now</button>`}
      <button class="quiet" aria-label=${`Forget: ${text}`} onClick=${() => act("forget", { ids: [of.id], dry_run: false, soft: true }, "Forgotten: 1 fact.", (data) => data.restorable_as)}>Forget</button>
    </span>
  </li>`;
}

/** What was made of a turn in one memory. */
function WrittenDown({ name, turns }) {
  const [made, show] = useState(null);
  const [error, fail] = useState("");
  const [turn, again] = useState(0);
  useEffect(() => {
    let wanted = true;
    Promise.all(turns.map((id) => callOf(name, "turns_list", { near: id, limit: 1 }))).then(
      (pages) => wanted && (fail(""), show(pages.flatMap((page) => page.turns.filter((one) => turns.includes(one.turn.id))))),
      (problem) => wanted && fail(problem.message),
    );
    return () => (wanted = false);
  }, [turn, turns.join()]);
  useEffect(() => {
    const ends = [socket.followEntity(name), socket.hear("changed", (event) => event.entity === name && again((n) => n + 1))];
    return () => ends.forEach((end) => end());
  }, [name]);
  if (error) return html`<${Alert}>${error}<//>`;
  if (!made) return html`<p class="faint" role="status">One moment …</p>`;
  const facts = made.flatMap((one) => one.facts);
  const isWaiting = made.some((one) => !["done", "failed", "dropped"].includes(one.state));
  return html`${facts.length === 0 && html`<p class="faint">${isWaiting ? "It is being taken in …" : "No facts: the words alone are kept."}</p>`}
    <ul class="lines">${facts.map((fact) => html`<${WrittenFact} key=${fact.id} of=${fact} name=${name} changed=${() => again((n) => n + 1)} />`)}</ul>`;
}

/** What the author of an answer was given for it. */
function Given({ room, message }) {
  const [lines, show] = useState(null);
  const [error, fail] = useState("");
  useEffect(() => {
    socket.request("given", { room, message }).then((data) => show(data.lines), (problem) => fail(problem.message));
  }, [room, message]);
  if (error) return html`<${Alert}>${error}<//>`;
  if (!lines) return html`<p class="faint" role="status">One moment …</p>`;
  if (!lines.length) return html`<p class="faint">Nothing of its memory was near this.</p>`;
  return html`<ul class="lines">${lines.map((line) => html`<li key=${line.id}><span class="tag">${line.kind}</span> ${entity
    ? html`<a class="item said" dir="auto" href=${href("item", {}, line.id)}>${line.text}</a>`
    : html`<span class="said" dir="auto">${line.text}</span>`}</li>`)}</ul>`;
}

/** A part that is folded, and asks for nothing before it is opened. */
function Folded({ title, children }) {
  const [isOpen, turn] = useState(false);
  return html`<details open=${isOpen} onToggle=${(event) => turn(event.target.open)}><summary class="why">${title}</summary>${isOpen && children}</details>`;
}

/** Forgetting a message: everybody who has it is offered. */
function ForgetMessage({ room, of, onDone }) {
  const names = Object.keys(of.turns);
  const [error, fail] = useState("");
  const submit = (event) => {
    event.preventDefault();
    const entities = new FormData(event.target).getAll("entity");
    if (!entities.length) return fail("choose at least one of them");
    socket.request("forget", { room, message: of.id, entities }).then(
      ({ restorable }) => {
        const undo = Object.keys(restorable).length > 0 && { ask: () => socket.request("restore", { room, message: of.id, restorable }) };
        acts.tell({ title: "Forgotten: 1 message.", undo });
        onDone();
      },
      (problem) => fail(problem.message),
    );
  };
  return html`<form class="form card" aria-label="Forget this message" onSubmit=${submit}>
    <fieldset><legend>Who forgets it?</legend>
      ${names.map((name) => html`<label class="check" key=${name}><input type="checkbox" name="entity" value=${name} defaultChecked /> ${name}</label>`)}
    </fieldset>
    <p class="faint">With the facts that only it supports. For 30 days it can be restored in that memory, under Forgotten.</p>
    ${error && html`<${Alert}>${error}<//>`}
    <p class="row"><button>Forget it</button><button class="plain" type="button" onClick=${onDone}>Keep it</button></p>
  </form>`;
}

/** A message. `may` says what can be done: `{again, edit}`. */
export function Message({ room, of, may, edit }) {
  const [isForgetting, forget] = useState(false);
  const [error, fail] = useState("");
  const names = Object.keys(of.turns);
  const again = () => socket.request("again", { room, message: of.id }).then(() => fail(""), (problem) => fail(problem.message));
  const written = of.author && of.turns[of.author] ? [of.turns[of.author], ...of.written] : [];
  const others = names.filter((name) => name !== of.author);
  return html`<li class=${`message ${of.author ? "theirs" : "mine"}`} data-id=${of.id}>
    <p class="faint"><bdi><b>${of.author ? of.author : who(of)}</b></bdi> · <${When} at=${of.at} time />
      ${of.mark && html` <span class="tag failed">${MARKS[of.mark]}</span>`}
      ${of.off_record && html` <span class="tag">Off the record</span>`}
      ${of.handed_over.length > 0 && html` <span class="tag">Handed over to ${of.handed_over.join(", ")}</span>`}</p>
    <${Said} text=${of.text} />
    ${error && html`<${Alert}>${error}<//>`}
    ${of.author && !of.off_record && html`<div class="folded">
      <${Folded} title=${of.given ? `${of.author} was given ${counted(of.given, "line")}` : `What ${of.author} was given`}><${Given} room=${room} message=${of.id} /><//>
      ${written.length > 0 && html`<${Folded} title=${`What ${of.author} wrote down from it`}><${WrittenDown} name=${of.author} turns=${written} /><//>`}
    </div>`}
    ${!of.author && !of.off_record && html`<div class="folded">${others.map((name) => html`<${Folded} key=${name} title=${`What ${name} wrote down from it`}><${WrittenDown} name=${name} turns=${[of.turns[name]]} /><//>`)}</div>`}
    <p class="row deeds">
      ${may.again && html`<button class="quiet" onClick=${again}>Try again</button>`}
      ${may.edit && html`<button class="quiet" onClick=${edit}>Edit</button>`}
      <button class="quiet" aria-expanded=${isForgetting} onClick=${() => forget(!isForgetting)}>Forget</button>
    </p>
    ${isForgetting && html`<${ForgetMessage} room=${room} of=${of} onDone=${() => forget(false)} />`}
  </li>`;
}
