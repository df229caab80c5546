// The playground's page: an editor, a command line, and what the command shows. The worker does the work.

const root = document.getElementById("tlx-playground");
const here = new URL(".", import.meta.url);
const find = (name) => root.querySelector(`[data-part="${name}"]`);
const editor = find("source"), line = find("line"), said = find("said"), output = find("output");
const worker = new Worker(new URL("worker.js", here), { type: "module" });
let asked = 0, busy = false;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function decoded(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

async function encoded(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (each) => String.fromCharCode(each)).join("")).replaceAll("+", "-").replaceAll("/", "_");
}

function ask(kind) {
  if (busy) return;
  busy = true;
  root.dataset.state = "busy";
  said.textContent = "running …";
  worker.postMessage({ kind, id: ++asked, source: editor.value, line: line.value });
}

function showRun(found) {
  const pictures = Object.entries(found.pictures);
  const text = found.text || (pictures.length ? "" : "nothing was printed");
  output.replaceChildren(...(text ? [element("pre", text)] : []));
  for (const [name, picture] of pictures) {
    output.append(element("p", name));
    // A link may bring code of anybody: what it writes is shown as a picture, or in a frame that can't reach this page.
    if (name.endsWith(".svg")) {
      const url = URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" }));
      const held = element("div", "", { class: "playground-picture" });
      held.append(element("img", "", { src: url, alt: name }));
      output.append(held);
    } else {
      const frame = element("iframe", "", { title: name, sandbox: "allow-scripts" });
      frame.srcdoc = picture;
      output.append(frame);
    }
  }
}

function showPasses(found) {
  if (!found.passes.length) return showRun({ ...found, pictures: {} });
  const list = element("div", "", { class: "playground-passes", role: "listbox", "aria-label": "passes" });
  const text = element("pre", "", { tabindex: "0" });
  const choose = (pass, row, index) => {
    list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    row.setAttribute("aria-selected", "true");
    text.replaceChildren();
    const lines = (pass.diff && index ? pass.diff : pass.text).split("\n");
    for (const each of lines) {
      const sort = pass.diff && index ? { "+": "added", "-": "removed", "@": "place" }[each[0]] : undefined;
      text.append(element("span", `${each}\n`, sort ? { class: sort } : {}));
    }
  };
  const idle = found.passes.filter((pass, index) => index && pass.changed === "nothing");
  found.passes.forEach((pass, index) => {
    if (idle.includes(pass)) return;
    const row = element("button", "", { role: "option", type: "button" });
    row.append(element("b", pass.name), element("small", index ? pass.changed : `${pass.ops} operations`));
    row.addEventListener("click", () => choose(pass, row, index));
    list.append(row);
  });
  if (idle.length) list.append(element("small", `${idle.length} more passes changed nothing`));
  const last = element("button", "", { role: "option", type: "button" });
  last.append(element("b", "result"), element("small", "the module after all passes"));
  const end = { text: found.passes.findLast((pass) => pass.text).text, diff: "" };
  last.addEventListener("click", () => choose(end, last, 0));
  list.append(last);
  output.replaceChildren(list, text);
  const rows = list.querySelectorAll("button");
  rows[0].click();
}

worker.onmessage = async ({ data }) => {
  if (data.kind === "said") said.textContent = data.text;
  else if (data.kind === "failed") {
    root.dataset.state = "failed";
    said.textContent = data.text;
  } else if (data.kind === "ready") {
    root.dataset.times = JSON.stringify(data.times);
    worker.postMessage({ kind: "opened", id: 0, source: editor.value, line: "" });
  } else if (data.kind === "opened") {
    editor.value = data.source;
    line.value = line.value || data.line;
    busy = false;
    ask(line.value.startsWith("tlx explain ") ? "passed" : "ran");
  } else if (data.id === asked) {
    busy = false;
    (data.kind === "passed" ? showPasses : showRun)(data);
    said.textContent = `${data.seconds.toFixed(1)} s`;
    root.dataset.state = data.status || (data.kind === "passed" && !data.passes.length) ? "wrong" : "done";
  }
};
worker.onerror = (event) => {
  root.dataset.state = "failed";
  said.textContent = event.message || "the browser has no module workers";
};

function kernelOf() {
  const names = [...line.value.matchAll(/kernel\.py:(\w+)/g), ...editor.value.matchAll(/jit[^\n]*\n(?:@[^\n]*\n)*def (\w+)/g)];
  return names[0]?.[1] ?? "kernel";
}

// The value whose layout is drawn: the accumulator of a product, else what is allocated or loaded first.
function valueOf() {
  const named = (call) => editor.value.match(new RegExp(`^ *(\\w+)[^=\\n]*= *(?:tlx?\\.)(?:${call})\\(`, "m"))?.[1];
  return named("async_dot|dot") ?? named("local_alloc") ?? named("load") ?? "x";
}

// What follows the kernel on the line: types and sizes, which other commands take, too.
const rest = () => (line.value.match(/kernel\.py:\w+(.*)$/)?.[1] ?? "").replace(/ (--all|(?:-o|--width|--diff|--emit|--layout|--svg|--why) \S+)/g, "");

const commands = {
  passes: () => [`tlx explain kernel.py:${kernelOf()}${rest()}`, "passed"],
  explain: () => [`tlx explain kernel.py:${kernelOf()}${rest()}`, "ran"],
  map: () => [`tlx map kernel.py:${kernelOf()}${rest()} -o map.svg${innerWidth < 720 ? " --width 400" : ""}`, "ran"],
  layout: () => [`tlx explain kernel.py:${kernelOf()}${rest()} --layout ${valueOf()} --svg layout.svg`, "ran"],
  ttgir: () => [`tlx compile kernel.py:${kernelOf()}${rest()} --emit ttgir -o -`, "ran"],
  script: () => ["python kernel.py", "ran"],
};
for (const [name, command] of Object.entries(commands)) {
  find(name).addEventListener("click", () => {
    const [text, kind] = command();
    line.value = text;
    ask(kind);
  });
}
find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask("ran");
});
find("share").addEventListener("click", async () => {
  location.hash = `code=${await encoded(editor.value)}&line=${encodeURIComponent(line.value)}`;
  said.textContent = "the address of this page has the code now";
});
editor.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("form").requestSubmit();
});

const given = new URLSearchParams(location.hash.slice(1));
if (given.has("code")) editor.value = await decoded(given.get("code"));
else editor.value = await (await fetch(new URL("example.txt", here))).text();
line.value = given.get("line") ?? "";
said.textContent = "loading Python …";
root.dataset.state = "loading";
