// Sharing something of one's own with the squad: what the others will read is shown first.
import { call, html, useCall, useState } from "./core.js";
import { Alert, Answer, isMember, told, useSchema } from "./parts.js";

const percent = (share) => `${Math.round(100 * share)} %`;

/** Sharing something of one's own: what the others will read is shown first. */
export function Share({ what, given, id }) {
  const schema = useSchema();
  const [open, turn] = useState(false);
  const [sure, change] = useState(0.8);
  const [done, tell] = useState(null);
  const [error, fail] = useState("");
  const squad = useCall("squad_pool", open ? { limit: 1 } : null);
  if (!isMember(schema)) return null;
  const share = async () => {
    try {
      const kept = id ? null : await call("memory_store", { ...given, type: "Belief", confidence: sure });
      tell(kept?.copy || (await call("memory_share", { id: id || kept.id })));
    } catch (problem) {
      fail(problem.message);
    }
  };
  return html`<section aria-labelledby="share">
    <h2 id="share">Share</h2>
    ${error && html`<${Alert}>${error}<//>`}
    ${done
      ? html`<p class="card" role="status">${done.state === "shared" ? "All members can read it now" : "It waits for a reviewer"}: sure by ${percent(done.confidence)}${
          done.told?.length ? `; told: ${done.told.join(", ")}` : ""}. <a href="#/squad">The pool</a></p>`
      : !open
        ? html`<button class="plain" onClick=${() => turn(true)}>Show what the squad would read</button>`
        : html`<${Answer} of=${squad}>${({ squad: name, me, members }) => html`<div class="card">
            <h3>The members of ${name} would read this, under your name</h3>
            <p class="row"><span class="tag">${given.type || "Belief"}</span> <b class="said" dir="auto">${given.title || given.content}</b></p>
            ${given.title && given.content !== given.title && html`<p class="said" dir="auto">${given.content}</p>`}
            ${Object.entries(given.fields || {}).length > 0 && html`<dl class="times">${Object.entries(given.fields).map(([field, value]) => html`<div key=${field}><dt>${field.replaceAll("_", " ")}</dt><dd class="said" dir="auto">${told(value)}</dd></div>`)}</dl>`}
            <p class="faint">Readers: ${members.filter((one) => one.id !== me).map((one) => one.title).join(", ")}. The turns that it rests on stay here;
              of them the pool gets a digest, which tells nothing.</p>
            ${!id && html`<p><label>How sure it is <input type="range" min="0.05" max="0.99" step="0.01" value=${sure} onInput=${(event) => change(Number(event.target.value))} />
              <b>${percent(sure)}</b></label></p>`}
            <p class="row"><button onClick=${share}>Share this ${what}</button> <button class="plain" onClick=${() => turn(false)}>Keep it here</button></p>
          </div>`}<//>`}
  </section>`;
}
