// A feature's view, made of data: a table of what an operation returns, and buttons whose forms are made from the
// operations' inputs. No script of the feature runs.
import { call, html, useCall, useState } from "../core.js";
import { Alert, Answer, Empty, told } from "../parts.js";

const INPUTS = { integer: "number", number: "number", boolean: "checkbox" };

/** What was typed into a form, as the operation takes it; what is empty is left out. */
function typed(form, fields) {
  const given = {};
  for (const { name, type } of fields) {
    const input = form.elements[name];
    if (type === "boolean") given[name] = input.checked;
    else if (input.value) given[name] = INPUTS[type] === "number" ? Number(input.value) : input.value;
  }
  return given;
}

/** A form that asks an operation. */
function Asking({ of, onDone }) {
  const [problem, tell] = useState("");
  const send = (event) => {
    event.preventDefault();
    const form = event.target;
    call(of.operation, typed(form, of.fields)).then(() => (tell(""), form.reset(), onDone()), (error) => tell(error.message));
  };
  return html`<form class="card" aria-label=${of.title} onSubmit=${send}>
    <h2>${of.title}</h2>
    ${of.fields.map((field) => html`<label key=${field.name}>${field.name.replaceAll("_", " ")}
      <input name=${field.name} type=${INPUTS[field.type] || "text"} step="any" required=${field.required && field.type !== "boolean"} title=${field.about} />
    </label>`)}
    <button>${of.title}</button>
    ${problem && html`<${Alert}>${problem}<//>`}
  </form>`;
}

function Rows({ about }) {
  const of = useCall(about.operation, {}, { live: true });
  const [problem, tell] = useState("");
  const forms = about.actions.filter((one) => !one.of_row);
  const buttons = about.actions.filter((one) => one.of_row);
  const press = (operation, id) => call(operation, { id }).then(() => (tell(""), of.again()), (error) => tell(error.message));
  return html`
    <h1 tabindex="-1">${about.title}</h1>
    ${about.about && html`<p class="faint">${about.about}</p>`}
    ${problem && html`<${Alert}>${problem}<//>`}
    <${Answer} of=${of}>${(data) => !data[about.items].length
      ? html`<${Empty} title="Nothing here yet"><p>What there is stands here in a table.</p><//>`
      : html`<div class="wide" tabindex="0" role="region" aria-label=${about.title}><table>
          <thead><tr>${about.columns.map(({ name, title }) => html`<th key=${name} scope="col">${title}</th>`)}
            ${buttons.length > 0 && html`<th scope="col">Actions</th>`}</tr></thead>
          <tbody>${data[about.items].map((row) => html`<tr key=${row.id}>
            ${about.columns.map(({ name }) => html`<td key=${name}>${row[name] === undefined || row[name] === null ? "" : told(row[name])}</td>`)}
            ${buttons.length > 0 && html`<td>${buttons.map((one) => html`<button key=${one.operation} class="plain" onClick=${() => press(one.operation, row.id)}>${one.title}</button>`)}</td>`}
          </tr>`)}</tbody></table></div>`}<//>
    ${forms.map((one) => html`<${Asking} key=${one.operation} of=${one} onDone=${of.again} />`)}
  `;
}

/** The component of a view, made of what the server says of it. */
export const featureView = (about) => () => html`<${Rows} about=${about} />`;
