// Changes: what was corrected, forgotten and edited by hand, the latest first, each with the way to undo it.
import { acts, call, href, html, useCall, useEffect, useState } from "../core.js";
import { Alert, Answer, Empty, When } from "../parts.js";

const PAGE = 50;
const KINDS = { correction: "Correction", forgetting: "Forgotten", text: "Words changed", anchor: "Anchor edited" };

function Edit({ of, onUndo, busy }) {
  const address = of.kind === "anchor" ? href("anchors", {}, of.item) : href("item", {}, of.item);
  return html`<li class="card">
    <p class="faint"><b>${KINDS[of.kind]}</b> · <${When} at=${of.at} time />${of.actor && html` · <bdi>${of.actor}</bdi>`}${of.until && html` · can be undone until <${When} at=${of.until} />`}</p>
    <p class="said" dir="auto">${of.item ? html`<a class="item" href=${address}>${of.text}</a>` : of.text}</p>
    ${of.why_not
      ? html`<p class="faint">Cannot be undone by itself: ${of.why_not}.</p>`
      : html`<p><button class="plain" disabled=${busy} aria-label=${`Undo: ${KINDS[of.kind]}: ${of.text}`} onClick=${() => onUndo(of)}>Undo</button></p>`}
  </li>`;
}

function View() {
  const first = useCall("edits", { limit: PAGE }, { live: true });
  const [older, keep] = useState({ edits: [], next: undefined });
  const [busy, wait] = useState(false);
  const [error, fail] = useState("");
  useEffect(() => keep({ edits: [], next: undefined }), [first.data]);
  const undo = (edit) => {
    wait(true);
    call("undo", { id: edit.id }).then(
      (done) => {
        fail("");
        acts.tell({
          title: `Undone: ${KINDS[done.kind]}.`, undone: done.id, item: done.item, kind: done.kind,
          undo: done.redo && { operation: "undo", given: { id: done.redo }, name: "Do it again" },
        });
        first.again();
      },
      (problem) => fail(problem.message),
    ).finally(() => wait(false));
  };
  const more = (cursor) => call("edits", { limit: PAGE, cursor }).then(
    (page) => keep((old) => ({ edits: [...old.edits, ...page.edits], next: page.next_cursor ?? "" })),
    (problem) => fail(problem.message),
  );
  return html`
    <h1 tabindex="-1">Changes</h1>
    <p class="faint">What was corrected, forgotten and edited, the latest first. What changed in the world stands under <a href="#/time">Time</a>.</p>
    ${error && html`<${Alert}>${error}<//>`}
    <${Answer} of=${first}>${(page) => {
      const edits = [...page.edits, ...older.edits];
      const next = older.next === undefined ? page.next_cursor : older.next;
      if (!edits.length) {
        return html`<${Empty} title="Nothing was changed by hand"><p>A fact is corrected on its page, a turn on its own, an anchor where it stands: all of that shows here, to be undone.</p><//>`;
      }
      return html`<ul class="plain" aria-label="Changes">${edits.map((edit) => html`<${Edit} key=${edit.id} of=${edit} busy=${busy} onUndo=${undo} />`)}</ul>
        ${next && html`<p><button class="plain" onClick=${() => more(next)}>Show older ones</button></p>`}`;
    }}<//>
  `;
}

export default View;
