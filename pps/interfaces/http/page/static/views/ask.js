// Ask: the exact pack that an agent would get, why each line is in it, and what just missed, channel by channel.
import { entity, go, href, html, useCall, useMemo, useState } from "../core.js";
import { Answer, Empty, Id, Typed, counted } from "../parts.js";
import { Reasons } from "../reasons.js";

const LIMIT = 12; // as ambient recall has it, so that the reasons are those of the pack
const NAMES = { nodes: "Nodes", facts: "Facts", episodes: "Said before", anchors: "Anchors", turns: "Turns" };
const MISSED = 8;

/**
 * Return a pack's lines by section: `{title, lines: [{text, id}], notes}`. A thin pack has lines without a section; the
 * frame's own sentences are the notes of the first one.
 */
export function read(text) {
  const sections = [{ title: "", lines: [], notes: [] }];
  for (const line of text.split("\n")) {
    const last = sections.at(-1);
    if (line.startsWith("## ")) sections.push({ title: line.slice(3), lines: [], notes: [] });
    else if (line.startsWith("- ")) last.lines.push({ text: line.slice(2), id: "" });
    else if (line.startsWith("  ") && last.lines.length) last.lines.at(-1).text += `\n${line.slice(2)}`;
    else if (line && !line.startsWith("<memory-") && !line.startsWith("</memory-")) sections[0].notes.push(line);
  }
  for (const line of sections.flatMap((section) => section.lines)) {
    const id = / \[([^\[\]\s,]+)(?:, [^\[\]]*)?\]$/.exec(line.text);
    if (id) [line.id, line.text] = [id[1], line.text.slice(0, id.index)];
  }
  return sections;
}

function Line({ line, why }) {
  const candidate = why?.[line.id];
  const words = html`<span class="said" dir="auto">${line.text}</span>`;
  if (!candidate) return html`<li>${words} ${line.id && html`<${Id} of=${line.id} />`}</li>`;
  return html`<li>
    <details>
      <summary>${words}</summary>
      <${Reasons} of=${candidate} weights=${candidate.weights} />
    </details>
  </li>`;
}

function Pack({ pack, why, budget }) {
  const [raw, show] = useState(false);
  const sections = useMemo(() => read(pack.text), [pack.text]);
  const filled = sections.filter((section) => section.lines.length);
  const left = Object.entries(pack.left_out).map(([name, n]) => `${n} ${name}`);
  return html`<section aria-labelledby="pack" class="card">
    <div class="row">
      <h2 id="pack">What the agent gets</h2>
      <meter min="0" max=${budget} value=${pack.tokens} aria-label="Tokens of the budget"></meter>
      <span class="faint">${counted(pack.tokens, "token")} of ${budget.toLocaleString("en")}, ${Math.round(pack.took_ms)} ms</span>
      <button class="quiet" aria-pressed=${raw} onClick=${() => show(!raw)}>As text</button>
    </div>
    ${raw
      ? html`<pre class="pack" tabindex="0" dir="auto">${pack.text}</pre>`
      : html`${filled.map((section) => html`<div key=${section.title}>
            ${section.title && html`<h3>${section.title}</h3>`}
            <ul class="lines">${section.lines.map((line, at) => html`<${Line} key=${at} line=${line} why=${why} />`)}</ul>
          </div>`)}
          ${!filled.length && html`<p class="faint">${pack.text ? "Nothing of this memory is near enough to that." : "Nothing: it has no room for a line."}</p>`}`}
    ${left.length > 0 && html`<p class="faint">Left out for room: ${left.join(", ")}.</p>`}
    ${pack.failed?.length > 0 && html`<p class="alert">Not to be had: ${pack.failed.join(", ")}.</p>`}
  </section>`;
}

function Candidate({ one, weights, shown }) {
  return html`<li class=${shown ? "in" : "out"}>
    <details>
      <summary>
        <span class="place">${one.place ?? "–"}</span><span class="said" dir="auto">${one.text}</span>
        ${shown && html`<span class="tag">in the pack</span>`}
      </summary>
      <${Reasons} of=${one} weights=${weights} />
    </details>
  </li>`;
}

function Channel({ name, of, ids }) {
  const placed = of.candidates.filter((one) => one.place !== null && one.place !== undefined);
  const missed = of.candidates.filter((one) => !placed.includes(one)).slice(0, MISSED);
  const row = (one) => html`<${Candidate} key=${one.id} one=${one} weights=${of.weights} shown=${ids.has(one.id)} />`;
  return html`<section class="card channel" aria-label=${NAMES[name] || name}>
    <div class="row"><h3>${NAMES[name] || name}</h3><span class="faint">${counted(of.found, "candidate")}</span></div>
    ${!placed.length && html`<p class="faint">Nothing.</p>`}
    <ol class="candidates">${placed.map(row)}</ol>
    ${missed.length > 0 && html`<h4>Just missed</h4><ol class="candidates">${missed.map(row)}</ol>`}
  </section>`;
}

function Found({ query, budget }) {
  const pack = useCall("ambient_recall", { context: query, budget_tokens: budget, mode: "preview" });
  const why = useCall("why", { query, profile: "ambient", limit: LIMIT });
  const lines = useMemo(() => {
    const by = {};
    for (const channel of Object.values(why.data?.channels || {})) {
      for (const one of channel.candidates) by[one.id] = by[one.id.slice(0, 8)] = { ...one, weights: channel.weights };
    }
    return by;
  }, [why.data]);
  const ids = useMemo(() => {
    const shown = new Set(read(pack.data?.text || "").flatMap((one) => one.lines.map((line) => line.id)));
    return { has: (id) => shown.has(id) || shown.has(id.slice(0, 8)) };
  }, [pack.data]);
  return html`
    <${Answer} of=${pack}>${(data) => html`<${Pack} pack=${data} why=${lines} budget=${budget} />`}<//>
    <h2>How it was found</h2>
    <p class="faint">Each channel ranks by several perspectives; their ranks are joined. A line opens to say why it is there, or why not.</p>
    <${Answer} of=${why}>
      ${(data) => html`<div class="channels">
        ${Object.entries(data.channels).map(([name, of]) => html`<${Channel} key=${name} name=${name} of=${of} ids=${ids} />`)}
      </div>`}
    <//>
  `;
}

function First() {
  const stats = useCall("stats", {}, { live: true });
  return html`<${Answer} of=${stats}>
    ${(held) =>
      held.turns + held.facts + held.anchors === 0
        ? html`<${Empty} title=${`${entity} remembers nothing yet`}>
            <p>Tell it something, or give it conversations that you have had elsewhere:</p>
            <pre>${`pps remember ${entity} "I drink my coffee black."\npps import ${entity} conversations.json\npps hooks install`}</pre>
            <p class="faint">This page shows it as soon as it is taken in.</p>
          <//>`
        : html`<dl class="figures">
            ${["turns", "nodes", "facts", "anchors"].map(
              (name) => html`<div key=${name}><dt>${name}</dt><dd>${held[name].toLocaleString("en")}</dd></div>`,
            )}
          </dl>`}
  <//>`;
}

function View({ query }) {
  const q = query.q || "";
  const budget = Math.min(100000, Math.max(100, Number(query.budget) || 1200));
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    go(href("ask", { q: given.get("q").trim(), budget: given.get("budget") }));
  };
  return html`
    <h1 tabindex="-1">Ask</h1>
    <form class="asking" role="search" onSubmit=${submit}>
      <label for="q" class="unseen">A question, or what is being talked about</label>
      <${Typed} id="q" name="q" type="search" value=${q} maxlength="8000" autocomplete="off" autofocus
        placeholder=${`What would ${entity} be given for …`} />
      <label>Tokens <${Typed} name="budget" type="number" min="100" max="100000" step="100" value=${budget} /></label>
      <button>Ask</button>
    </form>
    ${q ? html`<${Found} key=${`${q} ${budget}`} query=${q} budget=${budget} />` : html`<${First} />`}
  `;
}

export default View;
