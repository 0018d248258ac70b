// Records: what has a kind in the packs: by kind, as a table or as a board of a life cycle; one with its relations.
import { call, entity, go, href, html, useCall, useEffect, useState } from "../core.js";
import { Alert, Answer, Empty, Forget, Id, Item, Versions, When, counted, told, useSchema } from "../parts.js";
import { Input, RecordForm } from "../record_form.js";
import { Said } from "../markdown.js";
import { Share } from "../share.js";

const PAGE = 1000;
const NEW = "+"; // no id is that
const said = (name) => name.replaceAll("_", " ");

/** The first `most` records of a kind, which come a page at a time. */
async function all({ most, ...given }) {
  const items = [];
  for (let cursor = ""; ; ) {
    const page = await call("record_list", { ...given, cursor });
    items.push(...page.items);
    cursor = page.next_cursor;
    if (!cursor || items.length >= most) return { items, total: page.stats.total_nodes };
  }
}

/** The states of a life cycle, in the order in which they are reached. */
function statesOf(cycle) {
  const found = [cycle.start];
  for (const one of found) for (const next of cycle.moves[one] || []) if (!found.includes(next)) found.push(next);
  return found;
}

const focus = (input) => input?.focus(); // as soon as it is there: nobody's first letter is lost

function Move({ record, cycle, onMoved }) {
  const [to, choose] = useState("");
  const [error, fail] = useState("");
  const submit = (event) => {
    event.preventDefault();
    const why = new FormData(event.target).get("why").trim();
    call("record_move", { id: record.id, to, expected: record.state, why }).then(
      () => (choose(""), onMoved(record, to)),
      (problem) => fail(problem.status === 409 ? "It has been moved meanwhile." : problem.message),
    );
  };
  return html`${error && html`<${Alert}>${error}<//>`}
    ${to
      ? html`<form class="move" onSubmit=${submit} onKeyDown=${(event) => event.key === "Escape" && choose("")}>
          <label>Why <input ref=${focus} dir="auto" name="why" maxlength="2000" placeholder="kept with the move" /></label>
          <p class="row"><button>Move to ${said(to)}</button> <button class="quiet" type="button" onClick=${() => choose("")}>Leave it</button></p>
        </form>`
      : html`<p class="row moves">${(cycle.moves[record.state] || []).map((one) => html`<button key=${one} class="quiet"
          aria-label=${`Move ${record.title} to ${said(one)}`} onClick=${() => (fail(""), choose(one))}>→ ${said(one)}</button>`)}</p>`}`;
}

/** The fields that a line has room for: the first that any of the records has. */
const telling = (kind, items) => kind.fields.filter((one) => !one.name.endsWith("_id") && items.some((it) => it.fields?.[one.name] !== undefined)).slice(0, 4);

function Board({ kind, cycle, items, onMoved }) {
  const fields = telling(kind, items).slice(0, 3);
  return html`<div class="board wide" tabindex="0" role="region" aria-label="Board">${statesOf(cycle).map((state) => {
    const own = items.filter((one) => one.state === state);
    return html`<section key=${state} aria-label=${said(state)}><h2>${said(state)} <span class="faint">${own.length}</span></h2>
      <ul class="plain">${own.map((one) => html`<li key=${one.id} class="card">
        <a id=${`card-${one.id}`} dir="auto" href=${href("records", {}, kind.name, one.id)}>${one.title}</a>
        ${one.summary && html`<p class="faint said" dir="auto">${one.summary}</p>`}
        <p class="row">${fields.map(({ name }) => one.fields?.[name] !== undefined && html`<span key=${name} class="tag" dir="auto" title=${said(name)}>${typeof one.fields[name] === "number" ? `${said(name)} ` : ""}${told(one.fields[name])}</span>`)}</p>
        <${Move} record=${one} cycle=${cycle} onMoved=${onMoved} /></li>`)}</ul></section>`;
  })}</div>`;
}

function Table({ kind, items, query }) {
  const fields = telling(kind, items);
  const columns = [["title", "Title"], ...(kind.lifecycle ? [["state", "State"]] : []), ...fields.map(({ name }) => [name, said(name)]), ["updated_at", "Changed"]];
  const { order = "" } = query;
  const sort = (name) => go(href("records", { ...query, order: order === name ? `-${name}` : order === `-${name}` ? "" : name }, kind.name), { replace: true });
  const cell = (one, name) => (name === "state" ? said(one.state || "") : name === "updated_at" ? html`<${When} at=${one.updated_at} />` : told(one.fields?.[name] ?? ""));
  return html`<div class="wide" tabindex="0" role="region" aria-label="Table"><table class="texts">
    <thead><tr>${columns.map(([name, title]) => html`<th key=${name} scope="col" aria-sort=${order === name ? "ascending" : order === `-${name}` ? "descending" : null}>
      <button class="quiet" onClick=${() => sort(name)}>${title} ${order === name ? "↑" : order === `-${name}` ? "↓" : ""}</button></th>`)}</tr></thead>
    <tbody>${items.map((one) => html`<tr key=${one.id}><th scope="row"><a dir="auto" href=${href("records", {}, kind.name, one.id)}>${one.title}</a>${one.status !== "active" && html` <span class="tag">${one.status}</span>`}</th>
      ${columns.slice(1).map(([name]) => html`<td key=${name} dir="auto">${cell(one, name)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

function Kind({ kind, schema, query }) {
  const cycle = schema.cycles[kind.lifecycle];
  const board = cycle && query.view !== "table";
  const [most, show] = useState(PAGE);
  const of = useCall(all, { most, kinds: [kind.name], ...(query.order && !board && { order: [query.order] }) }, { live: true });
  const [moved, tell] = useState(null);
  useEffect(() => {
    if (moved) document.getElementById(`card-${moved.id}`)?.focus();
  }, [moved, of.data]);
  const onMoved = (one, to) => (tell({ id: one.id, text: `${one.title} is ${said(to)} now.` }), of.again());
  return html`
    <p class="kind"><a href="#/records">Records</a> · ${kind.layer || kind.pack}</p>
    <h1 tabindex="-1">${kind.name}</h1>
    ${kind.about && html`<p>${kind.about}.</p>`}
    <p class="row"><a class="button" href=${href("records", {}, kind.name, NEW)}>New ${kind.name}</a>
      ${cycle && html`<span role="group" aria-label="Shown as"><a class="chip" href=${href("records", {}, kind.name)} aria-current=${board ? "true" : null}>Board</a>
        <a class="chip" href=${href("records", { view: "table" }, kind.name)} aria-current=${board ? null : "true"}>Table</a></span>`}
      <span class="faint" role="status">${moved?.text}</span></p>
    <${Answer} of=${of}>${({ items, total }) => items.length
      ? html`${board ? html`<${Board} kind=${kind} cycle=${cycle} items=${items} onMoved=${onMoved} />` : html`<${Table} kind=${kind} items=${items} query=${query} />`}
          ${total > items.length && html`<p><button class="plain" disabled=${of.busy} onClick=${() => show(most + PAGE)}>Show more of ${total.toLocaleString("en")}</button></p>`}`
      : html`<${Empty} title=${`No ${kind.name} yet`}><p>An agent keeps one with <code>record_save</code>; you, with the form of “New ${kind.name}”.</p><//>`}<//>
  `;
}

function Relate({ record, schema, done }) {
  const [type, choose] = useState("");
  const [error, fail] = useState("");
  const fits = (end, kind) => end === kind || end.split("|").includes(kind);
  const may = schema.relations.filter((one) => one.pairs.some(([from]) => fits(from, record.kind)));
  const names = [...new Set(may.map((one) => one.name))];
  const chosen = may.filter((one) => one.name === type);
  const kinds = [...new Set(chosen.flatMap((one) => one.pairs.filter(([from]) => fits(from, record.kind)).flatMap(([, to]) => to.split("|"))))].filter((one) => schema.kinds[one]);
  const found = useCall("record_list", kinds.length ? { kinds, limit: 200, fields: ["title"] } : null);
  const submit = (event) => {
    event.preventDefault();
    fail("");
    const { target, ...rest } = Object.fromEntries(new FormData(event.target));
    const number = (name) => chosen.flatMap((one) => one.fields).find((one) => one.name === name)?.type.startsWith("number");
    const properties = Object.fromEntries(Object.entries(rest).filter(([name, value]) => name !== "type" && value !== "").map(([name, value]) => [name, number(name) ? Number(value) : value]));
    const is = found.data?.items.find((one) => one.title === target);
    call("record_relate", { source: record.id, type, target: is?.id || target, properties }).then(() => (choose(""), done()), (problem) => fail(problem.message));
  };
  if (!names.length) return null;
  return html`${error && html`<${Alert}>${error}<//>`}
    <form class="row relate" onSubmit=${submit}>
      <label>It <select name="type" required value=${type} onChange=${(event) => choose(event.target.value)}><option value="">relates to …</option>
        ${names.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
      ${type && html`<label>${kinds.join(" or ") || "what"} <input dir="auto" name="target" required maxlength="200" list="targets" autocomplete="off" /></label>
        <datalist id="targets">${found.data?.items.map((one) => html`<option key=${one.id} value=${one.title}></option>`)}</datalist>
        ${chosen[0].fields.map((one) => html`<label key=${one.name}>${said(one.name)} <${Input} of=${one} /></label>`)}
        <button>Relate</button>`}
    </form>`;
}

function Relations({ record, joins, schema, again }) {
  const [error, fail] = useState("");
  const other = (one) => (one.source === record.id ? one.target : one.source);
  const ends = useCall("get", joins.length ? { ids: [...new Set(joins.map(other))].slice(0, 100) } : null);
  const name = (one) => ends.data?.items.find((it) => it.id === other(one))?.name || other(one).slice(0, 8);
  const end = (one) => call("record_unrelate", { ids: [one.id] }).then(again, (problem) => fail(problem.message));
  return html`<h2>Relations</h2>
    ${error && html`<${Alert}>${error}<//>`}
    ${!joins.length && html`<p class="faint">None yet.</p>`}
    <ul class="lines card">${joins.map((one) => html`<li key=${one.id} class="row">
      <span>${one.source === record.id ? "" : "← "}<code>${one.type}</code>${one.source === record.id ? " →" : ""} <${Item} id=${other(one)}>${name(one)}<//>
      ${Object.entries(one.properties).map(([key, value]) => html` <span key=${key} class="tag">${said(key)} ${told(value)}</span>`)}</span>
      <button class="quiet" aria-label=${`End ${one.type} ${name(one)}`} onClick=${() => end(one)}>End</button></li>`)}</ul>
    <${Relate} record=${record} schema=${schema} done=${again} />`;
}

function One({ id, schema }) {
  const of = useCall("record_get", { ids: [id] }, { live: true });
  const [edits, edit] = useState(false);
  return html`
    ${of.error && !of.data && html`<h1 tabindex="-1">Not here</h1>`}
    <${Answer} of=${of}>${({ records: [record], relationships, transitions }) => {
      const kind = schema.kinds[record.kind];
      const cycle = schema.cycles[kind?.lifecycle];
      const fields = Object.entries(record.fields || {}).filter(([name]) => name !== "provenance");
      const refs = new Set(kind?.fields.filter((one) => one.type.startsWith("id of")).map((one) => one.name));
      return html`
        <p class="kind"><a href="#/records">Records</a> · <a href=${href("records", {}, record.kind)}>${record.kind}</a></p>
        <h1 tabindex="-1" dir="auto">${record.title}</h1>
        ${edits
          ? html`<${RecordForm} kind=${kind} of=${record} onSaved=${() => (of.again(), edit(false))} onLeave=${() => edit(false)} />`
          : html`<${Said} text=${record.summary} />
            <p class="row">${record.state && html`<span class="tag">${said(record.state)}</span>`}${record.status !== "active" && html`<span class="tag">${record.status}</span>`}
              ${record.tags.map((one) => html`<span key=${one} class="tag" dir="auto">#${one}</span>`)}
              <span class="faint">version ${record.version}, <${When} at=${record.updated_at} />${record.actor && html` by <bdi>${record.actor}</bdi>`}</span></p>
            ${fields.length > 0 && html`<dl class="times">${fields.map(([name, value]) => html`<div key=${name}><dt>${said(name)}</dt>
              <dd>${refs.has(name) ? html`<${Id} of=${value} />` : html`<${Said} text=${told(value)} />`}</dd></div>`)}</dl>`}
            <p class="row">${kind && html`<button class="plain" onClick=${() => edit(true)}>Edit</button>`} <a href=${href("graph", { node: record.id })}>In the graph</a></p>`}
        ${cycle && html`<h2>Life cycle</h2><${Move} record=${record} cycle=${cycle} onMoved=${of.again} />
          ${transitions.length > 0 && html`<ul class="lines card">${transitions.map((one, at) => html`<li key=${at}>${said(one.before)} → ${said(one.after)}${one.why && html`: <bdi>${one.why}</bdi>`}
            <span class="faint"> ${one.actor || "you"}, <${When} at=${one.at} /></span></li>`)}</ul>`}`}
        <${Relations} record=${record} joins=${relationships} schema=${schema} again=${of.again} />
        ${record.cites?.length > 0 && html`<h2>It rests on</h2><ul class="lines card">${record.cites.map((one) => html`<li key=${one.id}>${one.kind} ${one.gone ? "that was forgotten" : html`<${Id} of=${one.id} />`}</li>`)}</ul>`}
        <${Share} key=${record.version} what="record" id=${record.id} given=${{ type: record.kind, title: record.title, content: record.summary, fields: Object.fromEntries(fields) }} />
        <${Versions} id=${record.turn} />
        <${Forget} key=${record.turn} id=${record.turn} what="record" />`;
    }}<//>`;
}

function Kinds({ schema }) {
  const kinds = Object.values(schema.kinds);
  const layers = [...new Set(kinds.map((one) => one.layer))];
  const some = kinds.reduce((sum, one) => sum + (one.count || 0), 0);
  return html`<h1 tabindex="-1">Records</h1>
    <p class="faint">${counted(some, "record")} of ${counted(kinds.filter((one) => one.count).length, "kind")}, of ${counted(Object.keys(schema.packs).length, "pack").replace(/^\d+ /, "the ")} ${Object.keys(schema.packs).join(", ")}.</p>
    ${layers.map((layer) => html`<section key=${layer} aria-label=${layer || "in no layer"}><h2>${layer || "In no layer"}</h2>
      <ul class="plain kinds">${kinds.filter((one) => one.layer === layer).sort((a, b) => (b.count || 0) - (a.count || 0)).map((one) => html`<li key=${one.name}>
        <a class=${`card ${one.count ? "" : "none"}`} href=${href("records", {}, one.name)} title=${one.about}><b>${one.name}</b> <span>${one.count || ""}</span></a></li>`)}</ul></section>`)}`;
}

function View({ parts: [name = "", id = ""], query }) {
  const schema = useSchema();
  if (!schema) return html`<h1 tabindex="-1">Records</h1><p class="faint" role="status">One moment …</p>`;
  if (!Object.keys(schema.kinds).length) {
    return html`<h1 tabindex="-1">Records</h1><${Empty} title="No kinds of records yet">
      <p>A pack of kinds lets ${entity} keep goals, tasks, decisions and the like, with fields, relations and life cycles:</p>
      <pre>${`pps pack list\npps pack enable ${entity} constitution`}</pre>
      <p class="faint">They are here from the memory's next opening on; a pack of your own is one file.</p><//>`;
  }
  const kind = schema.kinds[name];
  if (id && id !== NEW) return html`<${One} key=${id} id=${id} schema=${schema} />`;
  if (!kind) return html`<${Kinds} schema=${schema} />`;
  if (id !== NEW) return html`<${Kind} key=${name} kind=${kind} schema=${schema} query=${query} />`;
  return html`<p class="kind"><a href="#/records">Records</a> · <a href=${href("records", {}, name)}>${name}</a></p><h1 tabindex="-1">New ${name}</h1>
    ${kind.about && html`<p class="faint">${kind.about}.</p>`}
    <${RecordForm} kind=${kind} onSaved=${(one) => go(href("records", {}, name, one.id))} />`;
}

export default View;
