// Checks that the wasm module FILE imports nothing, plays the sessions and prints the digest.
import { readFileSync } from "node:fs";

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const imports = WebAssembly.Module.imports(module).map((one) => `${one.module}.${one.name}`);
if (imports.length > 0) {
  console.error(`the module imports ${imports.join(", ")}`);
  process.exit(1);
}
const { golden, heap_peak, memory } = new WebAssembly.Instance(module).exports;
const at = golden();
if (at === 0) {
  console.error("the sessions cannot be played");
  process.exit(1);
}
console.log(`digest ${Buffer.from(memory.buffer, at, 32).toString("hex")}`);
console.log(`heap ${heap_peak()} bytes at most, memory ${memory.buffer.byteLength} bytes`);
