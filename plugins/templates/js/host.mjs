// Stands in for the host in unit tests: every function of the interface is one of the object `host`, by its name in
// JavaScript, and a test sets those that it needs.
import { readFileSync } from "node:fs";
import { register } from "node:module";

const wit = readFileSync(new URL("../wit/deps/foreshorten-plugin/plugin.wit", import.meta.url), "utf8");
const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
const modules = {};
for (const [, name, body] of wit.matchAll(/^interface ([a-z-]+) \{([\s\S]*?)\n\}/gm)) {
  const functions = [...body.matchAll(/^ {2}([a-z-]+): func/gm)].map(([, fn]) => camel(fn));
  modules[`foreshorten:plugin/${name}@0.1.0`] = functions
    .map((fn) => `export const ${fn} = (...given) => globalThis.host.${fn}(...given);`)
    .join("\n");
}

globalThis.host = {};
const hooks = `
  const modules = ${JSON.stringify(modules)};
  export const resolve = (name, context, next) =>
    name in modules ? { url: name, shortCircuit: true } : next(name, context);
  export const load = (url, context, next) =>
    url in modules ? { format: "module", source: modules[url], shortCircuit: true } : next(url, context);
`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
