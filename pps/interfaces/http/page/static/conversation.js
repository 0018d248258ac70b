// Conversations as people read them: days, speakers, what was said, and what was made of it beside it.
import { href, html, useCall } from "./core.js";
import { Answer, FactLine, Item, State, SupersededBy, When, counted, told_time } from "./parts.js";
import { Marked } from "./matches.js";
import { Said } from "./markdown.js";

const IS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{16,}$|^room-[0-9a-f]{12}$/i;
const FACTS_BESIDE = 3;
const NEAR = 11;

/** The name of a conversation; one that is only an id has none. */
export const nameOf = (session) => (IS_ID.test(session) ? "" : session);

/** A conversation of a list: its name or day, how long it is, and when it was last spoken in. */
export const Conversation = ({ of }) => html`<a class="item" dir="auto" href=${href("turns", { session: of.session })}>${nameOf(of.session) || html`Conversation of <${When} at=${of.last_at} />`}</a>
  ${" "}<span class="faint">${counted(of.turns, "turn")}, <${When} at=${of.last_at} time /></span>`;

/** A day in words; a month or a year as it is. */
export function dayName(day) {
  if (day.length < 10) return day;
  return new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));
}

const dayOf = ({ turn }) => told_time(turn.occurred_at, turn.occurred_at_precision).slice(0, 10);

/** What was made of a turn: its record and its facts; where it waits or failed, that. */
function Made({ of: { state, error, facts, facts_total: total, record }, isOpen }) {
  const [first, rest] = [facts.slice(0, FACTS_BESIDE), facts.slice(FACTS_BESIDE)];
  const lines = (some) => html`<ul class="lines">${some.map((fact) => html`<${FactLine} key=${fact.id} of=${fact} />`)}</ul>`;
  return html`<div class="made"><${State} of=${state} />
    ${error && state !== "done" && html`<p class="why" dir="auto">${error}</p>`}
    ${record && html`<p class="why"><${Item} id=${record}>Made a record<//></p>`}
    ${total > 0
      ? html`<p class="why">${counted(total, "fact")} made of it</p>${lines(first)}
          ${rest.length > 0 && html`<details open=${isOpen}><summary class="why">${counted(rest.length, "more fact")}</summary>${lines(rest)}
            ${total > facts.length && html`<p class="faint">These are the first ${facts.length} of ${total.toLocaleString("en")}.</p>`}</details>`}`
      : state === "done" && !record && html`<p class="why">No facts were made of it.</p>`}
  </div>`;
}

/**
 * A turn of a conversation, with what was made of it beside it. `words` are marked in it; `here` marks the one that a list
 * is around; `isNamed` says in which conversation it was said.
 */
export function TurnOfTalk({ of, words = [], here = false, isNamed = false }) {
  const { turn, cut } = of;
  const text = `${turn.content}${cut ? "…" : ""}`;
  return html`<li class=${`turn of-${turn.role} ${here ? "here" : ""}`} aria-current=${here ? "true" : null}>
    <p class="faint speaker"><bdi><b>${turn.actor || turn.role}</b></bdi> · <a href=${href("item", {}, turn.id)}><${When} at=${turn.occurred_at} precision=${turn.occurred_at_precision} time /></a>
      ${isNamed && html` · <a dir="auto" href=${href("turns", { session: turn.session })}>${nameOf(turn.session) || "its conversation"}</a>`}</p>
    <${Made} of=${of} isOpen=${here} />
    ${words.length ? html`<${Marked} class="speech clipped" text=${text} words=${words} />` : html`<${Said} class="speech clipped" text=${text} />`}
    <${SupersededBy} of=${turn} />
  </li>`;
}

/** Turns in the order given, with a heading for each day. */
export function Turns({ turns, words = [], isNamed = false, near = "" }) {
  const lines = [];
  let day = "";
  for (const of of turns) {
    if (dayOf(of) !== day) {
      day = dayOf(of);
      lines.push(html`<li key=${`${day} ${of.turn.id}`} class="day"><h2>${dayName(day)}</h2></li>`);
    }
    lines.push(html`<${TurnOfTalk} key=${of.turn.id} of=${of} words=${words} isNamed=${isNamed} here=${of.turn.id === near} />`);
  }
  return html`<ol class="plain talk" aria-label="Turns">${lines}</ol>`;
}

/** What was said right before and after a turn, the oldest first, with the facts that were made of each. */
export function Neighbours({ id }) {
  const of = useCall("turns_list", { near: id, limit: NEAR }, { live: true });
  return html`<h2>Said before and after</h2>
    <${Answer} of=${of}>${({ turns }) => html`<ol class="plain talk" aria-label="Said before and after">
      ${[...turns].reverse().map((one) => html`<${TurnOfTalk} key=${one.turn.id} of=${one} here=${one.turn.id === id} />`)}</ol>
      ${turns.length === 1 && html`<p class="faint">Nothing else was said in this conversation.</p>`}
      ${turns[0] && html`<p><a href=${href("turns", { session: turns[0].turn.session })}>The whole conversation</a></p>`}`}<//>`;
}
