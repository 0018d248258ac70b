// A form made from what a kind's pack says of its fields; what another changed meanwhile is shown before it is lost.
import { call, clock, html, useState, zoneName } from "./core.js";
import { Alert, Diff, Typed } from "./parts.js";

const STATUS = ["draft", "active", "archived", "deprecated"];
const OWN = [
  { name: "title", type: "text, at most 160 characters", required: true },
  { name: "summary", type: "text, at most 2,000 characters", required: true, about: "What it says, in a few words" },
];
const LAST = [
  { name: "description", type: "text, at most 4,000 characters" },
  { name: "tags", type: "list of text", about: "one a line" },
  { name: "status", type: STATUS.join(" | "), required: true },
];
const BESIDE = ["title", "summary", "tags", "status"]; // the others are in `fields`

/** What a field may hold, of the words of the schema: `{base, options, most, least}`. */
function readType(type) {
  if (type.includes(" | ")) return { base: "enum", options: type.split(" | ") };
  const numbers = (/, (.*)/.exec(type)?.[1] || "").replaceAll(",", "").match(/-?[\d.]+/g) || [];
  const base = type.split(/[ ,]/)[0];
  return { base, most: numbers.at(-1), least: numbers.length > 1 ? numbers[0] : undefined };
}

/** A value as the text that its input holds, and back: an empty one takes the field out. */
function shown(value, base) {
  if (value === undefined || value === null) return "";
  if (base === "list") return value.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
  if (base === "datetime") return clock(new Date(value)).replace(" ", "T").slice(0, 16);
  return typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
}

function meant(text, base) {
  if (base === "list") return text.split("\n").map((one) => one.trim()).filter(Boolean);
  if (text === "") return null;
  if (base === "number" || base === "integer") return Number(text);
  if (base === "bool") return text === "true";
  // A time without a zone is the person's: the server reads it on their clock.
  return base === "json" || base === "map" ? JSON.parse(text) : text;
}

export function Input({ of, value = "" }) {
  const { base, options, most, least } = readType(of.type);
  const given = { name: of.name, required: of.required };
  if (base === "enum" || base === "bool") {
    return html`<select ...${given}>${!(of.required && value) && html`<option value=""></option>`}
      ${(options || ["true", "false"]).map((one) => html`<option key=${one} value=${one} selected=${one === value}>${one.replaceAll("_", " ")}</option>`)}</select>`;
  }
  if (base === "number" || base === "integer") return html`<${Typed} type="number" ...${given} min=${least} max=${most} step=${base === "number" ? "any" : "1"} value=${value} />`;
  if (base === "date") return html`<${Typed} type="date" ...${given} value=${value} />`;
  if (base === "datetime") return html`<${Typed} type="datetime-local" ...${given} value=${value} />`;
  if (base === "list" || base === "json" || base === "map" || (base === "text" && !(most <= 300))) {
    return html`<textarea dir="auto" ...${given} rows=${base === "text" && most <= 2000 ? 2 : 4} maxlength=${base === "text" ? most : undefined} defaultValue=${value}></textarea>`;
  }
  return html`<${Typed} ...${given} maxlength=${most} value=${value} />`;
}

const label = (of) => `${of.name.replaceAll("_", " ")}${of.type === "datetime" ? ` (${zoneName()})` : ""}`;
const hint = (of) => of.about || (/^(list|json|map|id|duration)/.test(of.type) ? of.type + (of.type.startsWith("list") ? ", one a line" : "") : "");
const valueOf = (record, name) => (BESIDE.includes(name) ? record?.[name] : record?.fields?.[name]);
const baseOf = (one) => readType(one.type).base;

/** The changes that a form makes to a record: only what differs from what the form began with. */
function changes(form, fields, base) {
  const given = { fields: {} };
  for (const one of fields) {
    const text = form.get(one.name);
    const kind = baseOf(one);
    if (text === shown(valueOf(base, one.name), kind)) continue;
    const value = meant(text, kind);
    if (BESIDE.includes(one.name)) given[one.name] = value;
    else given.fields[one.name] = value;
  }
  return given;
}

/** New without `of`. `onSaved` gets what `record_save` says of it. */
export function RecordForm({ kind, of, onSaved, onLeave }) {
  const [base, rest] = useState(of); // what the form began with: it does not change under who writes
  const [other, conflict] = useState(null);
  const [error, fail] = useState("");
  const names = new Set(kind.fields.map((one) => one.name));
  const fields = [...OWN, ...kind.fields, ...LAST.filter((one) => !names.has(one.name))];
  const save = (given, expected_version) =>
    call("record_save", { records: [{ ...given, ...(base ? { id: base.id } : { kind: kind.name }), expected_version }] }).then(
      ({ records: [one] }) => onSaved(one),
      async (problem) => {
        if (problem.status !== 409 || !base) return fail(problem.status === 409 ? `There is a ${kind.name} of that title already.` : problem.message.replace(/^records\[0\]\./, ""));
        conflict({ given, stands: (await call("record_get", { ids: [base.id] })).records[0] });
      },
    );
  const submit = (event) => {
    event.preventDefault();
    fail("");
    let given;
    try {
      given = changes(new FormData(event.target), fields, base);
    } catch (problem) {
      return fail(`This is no JSON: ${problem.message}`);
    }
    return save(given, base ? base.version : 0);
  };
  const both = other && fields.filter((one) => valueOf(other.given, one.name) !== undefined);
  const text = (record, one) => shown(valueOf(record, one.name), baseOf(one));
  return html`
    ${error && html`<${Alert}>${error}<//>`}
    ${other && html`<section class="card" role="alert" aria-label="Changed meanwhile">
      <h2>It was changed meanwhile</h2>
      <p class="faint">Somebody made version ${other.stands.version} while you wrote. Struck is what stands now, underlined what you wrote.</p>
      ${both.map((one) => html`<h3 key=${one.name}>${label(one)}</h3><${Diff} before=${text(other.stands, one)} after=${text(other.given, one)} />`)}
      <p class="row"><button onClick=${() => (conflict(null), save(other.given, other.stands.version))}>Keep mine</button>
        <button class="plain" onClick=${() => (rest(other.stands), conflict(null))}>Take what stands</button></p>
    </section>`}
    <form class="form" key=${base?.version} onSubmit=${submit}>
      ${fields.map((one) => html`<label key=${one.name}><span>${label(one)}${one.required ? " *" : ""} ${hint(one) && html`<small>${hint(one)}</small>`}</span>
        <${Input} of=${one} value=${one.name === "status" && !base ? "active" : text(base, one)} /></label>`)}
      <p class="row"><button>${base ? "Save" : `Keep this ${kind.name}`}</button>${onLeave && html`<button class="plain" type="button" onClick=${onLeave}>Leave it as it is</button>`}</p>
    </form>`;
}
