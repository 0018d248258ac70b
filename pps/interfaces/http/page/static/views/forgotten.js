// Forgotten: what was forgotten so that it can be restored, for how long still, and having it back.
import { call, entity, html, useCall, useState } from "../core.js";
import { Alert, Answer, Empty, Mentions, When, counted } from "../parts.js";

const DAY = 86_400_000;

function Bin({ of, onRestore }) {
  const days = Math.max(0, Math.ceil((Date.parse(of.until) - Date.now()) / DAY));
  const counts = [[of.turns, "turn"], [of.facts, "fact"], [of.nodes, "node"], [of.anchors, "anchor"]].filter(([n]) => n);
  return html`<li class="card">
    ${of.what.map((one, at) => html`<p key=${at} class="said" dir="auto">${one}</p>`)}
    <p class="faint">${counts.map(([n, what]) => counted(n, what)).join(", ")}. Forgotten <${When} at=${of.at} />${of.by && ` by ${of.by}`}${of.why && `: ${of.why}`}</p>
    <p class="row"><button class="plain" aria-label=${`Restore ${of.what[0] || "it"}`} onClick=${() => onRestore(of)}>Restore</button>
      <span class="faint">${counted(days, "day")} left, until <${When} at=${of.until} /></span></p>
    ${of.nodes > 0 && html`<${Still} id=${of.id} />`}
  </li>`;
}

/** What still mentions something that was forgotten; it is looked for when that is asked. */
function Still({ id }) {
  const [asked, ask] = useState(false);
  const of = useCall("forgotten", asked ? { id } : null);
  return html`<details onToggle=${(event) => ask(event.target.open)}><summary>What still mentions it</summary>
    <${Answer} of=${of}>${({ forgotten: [one] }) => one.mentions ? html`<${Mentions} of=${one.mentions} />` : html`<p class="faint">It has no name to look for.</p>`}<//>
  </details>`;
}

function View() {
  const of = useCall("forgotten", {}, { live: true });
  const [back, tell] = useState(null);
  const [error, fail] = useState("");
  const restore = (one) => {
    fail("");
    call("restore_forgotten", { id: one.id }).then(() => (tell(one), of.again()), (problem) => fail(problem.message));
  };
  return html`
    <h1 tabindex="-1">Forgotten</h1>
    ${error && html`<${Alert}>${error}<//>`}
    ${back && html`<p class="card" role="status">It is back, as it was: ${back.what.join(", ")}</p>`}
    <${Answer} of=${of}>${({ forgotten }) => forgotten.length
      ? html`<p class="faint">${entity} is shown none of this. What other turns, facts and anchors say of the same stays, and can be found. After its last day an entry is erased.</p>
          <ul class="plain">${forgotten.map((one) => html`<${Bin} key=${one.id} of=${one} onRestore=${restore} />`)}</ul>`
      : html`<${Empty} title="Nothing to restore"><p>What is forgotten on the page of a fact, a node, a turn or an anchor can be had
          back from here for a while. What was forgotten for good is nowhere any more.</p><//>`}<//>
  `;
}

export default View;
