// Letting two nodes be one: what would come of it is shown first, and it can be undone.
import { acts, call, html, useCall, useState } from "./core.js";
import { Alert, Answer, Item, counted } from "./parts.js";

/** What a merge of two nodes would do, with the way to do it. `pair` is `{keep, keep_name, drop, drop_name, why}`. */
export function MergePlan({ pair, onMerged, onLeave }) {
  const [isTurned, turn] = useState(false);
  const [error, fail] = useState("");
  const [keep, drop] = isTurned ? [pair.drop, pair.keep] : [pair.keep, pair.drop];
  const plan = useCall("merge_nodes", { keep, drop, dry_run: true });
  const merge = () => call("merge_nodes", { keep, drop, dry_run: false }).then(
    (done) => {
      acts.tell({ title: `${done.name} is one now.`, item: done.keep, kind: "node", undo: { operation: "undo_merge", given: { id: done.id } } });
      onMerged(done);
    },
    (problem) => fail(problem.message),
  );
  return html`<div class="card" role="group" aria-label="What would come of it">
    ${error && html`<${Alert}>${error}<//>`}
    <${Answer} of=${plan}>${(of) => html`
      <p>It would be called <b><bdi>${of.name}</bdi></b>${of.aliases.length > 0 && html`, also <bdi>${of.aliases.join(", ")}</bdi>`}.
        ${" "}${counted(of.facts, "fact")} and ${counted(of.mentions, "turn")} go over to it. It can be undone.</p>
      <p class="row"><button onClick=${merge}>They are one</button>
        <button class="plain" onClick=${() => turn(!isTurned)}>Keep the other name</button>
        <button class="quiet" onClick=${onLeave}>Leave them as they are</button></p>`}<//>
    ${plan.error && html`<p><button class="quiet" onClick=${onLeave}>Leave them as they are</button></p>`}
  </div>`;
}

/** A pair that may be one thing, with the way to look at what would come of it. */
export function Pair({ pair, isOpen = false, onMerged }) {
  const [open, show] = useState(isOpen);
  return html`<li class="card">
    <p><${Item} id=${pair.keep}><b>${pair.keep_name}</b><//> <span class="faint"><bdi>${pair.keep_kind}</bdi></span>
      ${" "}and <${Item} id=${pair.drop}><b>${pair.drop_name}</b><//> <span class="faint"><bdi>${pair.drop_kind}</bdi></span></p>
    <p class="why">${pair.why}</p>
    ${open
      ? html`<${MergePlan} pair=${pair} onMerged=${onMerged} onLeave=${() => show(false)} />`
      : html`<p><button class="plain" aria-label=${`Show what would come of it: ${pair.keep_name} and ${pair.drop_name}`} onClick=${() => show(true)}>Show what would come of it</button></p>`}
  </li>`;
}
