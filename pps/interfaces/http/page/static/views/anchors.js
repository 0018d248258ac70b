// Anchors: the short texts that stay findable as they are: read, written, edited; a change by another is seen first.
import { acts, call, entity, go, href, html, useCall, useState } from "../core.js";
import { Alert, Answer, Diff, Empty, Forget, Typed, When, counted } from "../parts.js";
import { Said } from "../markdown.js";

const NEW = "+"; // no slug is that

function Form({ of, onSaved, onLeave }) {
  const [base, rest] = useState(of); // what the form began with: it does not change under who writes
  const [other, conflict] = useState(null);
  const [error, fail] = useState("");
  const save = (given, expected) =>
    call("anchor_save", { ...given, ...(base.slug && { slug: base.slug, expected }) }).then(onSaved, async (problem) => {
      if (problem.status !== 409) return fail(problem.message);
      conflict({ stands: await call("anchor_get", { slug: base.slug }), given });
    });
  const submit = (event) => {
    event.preventDefault();
    fail("");
    const given = Object.fromEntries(new FormData(event.target));
    save({ ...given, tags: given.tags.split(/[\s,]+/).filter(Boolean) }, base.digest);
  };
  return html`
    ${error && html`<${Alert}>${error}<//>`}
    ${other && html`<section class="card" role="alert" aria-label="Changed meanwhile">
      <h2>It was changed meanwhile</h2>
      <p class="faint">Struck is what stands now; underlined is what you wrote.</p>
      <${Diff} before=${other.stands.text} after=${other.given.text} />
      <p class="row"><button onClick=${() => (conflict(null), save(other.given, other.stands.digest))}>Keep mine</button>
        <button class="plain" onClick=${() => (rest(other.stands), conflict(null))}>Take what stands</button></p>
    </section>`}
    <form class="form" key=${base.digest} onSubmit=${submit}>
      <label>Title <${Typed} name="title" required maxlength="200" value=${base.title} /></label>
      <label>Tags <${Typed} name="tags" value=${base.tags.join(" ")} placeholder="kitchen coffee" /></label>
      <label>Text, in Markdown <textarea dir="auto" name="text" required maxlength="1000000" rows="16" defaultValue=${base.text}></textarea></label>
      <p class="row"><button>${base.slug ? "Save" : "Keep it"}</button>${onLeave && html`<button class="plain" type="button" onClick=${onLeave}>Leave it as it is</button>`}</p>
    </form>`;
}

/** What an anchor was before, each with what changed after it and the way to have it back. */
function Past({ slug, onReverted }) {
  const of = useCall("anchor_history", { slug });
  const [error, fail] = useState("");
  const revert = (version) => call("anchor_revert", { slug, version }).then(onReverted, (problem) => fail(problem.message));
  return html`<${Answer} of=${of}>${({ versions }) => versions.length > 1 && html`<details><summary><h2>What it was</h2></summary>
    ${error && html`<${Alert}>${error}<//>`}
    <ul class="plain">${versions.slice(1).map((one, at) => html`<li key=${one.number} class="card">
      <p class="faint">Version ${one.number} · <${When} at=${one.at} time />${one.actor && html` · <bdi>${one.actor}</bdi>`}</p>
      ${one.title !== versions[at].title && html`<p dir="auto"><b>${one.title}</b></p>`}
      <${Diff} before=${one.text} after=${versions[at].text} />
      <p><button class="plain" onClick=${() => revert(one.number)}>Have version ${one.number} back</button></p>
    </li>`)}</ul></details>`}<//>`;
}

function One({ slug }) {
  const of = useCall("anchor_get", { slug }, { live: true });
  const [edits, edit] = useState(false);
  const [plain, write] = useState(false);
  const saved = async () => {
    of.again();
    edit(false);
    const { versions } = await call("anchor_history", { slug });
    const [{ number }] = versions;
    acts.tell({ title: "The anchor is changed.", ...(number > 1 && { undo: { operation: "undo", given: { id: `${slug}@${number}` } } }) });
  };
  return html`
    <p class="kind"><a href="#/anchors">Anchors</a></p>
    <${Answer} of=${of}>${(one) => html`
      <h1 tabindex="-1" dir="auto">${one.title}</h1>
      <p class="row faint"><bdi>${one.slug}</bdi> · changed ${" "}<${When} at=${one.modified_at} /> ${one.tags.map((tag) => html`<span key=${tag} class="tag" dir="auto">#${tag}</span>`)}</p>
      ${edits
        ? html`<${Form} of=${one} onSaved=${() => saved()} onLeave=${() => edit(false)} />`
        : html`<div class="card"><${Said} text=${one.text} plain=${plain} /></div>
            <p class="row"><button class="quiet" aria-pressed=${plain} onClick=${() => write(!plain)}>As it was written</button></p>
            <button class="plain" onClick=${() => edit(true)}>Edit</button>
            <${Past} key=${one.digest} slug=${one.slug} onReverted=${() => saved()} />
            <${Forget} id=${one.slug} what="anchor" />`}`}<//>
    ${of.error && !of.data && html`<h1 tabindex="-1">Not here</h1>`}
  `;
}

function List() {
  const of = useCall("anchor_list", {}, { live: true });
  return html`
    <h1 tabindex="-1">Anchors</h1>
    <p class="row"><a class="button" href=${href("anchors", {}, NEW)}>Write one</a>
      <span class="faint">Short texts that stay as they are, word for word: a rule, a recipe, a moment.</span></p>
    <${Answer} of=${of}>${({ anchors }) => anchors.length
      ? html`<div class="wide" tabindex="0" role="region" aria-label="Anchors"><table class="texts">
          <thead><tr><th scope="col">Title</th><th scope="col">Tags</th><th scope="col">Characters</th><th scope="col">Changed</th></tr></thead>
          <tbody>${anchors.map((one) => html`<tr key=${one.slug}><th scope="row"><a dir="auto" href=${href("anchors", {}, one.slug)}>${one.title}</a></th>
            <td dir="auto">${one.tags.map((tag) => `#${tag}`).join(" ")}</td><td>${one.characters.toLocaleString("en")}</td><td><${When} at=${one.modified_at} /></td></tr>`)}</tbody>
        </table></div>
        <p class="faint">${counted(anchors.length, "anchor")}, each a Markdown file in ${entity}'s folder.</p>`
      : html`<${Empty} title="No anchors yet"><p>Write one here, or take in a folder of Markdown files:</p>
          <pre>${`pps anchors import ${entity} ~/notes`}</pre><//>`}<//>
  `;
}

function View({ parts: [slug = ""] }) {
  if (!slug) return html`<${List} />`;
  if (slug !== NEW) return html`<${One} key=${slug} slug=${slug} />`;
  return html`<p class="kind"><a href="#/anchors">Anchors</a></p><h1 tabindex="-1">A new anchor</h1>
    <${Form} of=${{ slug: "", title: "", text: "", tags: [], digest: "" }} onSaved=${(one) => go(href("anchors", {}, one.slug))} />`;
}

export default View;
