// Graph: from the entity's own node outwards, a ring at a time; what is not asked for is not drawn.
import { call, entity, go, href, html, place, useCall, useEffect, useMemo, useRef, useState } from "../core.js";
import { Alert, Answer, Empty, FactLine, Id, Item, Typed, When, counted, useSchema } from "../parts.js";

const RING = 60;
const MORE = 300; // nodes that a further step shows around one
const SHOWN = 20;
const NEAR = 100; // names beside the picture
const HUES = [168, 24, 262, 340, 205, 95, 45, 300, 230, 0, 130, 65];
const NO_KINDS = {};
const nameOf = (layer) => layer || "in no layer";

/** Where drawing begins: at the own node; where nothing joins it yet, at the node that most facts join. */
async function beginning(as_of) {
  const own = await call("graph_around", { limit: RING, max_hops: 2, as_of });
  if (own.facts.length) return own;
  const { facts } = await call("timeline", { limit: 1000, as_of });
  const times = new Map();
  for (const end of facts.flatMap((one) => [one.subject, one.object])) times.set(end, (times.get(end) || 0) + 1);
  const [most] = [...times].sort(([, a], [, b]) => b - a);
  return most ? call("graph_around", { id: most[0], limit: RING, max_hops: 2, as_of }) : own;
}

/** The graph that is drawn: nodes and links by id, each made once, so that the picture stays where it is. */
class Drawn {
  nodes = new Map();
  links = new Map();
  opened = new Map(); // node → what asks for more around it; null when there is no more

  add({ node, nodes, facts, next_cursor: cursor }, max_hops) {
    const from = this.nodes.get(node);
    for (const one of nodes) {
      if (!this.nodes.has(one.id)) this.nodes.set(one.id, { ...one, joints: 0, x: from && from.x + Math.random() * 40 - 20, y: from && from.y + Math.random() * 40 - 20 });
    }
    for (const one of facts) {
      if (this.links.has(one.id)) continue;
      this.links.set(one.id, { ...one, source: one.subject, target: one.object });
      for (const end of [one.subject, one.object]) this.nodes.get(end).joints += 1;
    }
    this.opened.set(node, cursor ? { cursor, max_hops, limit: MORE } : null);
  }
}

function Picture({ drawn, version, shown, chosen, hue, onChoose }) {
  const place = useRef(null);
  const graph = useRef(null);
  const now = useRef({});
  Object.assign(now.current, { chosen, hue, onChoose });
  useEffect(() => {
    let gone = false;
    let watch = null;
    const colours = () => {
      now.current.ink = getComputedStyle(place.current).color.match(/\d+/g).slice(0, 3);
      graph.current?.nodeColor(graph.current.nodeColor());
    };
    import("../vendor/force-graph.js").then(() => {
      if (gone) return;
      const ink = (alpha) => `rgb(${now.current.ink.join(" ")} / ${alpha})`;
      const tint = (node) => `hsl(${now.current.hue(node)} ${now.current.ink[0] > 127 ? "45% 62%" : "48% 40%"})`;
      graph.current = new globalThis.ForceGraph(place.current)
        .nodeLabel(() => "").linkLabel(() => "") // its labels would be HTML
        .nodeRelSize(1).nodeVal((node) => radius(node) ** 2)
        .linkColor((link) => ink(isAt(link, now.current.chosen) ? 0.55 : 0.13))
        .linkWidth((link) => (isAt(link, now.current.chosen) ? 1.4 : 0.7))
        .linkDirectionalArrowLength((link) => (isAt(link, now.current.chosen) ? 4 : 0)).linkDirectionalArrowRelPos(0.9)
        .nodeCanvasObject((node, canvas, scale) => {
          const r = radius(node);
          canvas.beginPath();
          canvas.arc(node.x, node.y, r, 0, 2 * Math.PI);
          canvas.fillStyle = tint(node);
          canvas.fill();
          if (node.id === now.current.chosen) {
            canvas.lineWidth = 2 / scale;
            canvas.strokeStyle = ink(1);
            canvas.stroke();
          }
          if (scale * r < 5 && node.id !== now.current.chosen) return; // names where there is room for them
          canvas.font = `${Math.max(11 / scale, 1.5)}px system-ui, sans-serif`;
          canvas.textAlign = "center";
          canvas.textBaseline = "top";
          canvas.fillStyle = ink(0.85);
          canvas.fillText(node.name.length > 28 ? `${node.name.slice(0, 27)}…` : node.name, node.x, node.y + r + 2 / scale);
        })
        .onNodeClick((node) => now.current.onChoose(node.id))
        .minZoom(0.05).maxZoom(6).warmupTicks(20).cooldownTime(4000).d3AlphaDecay(0.04).d3VelocityDecay(0.35);
      graph.current.d3Force("charge").strength(-70).distanceMax(400);
      const fit = () => place.current && graph.current.width(place.current.clientWidth).height(place.current.clientHeight);
      colours();
      fit();
      watch = new ResizeObserver(fit);
      watch.observe(place.current);
      draw();
    });
    window.addEventListener("lights", colours);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", colours);
    return () => {
      gone = true;
      watch?.disconnect();
      window.removeEventListener("lights", colours);
      dark.removeEventListener("change", colours);
      graph.current?._destructor();
    };
  }, []);
  const draw = () => {
    if (!graph.current) return;
    const nodes = [...now.current.drawn.nodes.values()].filter(now.current.shown.node);
    const there = new Set(nodes.map((one) => one.id));
    const end = (one) => one.id ?? one;
    const links = [...now.current.drawn.links.values()].filter((one) => there.has(end(one.source)) && there.has(end(one.target)) && now.current.shown.link(one));
    graph.current.graphData({ nodes, links });
    setTimeout(() => graph.current?.zoomToFit(300, nodes.length < 12 ? 180 : 40), 900);
  };
  now.current.drawn = drawn;
  now.current.shown = shown;
  useEffect(draw, [version, shown]);
  useEffect(() => {
    graph.current?.nodeColor(graph.current.nodeColor());
  }, [chosen, hue]);
  return html`<div class="picture" ref=${place} role="img"
    aria-label=${`A drawing of ${counted(drawn.nodes.size, "node")} and ${counted(drawn.links.size, "link")}; the list beside it has the same.`}></div>`;
}

const radius = (node) => 3.2 + Math.min(9, 1.3 * Math.sqrt(node.joints));
const isAt = (link, id) => id && (link.subject === id || link.object === id);

function Filter({ title, of, off, onTurn, hue }) {
  if (of.length < 2) return null;
  return html`<fieldset class="filter">
    <legend>${title}</legend>
    ${of.map(([name, n]) => html`<label key=${name} class="chip">
      <input type="checkbox" checked=${!off.has(name)} onChange=${() => onTurn(name)} />
      ${hue && html`<i class=${`dot h${hue(name)}`}></i>`}<bdi>${name}</bdi> <span class="faint">${n}</span>
    </label>`)}
  </fieldset>`;
}

/** What is known of a node at a moment: its facts, the records that it is joined to, and the turns that say so. */
function Known({ id, as_of, records }) {
  const of = useCall("timeline", { id, limit: SHOWN, as_of }, { live: true });
  const ids = [...new Set((of.data?.facts || []).flatMap((one) => one.episodes))];
  const turns = useCall("get", ids.length ? { ids: ids.slice(0, SHOWN) } : null);
  return html`<${Answer} of=${of}>${({ facts, next_cursor }) => html`
    <h3>Facts</h3>
    ${!facts.length && html`<p class="faint">None.</p>`}
    <ul class="lines facts">${facts.map((one) => html`<${FactLine} key=${one.id} of=${one} at=${as_of && Date.parse(`${as_of}Z`)} />`)}</ul>
    ${next_cursor && html`<p class="faint">These are the first ${SHOWN}; <${Item} id=${id}>all of them<//>.</p>`}
    ${records.length > 0 && html`<h3>Records</h3><ul class="lines">${records.map((one) => html`<li key=${one.id}><a dir="auto" href=${href("records", {}, one.kind, one.id)}>${one.name}</a> <span class="faint">${one.kind}</span></li>`)}</ul>`}
    ${ids.length > 0 && html`<h3>Turns</h3><${Answer} of=${turns}>${({ items }) => html`<ul class="lines turns">${items.map((one) => html`<li key=${one.id}>
      <span class="said" dir="auto">${one.content}</span> <span class="faint"><${When} at=${one.occurred_at} precision=${one.occurred_at_precision} /></span> <${Id} of=${one.id} /></li>`)}</ul>`}<//>`}`}
  <//>`;
}

function Beside({ id, drawn, onChoose, onOpen, busy, as_of, kinds }) {
  const [listed, list] = useState(NEAR);
  const node = drawn.nodes.get(id);
  if (!node) return null;
  const near = [...new Set([...drawn.links.values()].filter((one) => isAt(one, id)).map((one) => (one.subject === id ? one.object : one.subject)))];
  const opened = drawn.opened.get(id);
  return html`<aside class="card beside" aria-labelledby="chosen">
    <h2 id="chosen" dir="auto">${node.name}</h2>
    <p class="faint"><bdi>${node.kind}</bdi> · <${Item} id=${id}>open<//></p>
    ${node.summary && html`<p dir="auto">${node.summary}</p>`}
    <p class="row">
      ${opened !== null && html`<button class="plain" disabled=${busy} onClick=${() => onOpen(id, opened)}>
        ${opened === undefined ? "Show what is around it" : "Show more around it"}</button>`}
    </p>
    ${near.length > 0 && html`<details><summary><h3>Next to it (${near.length})</h3></summary>
      <ul class="plain near">${near.slice(0, listed).map((one) => html`<li key=${one}><button class="quiet" dir="auto" onClick=${() => onChoose(one)}>${drawn.nodes.get(one)?.name}</button></li>`)}</ul>
      ${near.length > listed && html`<button class="plain" onClick=${() => list(listed + NEAR)}>Show more names</button>`}</details>`}
    <${Known} id=${id} as_of=${as_of} records=${[id, ...near].map((one) => drawn.nodes.get(one)).filter((one) => kinds[one?.kind])} />
  </aside>`;
}

function View({ query }) {
  const drawn = useRef(null);
  drawn.current ||= new Drawn();
  const [version, changed] = useState(0);
  const [busy, wait] = useState(true);
  const [error, fail] = useState("");
  const [off, turn] = useState({ kinds: new Set(), relations: new Set(), layers: new Set(), packs: new Set() });
  const kinds = useSchema()?.kinds || NO_KINDS;
  const chosen = query.node || "";
  const as_of = /^\d{4}-\d\d-\d\d$/.test(query.at) ? `${query.at}T23:59:59` : undefined;
  // What comes late must not pull back to this view a reader who has left it.
  const choose = (id) => place().view === "graph" && go(href("graph", { ...query, node: id }), { replace: true });
  const add = async (asking, max_hops) => {
    wait(true);
    fail("");
    try {
      const found = await asking();
      drawn.current.add(found, max_hops);
      changed((n) => n + 1);
      return found;
    } catch (problem) {
      fail(problem.message);
    } finally {
      wait(false);
    }
    return null;
  };
  const open = (id, further) => add(() => call("graph_around", { id, as_of, limit: RING, ...further }), further?.max_hops || 1);
  useEffect(() => {
    drawn.current = new Drawn();
    add(() => (chosen ? call("graph_around", { id: chosen, limit: RING, max_hops: 2, as_of }) : beginning(as_of)), 2).then((found) => found && !chosen && choose(found.node));
  }, [as_of]);
  useEffect(() => {
    if (chosen && drawn.current.nodes.size && !drawn.current.nodes.has(chosen)) open(chosen);
  }, [chosen]);

  const nodes = [...drawn.current.nodes.values()];
  const tally = (of) => {
    const times = new Map();
    for (const one of of) times.set(one, (times.get(one) || 0) + 1);
    return [...times].sort(([, a], [, b]) => b - a);
  };
  const byKind = useMemo(() => tally(nodes.map((one) => one.kind)), [version]);
  const hue = useMemo(() => {
    const at = new Map(byKind.map(([name], n) => [name, n % HUES.length]));
    return (name) => at.get(name) ?? 0;
  }, [byKind]);
  const shown = useMemo(() => ({
    node: (one) => !off.kinds.has(one.kind) && !off.layers.has(nameOf(kinds[one.kind]?.layer)) && !off.packs.has(kinds[one.kind]?.pack || "no pack"),
    link: (one) => !off.relations.has(one.relation),
  }), [off, kinds]);
  const filter = (which) => (name) => turn((old) => {
    const now = new Set(old[which]);
    if (!now.delete(name)) now.add(name);
    return { ...old, [which]: now };
  });
  const layers = tally(nodes.map((one) => nameOf(kinds[one.kind]?.layer)));
  const packs = tally(nodes.map((one) => kinds[one.kind]?.pack || "no pack"));
  const relations = useMemo(() => tally([...drawn.current.links.values()].map((one) => one.relation)), [version]);

  return html`
    <h1 tabindex="-1">Graph</h1>
    ${error && html`<${Alert}>${error}<//>`}
    <p class="row"><label>As of <${Typed} type="date" value=${query.at || ""} onChange=${(event) => go(href("graph", { ...query, at: event.target.value }), { replace: true })} /></label>
      ${as_of && html`<a href=${href("graph", { node: chosen })}>Now</a>`}</p>
    <p class="faint" role="status">${busy ? "One moment …" : `${counted(nodes.length, "node")}, ${counted(drawn.current.links.size, "fact")} drawn`}</p>
    ${!busy && drawn.current.links.size === 0 && html`<${Empty} title="No facts yet">
      <p>A graph grows from facts: what an agent says with <code>remember</code>, or what is read in the turns that there are.</p>
      <pre>${`pps remember ${entity} "Ana lives in Lisbon." --given facts.json\npps extract ${entity}`}</pre>
    <//>`}
    <div class="graph">
      <${Picture} drawn=${drawn.current} version=${version} shown=${shown} chosen=${chosen}
        hue=${(node) => HUES[hue(node.kind)]} onChoose=${(id) => (choose(id), drawn.current.opened.has(id) || open(id))} />
      <${Beside} id=${chosen} drawn=${drawn.current} onChoose=${choose} onOpen=${open} busy=${busy} as_of=${as_of} kinds=${kinds} />
    </div>
    <div class="filters">
      <${Filter} title="Kinds" of=${byKind} off=${off.kinds} onTurn=${filter("kinds")} hue=${hue} />
      <${Filter} title="Layers" of=${layers} off=${off.layers} onTurn=${filter("layers")} />
      <${Filter} title="Packs" of=${packs} off=${off.packs} onTurn=${filter("packs")} />
      <${Filter} title="Relations" of=${relations.slice(0, 40)} off=${off.relations} onTurn=${filter("relations")} />
    </div>
  `;
}

export default View;
