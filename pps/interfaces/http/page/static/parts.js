// Pieces that views share: icons, times, ids, states, and what an item looks like in a line.
import { href, html, useCall } from "./core.js";

const PATHS = {
  ask: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m5 12 5 5",
  graph: "M6 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4m13 3a2 2 0 1 0 0 4 2 2 0 0 0 0-4M9 16a2 2 0 1 0 0 4 2 2 0 0 0 0-4M8 6.5l9 2M6.6 8l2 8M17.5 10.5 10.5 17",
  time: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18m0 4v5l3 2",
  turns: "M4 5h16v11H9l-5 4z",
  jobs: "M4 6h10M4 12h16M4 18h7",
  health: "M3 12h4l3-7 4 14 3-7h4",
  records: "M4 5h16v14H4zM4 10h16M10 10v9",
  topics: "M8 8a4 4 0 1 0 0 .01M17 16a3 3 0 1 0 0 .01M16 6a2 2 0 1 0 0 .01",
  squad: "M9 11a3 3 0 1 0 0-.01M17 10a2 2 0 1 0 0-.01M3 20c0-4 3-6 6-6s6 2 6 6M15 14c4-1 6 2 6 5",
  anchors: "M12 6a2 2 0 1 0 0-.01M12 8v12M5 13c0 4 3 7 7 7s7-3 7-7M8 11h8",
  injected: "M12 3v11m0 0 4-4m-4 4-4-4M4 18v3h16v-3",
  isolation: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6z",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
  <path d=${PATHS[name] || "M12 12h.01"} />
</svg>`;

export const Alert = ({ children }) => html`<p class="alert" role="alert">${children}</p>`;

/** What stands where there is nothing yet: why, and what to do. */
export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

/** A view's answer: its problem, that it is asked for, or what is made of it. */
export function Answer({ of, children }) {
  return html`
    ${of.error && html`<${Alert}>${of.error.message}<//>`}
    ${of.busy && !of.data && html`<p class="faint" role="status">One moment …</p>`}
    ${of.data && children(of.data)}
  `;
}

export const day = (moment) => (moment ? moment.slice(0, 10) : "");

/** A time: the day in the text, the whole of it on hover. */
export const When = ({ at, none = "" }) =>
  at ? html`<time datetime=${at} title=${at.replace("T", " ").slice(0, 19) + " UTC"}>${day(at)}</time>` : none;

/** Since when and until when a fact holds. */
export const Span = ({ of }) => html`<span class="span">
  ${of.valid_at ? html`<${When} at=${of.valid_at} />` : "…"} – ${of.invalid_at ? html`<${When} at=${of.invalid_at} />` : "now"}
</span>`;

/** A link to an item by its id. */
export const Item = ({ id, children }) => html`<a class="item" href=${href("item", {}, id)}>${children}</a>`;

export const Id = ({ of }) => html`<a class="id" href=${href("item", {}, of)}>${of.slice(0, 8)}</a>`;

export const counted = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** Whether a fact has ended at a moment (milliseconds). */
export const hasEnded = (of, at = Date.now()) => (of.invalid_at ? Date.parse(of.invalid_at) <= at : Boolean(of.expired_at));

/** A fact as a line: its sentence, its time; one that has ended at a moment, or by now, is struck. */
export const FactLine = ({ of, at }) => html`<li class=${hasEnded(of, at) ? "ended" : ""}>
  <a class="item said" href=${href("item", {}, of.id)}>${of.text || `${of.subject_name} ${of.relation} ${of.object_name}`}</a> <${Span} of=${of} />
</li>`;

/** The facts of a node, or those that a condition of `timeline` lets through. */
export function Facts({ about, limit = 50, as_of = undefined }) {
  const of = useCall("timeline", { about, limit, as_of }, { live: true });
  return html`<${Answer} of=${of}>
    ${({ facts, next_cursor }) => html`<h3>Facts</h3>
      ${!facts.length && html`<p class="faint">None.</p>`}
      <ul class="lines facts">${facts.map((one) => html`<${FactLine} key=${one.id} of=${one} />`)}</ul>
      ${next_cursor && html`<p class="faint">These are the first ${limit}.</p>`}`}
  <//>`;
}
