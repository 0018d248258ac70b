// Time: what held at a moment, and what changed between two: what began, what ended, what took another's place.
import { entity, go, href, html, useCall, useEffect, useState } from "../core.js";
import { Answer, Empty, FactLine, Item, More, Span, Typed, counted, usePages, wall } from "../parts.js";

const DAY = 86_400_000;
const PAGE = 100;
const IS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const PRESETS = [["Week", 7], ["Month", 31], ["Year", 366]];

/** The day of milliseconds on the wall clock: the calendar here is the person's, and the server reads days as theirs. */
const day = (ms) => new Date(ms).toISOString().slice(0, 10);

function Changes({ of, until }) {
  const all = (name) => of.pages.flatMap((page) => page[name]);
  const parts = [
    ["Began", all("opened"), (one) => html`<${FactLine} key=${one.id} of=${one} at=${until} />`],
    ["Ended", all("closed"), (one) => html`<${FactLine} key=${one.id} of=${one} />`],
    ["Replaced", all("replaced"), ({ old, new: now }) => html`<li key=${old.id + now.id} class="pair">
      <p class="ended"><${Item} id=${old.id}><span class="said" dir="auto">${old.text}</span><//> <${Span} of=${old} /></p>
      <p><${Item} id=${now.id}>${now.text}<//> <${Span} of=${now} /></p>
    </li>`],
  ];
  return html`<p class="faint">${counted(of.pages[0].total, "change")}, the newest first.</p>
  <div class="channels">
    ${parts.map(([title, some, line]) => html`<section key=${title} class="card changes" aria-label=${title}>
      <div class="row"><h3>${title}</h3><span class="faint">${some.length}</span></div>
      ${some.length ? html`<ul class="lines">${some.map(line)}</ul>` : html`<p class="faint">Nothing.</p>`}
    </section>`)}
  </div>
  <${More} of=${of} what="changes" />`;
}

function Bars({ bins, since, until }) {
  const most = Math.max(1, ...bins.map((bin) => bin.began));
  return html`<svg class="bars" viewBox=${`0 0 ${bins.length} 10`} preserveAspectRatio="none" aria-hidden="true">
    ${bins.map((bin, at) => {
      const here = wall(bin.since);
      const height = (10 * bin.began) / most;
      return html`<rect key=${at} x=${at + 0.1} width="0.8" y=${10 - height} height=${height} class=${here >= since && here < until ? "in" : ""} />`;
    })}
  </svg>`;
}

function Slider({ label, value, from, to, onMove }) {
  const [at, move] = useState(value);
  useEffect(() => move(value), [value]);
  return html`<label class="slider"><span>${label} <b>${day(at)}</b></span>
    <input type="range" min=${from} max=${to} step=${DAY} value=${at} aria-valuetext=${day(at)}
      onInput=${(event) => move(Number(event.target.value))} onChange=${(event) => onMove(Number(event.target.value))} />
  </label>`;
}

function Between({ spread, query }) {
  const floor = (at) => Math.floor(wall(at) / DAY) * DAY;
  const from = floor(spread.since);
  const to = Math.max(from + 2 * DAY, Math.ceil(wall(spread.until) / DAY) * DAY);
  const until = Math.min(to, Math.max(from + DAY, Date.parse(query.until) || to));
  const since = Math.max(from, Math.min(until - DAY, Date.parse(query.since) || from));
  const about = query.about || "";
  const node = useCall("get", IS_ID.test(about) ? { ids: [about] } : null);
  const aboutName = IS_ID.test(about) ? node.data?.items[0].name || "" : about;
  const at = (given) => go(href("time", { ...query, ...given }), { replace: true });
  const changes = usePages("changes", { since: day(since), until: day(until), limit: PAGE, ...(about && { id: about }) });
  const held = usePages("timeline", { as_of: `${day(until - DAY)}T23:59:59.999999`, limit: PAGE, ...(about && { id: about }) });
  const submit = (event) => {
    event.preventDefault();
    const typed = new FormData(event.target).get("about").trim();
    at({ about: typed === aboutName ? about : typed });
  };
  return html`
    <form class="asking" onSubmit=${submit}>
      <label for="about" class="unseen">Only what concerns a node, by its name or id</label>
      <${Typed} id="about" name="about" type="search" value=${aboutName} placeholder="All, or only a name: Lisbon" autocomplete="off" />
      <button>Show</button>
    </form>
    <section class="card">
      <${Bars} bins=${spread.bins} since=${since} until=${until} />
      <div class="sliders">
        <${Slider} label="From" value=${since} from=${from} to=${to - DAY} onMove=${(ms) => at({ since: day(Math.min(ms, until - DAY)) })} />
        <${Slider} label="As of" value=${until} from=${from + DAY} to=${to} onMove=${(ms) => at({ until: day(ms), since: day(Math.min(since, ms - DAY)) })} />
      </div>
      <p class="row">${PRESETS.map(([name, days]) => html`<button key=${name} class="quiet"
        onClick=${() => at({ since: day(Math.max(from, until - days * DAY)) })}>${name}</button>`)}
        <button class="quiet" onClick=${() => at({ since: day(from), until: day(to) })}>All</button></p>
    </section>
    <p class="faint">What was corrected by hand, with the way to undo it, stands under <a href="#/changes">Changes</a>.</p>
    <h2>What changed from ${day(since)} to ${day(until)}</h2>
    <${Answer} of=${changes.first}>${() => html`<${Changes} of=${changes} until=${until} />`}<//>
    <h2>What held then</h2>
    <${Answer} of=${held.first}>
      ${() => {
        const facts = held.pages.flatMap((page) => page.facts);
        return html`<p class="faint">${counted(facts.length, "fact")}${held.more ? ", and more" : ""}, as of ${day(until)}</p>
          <ul class="lines card">${facts.map((one) => html`<${FactLine} key=${one.id} of=${one} at=${until - 1} />`)}</ul>
          <${More} of=${held} what="facts" />`;
      }}
    <//>
  `;
}

function View({ query }) {
  const all = useCall("fact_histogram", {}, { live: true });
  return html`
    <h1 tabindex="-1">Time</h1>
    <${Answer} of=${all}>
      ${(spread) =>
        spread.since
          ? html`<${Between} spread=${spread} query=${query} />`
          : html`<${Empty} title="No facts with a time yet"><p>Facts begin and end. As soon as there are some, this shows what held when, and what changed.</p>
              <pre>${`pps extract ${entity}   # reads what was said for facts, and says first what it takes`}</pre><//>`}
    <//>
  `;
}

export default View;
