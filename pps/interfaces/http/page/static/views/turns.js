// Turns: what was said, newest first, a page at a time, all or of one session; and what was made of each.
import { call, entity, go, href, html, useCall, useEffect, useState } from "../core.js";
import { Alert, Answer, Empty, FactLine, Id, Item, State, SupersededBy, When, counted } from "../parts.js";
import { Said } from "../markdown.js";

const PAGE = 30;

function Turn({ of: { turn, state, error, facts, facts_total, record, cut } }) {
  return html`<li class="card turn">
    <p class="faint"><bdi><b>${turn.actor || turn.role}</b></bdi> · <${When} at=${turn.occurred_at} precision=${turn.occurred_at_precision} time /> · <bdi>${turn.source}</bdi>
      ${" · "}<a dir="auto" href=${href("turns", { session: turn.session })}>${turn.session}</a> · <${Id} of=${turn.id} /> <${State} of=${state} /></p>
    <${Said} class="clipped" text=${`${turn.content}${cut ? "…" : ""}`} />
    <${SupersededBy} of=${turn} />
    ${error && state !== "done" && html`<p class="why">${error}</p>`}
    ${record && html`<p class="why">Made a record: <${Item} id=${record}>open it<//></p>`}
    ${facts_total > 0
      ? html`<details><summary class="why">${counted(facts_total, "fact")} made of it</summary>
          <ul class="lines">${facts.map((one) => html`<${FactLine} key=${one.id} of=${one} />`)}</ul>
          ${facts_total > facts.length && html`<p class="faint">These are the first ${facts.length}.</p>`}</details>`
      : state === "done" && !record && html`<p class="why">No facts were made of it.</p>`}
  </li>`;
}

const Sessions = ({ of, chosen }) => html`<label>Conversation
  <select value=${chosen ?? ""} onChange=${(event) => go(href("turns", { session: event.target.value }))}>
    <option value="">all of them</option>
    ${chosen && !of.some((one) => one.session === chosen) && html`<option value=${chosen}>${chosen}</option>`}
    ${of.map((one) => html`<option key=${one.session} value=${one.session}>${one.session} (${one.turns.toLocaleString("en")})</option>`)}
  </select>
</label>`;

/** The first page is live; older ones are asked for and stay. */
function Pages({ session }) {
  const given = { limit: PAGE, ...(session && { session }) };
  const first = useCall("turns_list", given, { live: true });
  const [older, keep] = useState({ turns: [], next: undefined });
  const [error, fail] = useState("");
  useEffect(() => keep({ turns: [], next: undefined }), [session]);
  return html`<${Answer} of=${first}>${(page) => {
    const known = new Set(page.turns.map((one) => one.turn.id));
    const turns = [...page.turns, ...older.turns.filter((one) => !known.has(one.turn.id))];
    const next = older.next === undefined ? page.next_cursor : older.next;
    const more = () =>
      call("turns_list", { ...given, cursor: next }).then(
        (found) => (fail(""), keep((old) => ({ turns: [...old.turns, ...found.turns], next: found.next_cursor ?? "" }))),
        (problem) => fail(problem.message),
      );
    if (!turns.length && !session) {
      return html`<${Empty} title="Nothing was said yet">
        <p>Tell it something, bring conversations that you have had elsewhere, or let your coding agent's hooks tell it:</p>
        <pre>${`pps remember ${entity} "I drink my coffee black."\npps import ${entity} conversations.json\npps hooks install --entity ${entity}`}</pre>
        <p class="faint">What is said shows here at once.</p><//>`;
    }
    return html`
      <p class="row"><${Sessions} of=${page.sessions} chosen=${session} />
        <span class="faint" role="status">${counted(turns.length, "turn")} shown, newest first</span></p>
      ${!turns.length && html`<p class="faint">Nothing was said in this conversation.</p>`}
      <ol class="plain" aria-label="Turns">${turns.map((one) => html`<${Turn} key=${one.turn.id} of=${one} />`)}</ol>
      ${error && html`<${Alert}>${error}<//>`}
      ${next && html`<p><button class="plain" onClick=${more}>Show older ones</button></p>`}`;
  }}<//>`;
}

const View = ({ query }) => html`<h1 tabindex="-1">Turns</h1><${Pages} session=${query.session} />`;

export default View;
