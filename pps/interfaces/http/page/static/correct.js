// Correcting a fact where it stands: what is wrong with it, what is right, and what still says the old thing.
import { acts, call, html, useCall, useEffect, useState } from "./core.js";
import { Alert, Item, ShownItems, Typed, hasEnded } from "./parts.js";

/** What is wrong with a fact, and what is right; only what was changed is sent. */
export function Correct({ fact, begins = "never_true", heading = true, onDone }) {
  const [problem, fail] = useState(null);
  const isOver = hasEnded(fact);
  const [verdict, choose] = useState(isOver ? "never_true" : begins);
  const was = { subject: fact.subject_name, relation: fact.relation, object: fact.object_name, text: fact.text };
  const submit = (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(event.target)].map(([name, value]) => [name, value.trim()]));
    const right = Object.fromEntries(Object.keys(was).filter((name) => given[name] !== was[name]).map((name) => [name, given[name]]));
    call("fact_correct", { id: fact.id, verdict, ...right, ...(given.since && { since: given.since }) }).then(
      (done) => {
        acts.tell({ title: "Corrected.", undo: { operation: "undo", given: { id: done.turn_id } } });
        onDone(done);
      },
      (refused) => fail(refused),
    );
  };
  const field = (name, label, more = {}) => html`<label>${label} <${Typed} name=${name} required maxlength="500" value=${was[name]} dir="auto"
    aria-invalid=${problem?.field === name ? "true" : null} ...${more} /></label>`;
  return html`<section aria-label="Correct">
    ${heading && html`<h2 id="correct">Correct</h2>`}
    <p class="faint">What is corrected stays to be read as what was believed, and the correction can be undone.</p>
    ${problem && html`<${Alert}>${problem.field ? `${problem.field}: ` : ""}${problem.message}<//>`}
    <form class="form card" onSubmit=${submit}>
      <fieldset>
        <legend>What is wrong with it?</legend>
        <label class="check"><input type="radio" name="verdict" value="never_true" checked=${verdict === "never_true"} onChange=${() => choose("never_true")} /> It was never true: it held at no time</label>
        <label class="check"><input type="radio" name="verdict" value="no_longer_true" disabled=${isOver} checked=${verdict === "no_longer_true"} onChange=${() => choose("no_longer_true")} /> It is no longer true: it held, and has ended</label>
      </fieldset>
      <fieldset>
        <legend>What is right instead</legend>
        <p class="faint">Leave this as it is where nothing took its place. The sentence follows a changed name by itself.</p>
        <div class="row">${field("subject", "Subject")} ${field("relation", "Relation")} ${field("object", "Object")}</div>
        <label>In a sentence <textarea dir="auto" name="text" required maxlength="4000" defaultValue=${fact.text}
          aria-invalid=${problem?.field === "text" ? "true" : null}></textarea></label>
      </fieldset>
      <p class="row"><label>${verdict === "never_true" ? "Right since" : "Ended on"} <input name="since" type="date" aria-invalid=${problem?.field === "since" ? "true" : null} /></label>
        <button>Keep that</button></p>
    </form>
  </section>`;
}

/** What still says the old thing after a correction, and what can be done about it. */
export function StillSaid({ done }) {
  const [handled, handle] = useState({});
  const [error, fail] = useState("");
  useEffect(() => acts.hear(({ undone }) => undone && handle((old) => Object.fromEntries(Object.entries(old).filter(([, id]) => id !== undone)))), []);
  const right = useCall("get", done.right ? { ids: [done.right] } : null);
  const rightText = right.data?.items[0].text;
  const turns = done.mentions.items.filter((one) => one.kind === "turn" && !handled[one.id]);
  const others = done.mentions.items.filter((one) => one.kind !== "turn");
  const act = (turn, operation, given, title, undoOf) => call(operation, given).then(
    (data) => {
      fail("");
      handle((old) => ({ ...old, [turn.id]: undoOf(data) }));
      acts.tell({ title, undo: { operation: "undo", given: { id: undoOf(data) } } });
    },
    (problem) => fail(problem.message),
  );
  const mark = (turn) => act(turn, "append", { id: turn.id, content: rightText ? `[Outdated. Right is: ${rightText}]` : "[Outdated: this was corrected.]" },
    "Marked as outdated.", (data) => `${turn.id}@${data.version}`);
  const forget = (turn) => act(turn, "forget", { ids: [turn.id], dry_run: false, soft: true, reason: "Says what was corrected." },
    "Forgotten: 1 turn.", (data) => data.restorable_as);
  return html`<section class="card" aria-label="Corrected">
    <h2 id="still">Corrected</h2>
    ${done.skipped?.length > 0 && html`<${Alert}>${done.skipped.map((one) => `${one.what}: ${one.why}`).join("; ")}<//>`}
    <p>${rightText ? html`Right is: <${Item} id=${done.right}>${rightText}<//>` : !done.right && "Nothing took its place."} ${" "}<${Item} id=${done.turn_id}>The correction<//></p>
    ${(error || right.error) && html`<${Alert}>${error || right.error.message}<//>`}
    ${turns.length + others.length === 0 && html`<p class="faint">Nothing ${Object.keys(handled).length ? "more " : ""}says the old thing.</p>`}
    ${turns.length > 0 && html`<h3>Turns that still say the old thing</h3>
      <p class="faint">Those that support the fact are found as superseded. Any of them can be marked or forgotten.</p>
      <ul class="lines">${turns.map((one) => html`<li key=${one.id}><${Item} id=${one.id}>${one.text}<//>
        <span class="row"><button class="plain" disabled=${Boolean(done.right) && !rightText} aria-label=${`Mark as outdated: ${one.text}`} onClick=${() => mark(one)}>Mark as outdated</button>
        <button class="plain" aria-label=${`Forget: ${one.text}`} onClick=${() => forget(one)}>Forget</button></span></li>`)}</ul>`}
    ${others.length > 0 && html`<h3>Also said elsewhere</h3><${ShownItems} of=${others} total=${others.length} />`}
    ${done.mentions.turns + done.mentions.facts + done.mentions.nodes + done.mentions.anchors > done.mentions.items.length && html`<p class="faint">These are the first of each kind.</p>`}
  </section>`;
}
