// node program.mjs FOLDER: the package's pure wheel in Pyodide, both in FOLDER, with tests/browser/program.py.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide/pyodide.mjs`));
const pyodide = await loadPyodide({ indexURL: `${folder}/pyodide` });
const wheel = readFileSync(`${folder}/abeyant.whl`);
pyodide.unpackArchive(wheel.buffer.slice(wheel.byteOffset, wheel.byteOffset + wheel.length), "wheel");
await pyodide.runPythonAsync(readFileSync(new URL("program.py", import.meta.url), "utf8"));
