// Merges: which nodes may be one and the same, and which were made one.
import { acts, call, html, useCall, useState } from "../core.js";
import { Alert, Answer, Empty, Item, When } from "../parts.js";
import { Pair } from "../merge.js";

const MOST = 200;

function Done({ of, onUndo }) {
  return html`<li class="row"><${Item} id=${of.keep}>${of.keep_name}<//> <span class="faint">took in <bdi>${of.drop_name}</bdi>, <${When} at=${of.at} /></span>
    ${of.state === "applied"
      ? html`<button class="plain" aria-label=${`Undo: ${of.keep_name} took in ${of.drop_name}`} onClick=${() => onUndo(of)}>Undo</button>`
      : html`<span class="tag">${of.state}</span>`}</li>`;
}

function View({ query }) {
  const pairs = useCall("find_duplicates", { limit: MOST }, { live: true });
  const [error, fail] = useState("");
  const undo = (merge) => call("undo_merge", { id: merge.id }).then(
    () => (fail(""), acts.tell({ title: `${merge.keep_name} and ${merge.drop_name} are two again.` }), pairs.again()),
    (problem) => fail(problem.message),
  );
  const isChosen = (pair) => pair.keep === query.keep && pair.drop === query.drop;
  return html`<p class="kind"><a href="#/names">People and places</a></p><h1 tabindex="-1">One and the same?</h1>
    <p class="faint">These have the same name, or nearly. Where they are one, their names, facts and turns come together.</p>
    ${error && html`<${Alert}>${error}<//>`}
    <${Answer} of=${pairs}>${({ duplicates, merges }) => html`
      ${duplicates.length
        ? html`<ul class="plain" aria-label="Pairs">${[...duplicates].sort((a, b) => isChosen(b) - isChosen(a)).map((pair) => html`<${Pair} key=${`${pair.keep} ${pair.drop}`}
            pair=${pair} isOpen=${isChosen(pair)} onMerged=${pairs.again} />`)}</ul>`
        : html`<${Empty} title="No two names look like one"><p>Where two are one all the same, open one of them: there you can say so.</p><//>`}
      ${merges.length > 0 && html`<h2>Made one</h2><ul class="lines card">${merges.map((merge) => html`<${Done} key=${merge.id} of=${merge} onUndo=${undo} />`)}</ul>`}`}<//>`;
}

export default View;
