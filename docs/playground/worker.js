// Python of the playground, in a worker: the page stays alive while a command runs.
// It loads Pyodide and the packages from beside this file. numpy comes when a command needs it: from beside Pyodide
// where the site has it, else from the address that Pyodide's own documentation names.

let python, browser, base;
const send = (message) => postMessage(message);
const seconds = (since) => (performance.now() - since) / 1000;

async function started() {
  const since = performance.now(), times = {};
  const packages = fetch("packages.zip").then((answer) => {
    if (!answer.ok) throw new Error(`packages.zip: ${answer.status}`);
    return answer.arrayBuffer();
  });
  packages.catch(() => {});
  let module;
  try {
    module = await import("./pyodide/pyodide.mjs");
  } catch {
    throw new Error("this copy of the site was built without Pyodide: make playground, then make docs");
  }
  const lock = await (await fetch("pyodide/pyodide-lock.json")).json();
  const numpy = lock.packages.numpy.file_name;
  const local = await fetch(`pyodide/${numpy}`, { method: "HEAD" }).then((answer) => answer.ok, () => false);
  base = local ? new URL("pyodide/", location).href : `https://cdn.jsdelivr.net/pyodide/v${module.version}/full/`;
  python = await module.loadPyodide({ indexURL: new URL("pyodide/", location).href, packageBaseUrl: base });
  times.python = seconds(since);
  python.unpackArchive(await packages, "zip", { extractDir: "/lib/python" + python.runPython(
    "import sys; '.'.join(map(str, sys.version_info[:2]))") + "/site-packages" });
  browser = python.pyimport("in_browser");
  browser.set_up();
  times.packages = seconds(since);
  return times;
}

async function withNumpy() {
  try {
    await python.loadPackage(["numpy", "ml-dtypes"], { messageCallback: () => {} });
    python.runPython("import importlib, sys; importlib.invalidate_caches(); import numpy, ml_dtypes");
    return true;
  } catch {
    return false;
  }
}

const ready = started();
ready.then((times) => send({ kind: "ready", times }), (error) => send({ kind: "failed", text: String(error.message) }));

onmessage = async ({ data }) => {
  const since = performance.now();
  try {
    await ready;
  } catch {
    return;
  }
  try {
    const work = () => JSON.parse(data.kind === "opened" ? browser.opened(data.source)
      : browser[data.kind](data.source, data.line));
    let found = work();
    if (found.missing === "numpy" || found.missing === "ml_dtypes") {
      send({ kind: "said", text: `loading numpy from ${new URL(base).host}` });
      if (await withNumpy()) found = work();
      else found.text = `This command runs a kernel, which needs numpy. It can't be fetched from ${base}\n`;
    }
    send({ ...found, kind: data.kind, id: data.id, seconds: seconds(since) });
  } catch (error) {
    send({ kind: data.kind, id: data.id, status: 1, text: String(error.message), pictures: {}, passes: [], seconds: seconds(since) });
  }
};
