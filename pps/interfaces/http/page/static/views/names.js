// People and places: who and what is known, by kind and by name.
import { entity, go, href, html } from "../core.js";
import { Answer, Empty, Item, More, Typed, counted, usePages } from "../parts.js";

const PAGE = 100;

function Kinds({ of, chosen, words }) {
  const total = Object.values(of).reduce((sum, count) => sum + count, 0);
  const kinds = Object.entries(of).sort(([, a], [, b]) => b - a);
  return html`<p class="row" role="group" aria-label="Kinds">
    ${[["", total], ...kinds.filter(([kind]) => kind)].map(([kind, count]) => html`<a key=${kind} class="chip"
      href=${href("names", { kind, words })} aria-current=${kind === chosen ? "true" : null}><bdi>${kind || "All"}</bdi> ${count.toLocaleString("en")}</a>`)}</p>`;
}

const Row = ({ of }) => html`<tr>
  <th scope="row"><${Item} id=${of.id}>${of.name}<//></th>
  <td dir="auto">${of.kind}</td><td dir="auto">${of.summary}</td><td>${of.facts.toLocaleString("en")}</td>
</tr>`;

function Names({ kind, words }) {
  const of = usePages("nodes_list", { limit: PAGE, ...(kind && { kind }), ...(words && { query: words }) });
  const nodes = of.pages.flatMap((page) => page.nodes);
  return html`<${Answer} of=${of.first}>${({ kinds }) => {
    if (!nodes.length && !kind && !words) {
      return html`<${Empty} title="Nobody and nothing is known yet"><p>People, places and things come from facts:</p>
        <pre>${`pps extract ${entity}   # reads what was said for facts, and says first what it takes`}</pre><//>`;
    }
    return html`<${Kinds} of=${kinds} chosen=${kind} words=${words} />
      <p class="faint" role="status">${counted(nodes.length, "name")} shown${of.more ? ", and more" : ""}, by name</p>
      ${nodes.length
        ? html`<div class="wide" tabindex="0" role="region" aria-label="Names"><table class="texts">
            <thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">What it is</th><th scope="col">Facts</th></tr></thead>
            <tbody>${nodes.map((node) => html`<${Row} key=${node.id} of=${node} />`)}</tbody></table></div>`
        : html`<p class="faint">Nobody and nothing of that kind is called so.</p>`}
      <${More} of=${of} what="names" />`;
  }}<//>`;
}

function View({ query }) {
  const { kind = "", words = "" } = query;
  const submit = (event) => {
    event.preventDefault();
    go(href("names", { kind, words: new FormData(event.target).get("words").trim() }));
  };
  return html`<h1 tabindex="-1">People and places</h1>
    <form class="asking" role="search" onSubmit=${submit}>
      <label for="words" class="unseen">A name, or a part of one</label>
      <${Typed} id="words" name="words" type="search" value=${words} maxlength="200" placeholder="A name, or a part of one" autocomplete="off" />
      <button>Search</button>
      ${words && html`<a href=${href("names", { kind })}>Show all</a>`}
    </form>
    <${Names} kind=${kind} words=${words} />`;
}

export default View;
