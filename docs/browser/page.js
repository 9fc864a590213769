// Draws what wheel.py says, and hands it what the reader does. Loads nothing from elsewhere.
const find = (id) => document.getElementById(id);

function make(kind, text, className = "") {
  const made = document.createElement(kind);
  made.textContent = text;
  made.className = className;
  return made;
}

async function load() {
  if (location.protocol === "file:") throw new Error("a browser runs it from a server only: python3 -m http.server");
  const built = await fetch("abeyant.whl");
  if (!built.ok) {
    const missing = await fetch("missing.txt"); // written by scripts/browser_files.py
    throw new Error(missing.ok ? await missing.text() : "this copy of the site was built without the package");
  }
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const pyodide = await loadPyodide();
  pyodide.unpackArchive(await built.arrayBuffer(), "wheel");
  const source = await fetch("wheel.py");
  pyodide.runPython(await source.text());
  return pyodide;
}

let python, wheel, lanes;

function draw() {
  const { started, cancelled, pending, ...view } = JSON.parse(python.globals.get("view")());
  find("clock").textContent = view.now;
  find("counts").textContent = `${started} started, ${view.expired} due, ${cancelled} cancelled, ${view.cascaded} cascades`;
  wheel.show({ ...view, pending: pending.length });
  // A lane for each wheel: what is on it is due within the times that it spans.
  const rows = pending.map(({ number, left, level }) => ({ keys: [`wheel ${level + 1}`], kind: `time-out ${number}`, level, left }));
  lanes.show(rows.sort((one, other) => one.level - other.level), () => 1);
  find("lanes").toggleAttribute("hidden", rows.length === 0);
  find("pending").replaceChildren(
    ...pending.map(({ number, at }) => {
      const item = make("li", "");
      const button = make("button", `Cancel ${number}, due at ${at} s`);
      button.dataset.cancel = number;
      button.onclick = () => {
        python.globals.get("cancel")(number);
        tell(`${number} cancelled`);
        draw();
      };
      item.append(button);
      return item;
    }),
  );
}

function tell(text, className = "") {
  find("log").prepend(make("li", text, className));
}

function start(delay) {
  const number = python.globals.get("start")(delay);
  tell(`${number} started, for ${delay} s`);
}

function turn(seconds) {
  for (const { at, due, cascaded } of JSON.parse(python.globals.get("turn")(seconds))) {
    if (cascaded) tell(`at ${at} s: ${cascaded} cascaded, to a lower wheel or its due tick`);
    if (due.length) tell(`at ${at} s: ${due.join(", ")} due`, "due");
  }
}

find("start").onclick = () => {
  if (find("delay").reportValidity()) { start(find("delay").valueAsNumber); draw(); }
};
find("some").onclick = () => { for (let i = 0; i < 10; i++) start(1 + Math.floor(Math.random() * 500)); draw(); };
for (const button of document.querySelectorAll("[data-turn]")) {
  button.onclick = () => { turn(Number(button.dataset.turn)); draw(); };
}

try {
  python = await load();
  wheel = AbeyantDrawing.wheel(find("wheel"));
  lanes = AbeyantDrawing.lanes(find("lanes"));
  const version = python.runPython("import sys, abeyant; f'abeyant {abeyant.__version__}, Python {sys.version.split()[0]}'");
  find("state").textContent = `Ready: ${version}`;
  find("controls").disabled = false;
  draw();
} catch (error) {
  find("state").textContent = `It cannot run here: ${error.message}`;
}
