// A broker in a process of its own, and its control: each operation of its OpenAPI description is a method.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export async function startBroker(args) {
  const options = ["broker", "--until-stdin-closes", ...args]; // so it ends with these tests, even if they are killed
  const process = spawn("abeyant", options, { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await Promise.race([
    once(createInterface(process.stdout), "line"),
    once(process, "exit").then(([status]) => { throw new Error(`abeyant broker ended with status ${status}`); }),
  ]);
  const ports = JSON.parse(line);
  return {
    servers: ports["bootstrap.servers"].split(","),
    control: await connect(ports.control),
    async stop() {
      process.kill();
      const [status] = await once(process, "exit");
      if (status !== 0) throw new Error(`abeyant broker ended with status ${status}`);
    },
  };
}

async function connect(url) {
  const { paths } = await (await fetch(`${url}openapi.json`)).json();
  const operations = {};
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { operationId, parameters }] of Object.entries(methods)) {
      operations[operationId] = (given = {}, body = undefined) => {
        const target = new URL(path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(given[name])), url);
        for (const { name, in: where } of parameters) {
          if (where === "query" && name in given) target.searchParams.set(name, given[name]);
        }
        return call(method, target, body);
      };
    }
  }
  return operations;
}

async function call(method, target, body) {
  const json = body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await fetch(target, { method: method.toUpperCase(), ...json });
  const answer = response.status === 204 ? null : await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
