// An item by its id: a fact with what supports it and how to correct or forget it; a profile; a turn with its versions.
import { acts, call, href, html, useCall, useEffect, useState } from "../core.js";
import { Alert, Answer, Empty, FactLine, Forget, Item, Span, SupersededBy, TurnCard, Versions, When, wasNeverTrue } from "../parts.js";
import { Neighbours } from "../conversation.js";
import { Correct, StillSaid } from "../correct.js";
import { Profile } from "../profile.js";
import { Share } from "../share.js";

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
    <p class="row"><a href=${href("graph", { node: fact.subject })}>In the graph</a> <a href=${href("time", { about: fact.subject })}>In time</a></p>
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
        ? html`<${Profile} key=${item.id} of=${item} />`
        : html`<${Turn} key=${item.id} of=${item} again=${of.again} />`}<//>`;
}

export default View;
