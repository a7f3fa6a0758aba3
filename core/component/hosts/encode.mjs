// Makes a component of the core module, and checks that it imports nothing.
//
//     encode.mjs TRANSPILER MODULE COMPONENT      (TRANSPILER: the folder of the package @bytecodealliance/jco-transpile)
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [transpiler, module, component] = process.argv.slice(2);
const { $init, tools } = await import(pathToFileURL(resolve(transpiler, "vendor/wasm-tools.js")));
await $init;
const bytes = tools.componentNew(readFileSync(module));
const wit = tools.componentWit(bytes);
const imports = wit.match(/^\s*import .*/gm);
if (imports) {
  console.error(`the component imports ${imports.map((line) => line.trim()).join(", ")}`);
  process.exit(1);
}
writeFileSync(component, bytes);
