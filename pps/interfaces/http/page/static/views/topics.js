// Topics: what a memory is about, as circles by size and phase; what each holds; how all of them changed.
import { call, callLong, entity, href, html, useCall, useMemo, useState } from "../core.js";
import { Alert, Answer, Empty, Id, When, counted } from "../parts.js";

const PAGE = 100; // members that are read at once
const LEAST = 620; // of a map's width
const WINDOWS = [[1, "the last hour"], [24, "the last day"], [168, "the last week"]];
const PHASES = {
  emerging: "new, and still growing",
  stable: "as it was",
  declining: "much of it has gone elsewhere",
  merging: "it took in another",
};
const percent = (share) => `${Math.round(100 * share)} %`;

/** Circles without overlap, the largest in the middle: each is put at the first free place of a spiral. */
function placed(topics) {
  const most = Math.max(...topics.map((one) => one.size));
  const there = [];
  for (const one of topics) {
    const r = 26 + 54 * Math.sqrt(one.size / most);
    for (let turn = 0; ; turn += 0.15) {
      const [x, y] = [1.6 * turn * 3 * Math.cos(turn), turn * 3 * Math.sin(turn)];
      if (there.every((other) => Math.hypot(other.x - x, other.y - y) > other.r + r + 4)) {
        there.push({ ...one, x, y, r });
        break;
      }
    }
  }
  return there;
}

/** A topic's terms on lines that its circle has room for. */
function lines({ name, r }) {
  const room = Math.floor(r / 4);
  return name.split(", ").slice(0, r > 50 ? 3 : 2).map((one) => (one.length > room ? `${one.slice(0, room - 1)}…` : one));
}

function Topics({ topics, chosen }) {
  const circles = useMemo(() => placed(topics), [topics]);
  const edge = (axis, side) => side * Math.max(...circles.map((one) => side * one[axis] + one.r + 6));
  const [left, top] = [edge("x", -1), edge("y", -1)];
  const [wide, high] = [edge("x", 1) - left, edge("y", 1) - top];
  const room = Math.max(0, LEAST - wide); // a few circles do not fill the page
  return html`<svg class="card topics" viewBox=${`${left - room / 2} ${top} ${wide + room} ${high}`} role="group" aria-label="Topics by size and phase">
    ${circles.map((one) => html`<a key=${one.id} href=${href("topics", {}, one.id)} class=${one.phase}
        aria-label=${`${one.name}: ${counted(one.size, "turn")}, ${one.phase}`} aria-current=${one.id === chosen ? "true" : null}>
      <circle cx=${one.x} cy=${one.y} r=${one.r} />
      <text x=${one.x} y=${one.y - 5 * lines(one).length}>${lines(one).map((line, at) => html`<tspan key=${at} x=${one.x} dy=${at ? 13 : 0}>${line}</tspan>`)}</text>
      <text class="size" x=${one.x} y=${one.y + below(one)}>${one.size} · ${one.phase}</text>
    </a>`)}
  </svg>`;
}
const below = (one) => Math.min(one.r - 8, 7.5 * lines(one).length + 8);

/** Some turns, read a page at a time. */
async function members(ids) {
  const items = [];
  for (let at = 0; at < ids.length; at += PAGE) items.push(...(await call("get", { ids: ids.slice(at, at + PAGE) })).items);
  return { items };
}

function Members({ of }) {
  const [most, show] = useState(PAGE);
  const found = useCall(members, of.members.slice(0, most));
  return html`<section aria-labelledby="topic" class="card">
    <h2 id="topic" dir="auto">${of.name}</h2>
    <p class="faint">${counted(of.size, "turn")}; ${of.phase}: ${PHASES[of.phase]}. Agreed on by ${percent(of.confidence)} of the ways to compare${
      of.churn !== undefined ? `; ${percent(of.churn)} of it changed since an hour before` : ""}.</p>
    ${of.terms.length > 0 && html`<p class="row">${of.terms.map((one) => html`<span key=${one} class="tag" dir="auto">${one}</span>`)}</p>`}
    ${of.named.length > 0 && html`<p class="faint">Named in it: <bdi>${of.named.join(", ")}</bdi></p>`}
    <${Answer} of=${found}>${({ items }) => html`<ul class="lines">${items.map((one) => html`<li key=${one.id}>
      <span class="said" dir="auto">${one.content}</span> <span class="faint"><${When} at=${one.occurred_at} precision=${one.occurred_at_precision} /></span> <${Id} of=${one.id} /></li>`)}</ul>`}<//>
    ${of.members.length > most && html`<p><button class="plain" disabled=${found.busy} onClick=${() => show(most + PAGE)}>Show more turns</button></p>`}
  </section>`;
}

const held = (hours) => Promise.all(hours.map((one) => call("get_topic_stability", { hours: one })));

function Stability() {
  const of = useCall(held, WINDOWS.map(([hours]) => hours), { live: true });
  return html`<h2>How they hold</h2>
    <${Answer} of=${of}>${(rows) => html`<table>
      <thead><tr><th scope="col">Over</th><th scope="col">Looked for</th><th scope="col">Changed</th></tr></thead>
      <tbody>${rows.map((one, at) => html`<tr key=${one.hours}><th scope="row">${WINDOWS[at][1]}</th><td>${counted(one.snapshots, "time")}</td>
        <td>${one.churn === undefined ? "nothing to compare with" : html`<meter min="0" max="1" value=${one.churn} aria-label="Changed"></meter> ${percent(one.churn)}`}</td></tr>`)}</tbody>
    </table>
    <p class="faint">Changed is the share of turns that came into a topic, left one, or went over to another.
      ${rows[0].entropy !== undefined && ` Spread is ${percent(rows[0].entropy)}: 100 % where all are of one size.`}
      ${rows[0].consolidate && " Much is new and scattered: merging what says the same is worth a look."}</p>`}<//>`;
}

function View({ parts: [chosen = ""] }) {
  const of = useCall("get_topic_portfolio", { format: "verbose" }, { live: true });
  const [going, go] = useState(null);
  const [looked, tell] = useState(false);
  const [error, fail] = useState("");
  const detect = () => {
    fail("");
    go({ what: "starting", done: 0, total: 0 });
    callLong("detect_topics", { force: true }, go).then(() => (tell(true), of.again()), (problem) => fail(problem.message)).finally(() => go(null));
  };
  const look = html`<p class="row"><button class="plain" disabled=${Boolean(going)} onClick=${detect}>Look for topics now</button>
    ${going && html`<progress max=${going.total || 1} value=${going.total ? going.done : undefined} aria-label="Looking for topics"></progress>
      <span class="faint" role="status">${going.what}</span>`}</p>`;
  return html`
    <h1 tabindex="-1">Topics</h1>
    ${error && html`<${Alert}>${error}<//>`}
    <${Answer} of=${of}>${({ topics, at }) => {
      const topic = topics.find((one) => one.id === chosen);
      return html`
        ${topics.length > 0
          ? html`<p class="faint">${counted(topics.length, "topic")} of what ${entity} was told, looked for <${When} at=${at} />. A circle opens what it holds.</p>
              <${Topics} topics=${topics} chosen=${chosen} />`
          : html`<${Empty} title=${at || looked ? "No topics" : "Topics were not looked for yet"}>
              <p>${looked && "Nothing was found now. "}A topic is what three turns or more are about, by several ways to compare them. They are looked for when a session
              ends, or here and now.</p><//>`}
        ${look}
        ${topic && html`<${Members} key=${topic.id} of=${topic} />`}
        ${at && html`<${Stability} />`}`;
    }}<//>
  `;
}

export default View;
