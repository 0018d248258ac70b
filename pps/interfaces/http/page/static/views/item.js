// An item by its id: a fact with what supports it and how to correct or forget it; a node; a turn with its versions.
import { acts, call, href, html, useCall, useEffect, useState } from "../core.js";
import { Alert, Answer, Empty, FactLine, Facts, Forget, Id, Item, Neighbours, ShownItems, Span, SupersededBy, TurnCard, Typed, Versions, When, hasEnded, told, useSchema, wasNeverTrue } from "../parts.js";
import { Said } from "../markdown.js";
import { Share } from "../share.js";

/** What is wrong with a fact, and what is right; only what was changed is sent. */
function Correct({ fact, onDone }) {
  const [problem, fail] = useState(null);
  const isOver = hasEnded(fact);
  const [verdict, choose] = useState("never_true");
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
  return html`<section aria-labelledby="correct">
    <h2 id="correct">Correct</h2>
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
function StillSaid({ done }) {
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
  return html`<section class="card" aria-labelledby="still">
    <h2 id="still">Corrected</h2>
    ${done.skipped?.length > 0 && html`<${Alert}>${done.skipped.map((one) => `${one.what}: ${one.why}`).join("; ")}<//>`}
    <p>${rightText ? html`Right is: <${Item} id=${done.right}>${rightText}<//>` : "Nothing took its place."} ${" "}<${Item} id=${done.turn_id}>The correction<//></p>
    ${error && html`<${Alert}>${error}<//>`}
    ${turns.length + others.length === 0 && html`<p class="faint">Nothing ${Object.keys(handled).length ? "more " : ""}says the old thing.</p>`}
    ${turns.length > 0 && html`<h3>Turns that still say the old thing</h3>
      <p class="faint">Those that support the fact are found as superseded. Any of them can be marked or forgotten.</p>
      <ul class="lines">${turns.map((one) => html`<li key=${one.id}><${Item} id=${one.id}>${one.text}<//>
        <span class="row"><button class="plain" aria-label=${`Mark as outdated: ${one.text}`} onClick=${() => mark(one)}>Mark as outdated</button>
        <button class="plain" aria-label=${`Forget: ${one.text}`} onClick=${() => forget(one)}>Forget</button></span></li>`)}</ul>`}
    ${others.length > 0 && html`<h3>Also said elsewhere</h3><${ShownItems} of=${others} total=${others.length} />`}
    ${done.mentions.turns + done.mentions.facts + done.mentions.nodes + done.mentions.anchors > done.mentions.items.length && html`<p class="faint">These are the first of each kind.</p>`}
  </section>`;
}

function Fact({ of: bare }) {
  const [corrected, correct] = useState(null);
  useEffect(() => acts.hear((act) => act.undone && act.undone === corrected?.turn_id && correct(null)), [corrected]);
  const ends = useCall("get", { ids: [bare.subject, bare.object] });
  const turns = useCall("get", bare.episodes.length ? { ids: bare.episodes.slice(0, 100) } : null);
  const others = useCall("timeline", { id: bare.subject, relation: bare.relation, limit: 50 }, { live: true });
  const name = (id) => ends.data?.items.find((one) => one.id === id)?.name || "";
  const fact = { ...bare, subject_name: name(bare.subject), object_name: name(bare.object) };
  const before = (others.data?.facts || []).filter((one) => one.id !== fact.id);
  return html`
    <p class="kind">Fact</p>
    <h1 tabindex="-1" dir="auto">${fact.text || `${fact.subject_name} ${fact.relation} ${fact.object_name}`}</h1>
    <p><${Item} id=${fact.subject}>${fact.subject_name || "…"}<//> <code>${fact.relation}</code> <${Item} id=${fact.object}>${fact.object_name || "…"}<//></p>
    <${SupersededBy} of=${bare} />
    <dl class="times">
      <div><dt>Holds</dt><dd><${Span} of=${fact} /></dd></div>
      <div><dt>Known since</dt><dd><${When} at=${fact.created_at} /></dd></div>
      ${fact.expired_at && html`<div><dt>Not believed since</dt><dd><${When} at=${fact.expired_at} /></dd></div>`}
    </dl>
    <h2>What supports it</h2>
    ${!bare.episodes.length && html`<p class="faint">No turn: it was given as it is.</p>`}
    <${Answer} of=${turns}>${({ items }) => items.map((one) => html`<${TurnCard} key=${one.id} of=${one} />`)}<//>
    ${before.length > 0 && html`<h2>Said of the same over time</h2><ul class="lines card">${before.map((one) => html`<${FactLine} key=${one.id} of=${one} />`)}</ul>`}
    ${corrected && html`<${StillSaid} key=${corrected.turn_id} done=${corrected} />`}
    ${ends.data && fact.kind === "fact" && !corrected && !wasNeverTrue(fact) && html`<${Correct} key=${`${fact.id} ${fact.invalid_at}`} fact=${fact} onDone=${correct} />`}
    ${ends.data && fact.kind === "fact" && html`<${Share} key=${`${fact.id} shared`} what="fact" given=${{ content: fact.text, cites: [fact.id] }} />`}
    <${Forget} key=${`${fact.id} gone`} id=${fact.id} what="fact" />
  `;
}

function Node({ of }) {
  const schema = useSchema();
  const attributes = Object.entries(of.attributes || {}).filter(([, value]) => value !== null && value !== "");
  return html`
    <p class="kind" dir="auto">${of.kind}</p>
    <h1 tabindex="-1" dir="auto">${of.name}</h1>
    ${of.aliases?.length > 0 && html`<p class="faint">Also <bdi>${of.aliases.join(", ")}</bdi></p>`}
    ${(of.content || of.summary) && html`<${Said} text=${of.content || of.summary} />`}
    ${of.tags?.length > 0 && html`<p class="row">${of.tags.map((one) => html`<span key=${one} class="tag" dir="auto">#${one}</span>`)}</p>`}
    ${attributes.length > 0 && html`<dl class="times">${attributes.map(([name, value]) => html`<div key=${name}><dt>${name}</dt>
      <dd class="said" dir="auto">${told(value)}</dd></div>`)}</dl>`}
    <p class="row"><a href=${href("graph", { node: of.id })}>In the graph</a> <a href=${href("time", { about: of.id })}>In time</a>
      ${schema?.kinds[of.kind] && html`<a href=${href("records", {}, of.kind, of.id)}>As a record, to be changed</a>`}</p>
    <section class="card"><${Facts} about=${of.id} limit=${200} /></section>
    <${Forget} key=${of.id} id=${of.id} what="node" />
  `;
}

function Turn({ of, again }) {
  const [error, fail] = useState("");
  const [plain, write] = useState(false);
  const submit = (event) => {
    event.preventDefault();
    const content = new FormData(event.target).get("content");
    call("update", { id: of.id, content }).then(
      (done) => {
        acts.tell({ title: "The words are changed.", undo: { operation: "undo", given: { id: `${of.id}@${done.version}` } } });
        again();
      },
      (problem) => fail(problem.message),
    );
  };
  return html`
    <p class="kind">${of.type === "turn" ? "Turn" : "Text"}</p>
    <h1 tabindex="-1">${of.type === "turn" ? html`Said by <bdi>${of.actor || of.role}</bdi>` : of.name}</h1>
    <${TurnCard} of=${{ role: "", source: "", session: "", ...of }} plain=${plain} />
    <p class="row"><button class="quiet" aria-pressed=${plain} onClick=${() => write(!plain)}>As it was written</button></p>
    ${of.type === "turn" && html`
      <details><summary><h2>Correct its words</h2></summary>
        ${error && html`<${Alert}>${error}<//>`}
        <form class="form" key=${of.content} onSubmit=${submit}>
          <label>The whole text <textarea dir="auto" name="content" required rows="6" defaultValue=${of.content}></textarea></label>
          <p><button>Keep that</button></p>
        </form>
      </details>
      <${Neighbours} id=${of.id} />
      <${Versions} id=${of.id} />`}
    <${Forget} key=${of.id} id=${of.id} what="turn" />
  `;
}

function View({ parts: [id = ""] }) {
  const of = useCall("get", id ? { ids: [id] } : null, { live: true });
  if (!id || of.error?.status === 404 || of.error?.status === 400) {
    return html`<h1 tabindex="-1">Not here</h1><${Empty} title="There is nothing of that id">
      <p>It may have been forgotten. <a href="#/ask">Ask for it</a>.</p><//>`;
  }
  return html`${!of.data && html`<h1 tabindex="-1" class="unseen">Item</h1>`}<${Answer} of=${of}>${({ items: [item] }) =>
    item.type === "fact"
      ? html`<${Fact} key=${item.id} of=${item} />`
      : item.type === "node"
        ? html`<${Node} key=${item.id} of=${item} />`
        : html`<${Turn} key=${item.id} of=${item} again=${of.again} />`}<//>`;
}

export default View;
