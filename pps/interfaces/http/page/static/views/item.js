// An item by its id: a fact with what supports it and how to correct or forget it; a node; a turn with its versions.
import { call, href, html, useCall, useState } from "../core.js";
import { Alert, Answer, Empty, FactLine, Facts, Forget, Id, Item, Span, SupersededBy, TurnCard, Typed, Versions, When, hasEnded, told, useSchema } from "../parts.js";
import { Said } from "../markdown.js";
import { Share } from "../share.js";

function Correct({ fact, done, onDone }) {
  const [error, fail] = useState("");
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const text = given.get("text").trim();
    const since = given.get("since");
    const right = {
      subject: fact.subject_name, relation: fact.relation, object: given.get("object").trim(), text, invalidates: [fact.id],
      ...(since && { valid_at: since }),
    };
    const said = { content: text, facts: [right], session: "page", source: "page", extraction: "none" };
    call("remember", said).then(onDone, (problem) => fail(problem.message));
  };
  if (done) {
    return html`<p class="card" role="status">${done.skipped?.length ? done.skipped.map((one) => `${one.what}: ${one.why}`).join("; ") : "The right one is kept; this one has ended."}
      ${" "}<${Item} id=${done.turn_id}>What was said<//></p>`;
  }
  return html`<section aria-labelledby="correct">
    <h2 id="correct">Correct</h2>
    <p class="faint">Say what is right. This fact ends when that begins, and stays to be read as what was believed.</p>
    ${error && html`<${Alert}>${error}<//>`}
    <form class="form" onSubmit=${submit}>
      <label>In a sentence <textarea dir="auto" name="text" required maxlength="4000" defaultValue=${fact.text}></textarea></label>
      <div class="row">
        <label><bdi>${fact.subject_name}</bdi> ${fact.relation} <${Typed} name="object" required maxlength="200" value=${fact.object_name} /></label>
        <label>since <input name="since" type="date" /></label>
        <button>Keep that</button>
      </div>
    </form>
  </section>`;
}

function Fact({ of: bare }) {
  const [corrected, correct] = useState(null);
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
    ${ends.data && (corrected || !hasEnded(fact)) && html`<${Correct} fact=${fact} done=${corrected} onDone=${correct} />`}
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
    <section class="card"><${Facts} about=${of.id} limit=${200} heading="h2" /></section>
    <${Forget} key=${of.id} id=${of.id} what="node" />
  `;
}

function Turn({ of, again }) {
  const [error, fail] = useState("");
  const [plain, write] = useState(false);
  const submit = (event) => {
    event.preventDefault();
    const content = new FormData(event.target).get("content");
    call("update", { id: of.id, content }).then(again, (problem) => fail(problem.message));
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
