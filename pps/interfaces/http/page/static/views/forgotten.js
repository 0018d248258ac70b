// Forgotten: what was forgotten so that it can be restored, for how long still, and having it back.
import { call, entity, html, useCall, useState } from "../core.js";
import { Alert, Answer, Empty, Id, When, counted } from "../parts.js";

const DAY = 86_400_000;

function Bin({ of, onRestore }) {
  const days = Math.max(0, Math.ceil((Date.parse(of.until) - Date.now()) / DAY));
  const counts = [[of.turns, "turn"], [of.facts, "fact"], [of.nodes, "node"], [of.anchors, "anchor"]].filter(([n]) => n);
  return html`<li class="card">
    ${of.what.map((one, at) => html`<p key=${at} class="said" dir="auto">${one}</p>`)}
    <p class="faint">${counts.map(([n, what]) => counted(n, what)).join(", ")}. Forgotten <${When} at=${of.at} />${of.by && ` by ${of.by}`}${of.why && `: ${of.why}`}</p>
    <p class="row"><button class="plain" aria-label=${`Restore ${of.what[0] || "it"}`} onClick=${() => onRestore(of)}>Restore</button>
      <span class="faint">${counted(days, "day")} left, until <${When} at=${of.until} /></span></p>
  </li>`;
}

function View() {
  const of = useCall("forgotten", {}, { live: true });
  const [back, tell] = useState(null);
  const [error, fail] = useState("");
  const restore = (one) => {
    fail("");
    call("restore_forgotten", { id: one.id }).then((found) => (tell(found), of.again()), (problem) => fail(problem.message));
  };
  const ids = back ? [...back.turns, ...back.nodes, ...back.facts, ...back.anchors].slice(0, 8) : [];
  return html`
    <h1 tabindex="-1">Forgotten</h1>
    ${error && html`<${Alert}>${error}<//>`}
    ${back && html`<p class="card" role="status">It is back, as it was: ${ids.map((one) => html`<${Id} key=${one} of=${one} /> `)}</p>`}
    <${Answer} of=${of}>${({ forgotten }) => forgotten.length
      ? html`<p class="faint">${entity} is not shown any of this, and finds none of it. After its last day it is erased.</p>
          <ul class="plain">${forgotten.map((one) => html`<${Bin} key=${one.id} of=${one} onRestore=${restore} />`)}</ul>`
      : html`<${Empty} title="Nothing to restore"><p>What is forgotten on the page of a fact, a node, a turn or an anchor can be had
          back from here for a while. What was forgotten for good is nowhere any more.</p><//>`}<//>
  `;
}

export default View;
