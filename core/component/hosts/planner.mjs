// The planner in a JavaScript host: drives the component over a session and prints one digest over all views and states.
//
//     planner.mjs TRANSPILER COMPONENT SESSION      (TRANSPILER: the folder of the package @bytecodealliance/jco-transpile)
//
// SESSION is a body in the format of OpenAI Chat Completions. Every message is one turn, in a window of 8,000 tokens; a summary is
// taken from the entries themselves, so no model is needed.
import { createHash } from "node:crypto";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [transpiler, component, file] = process.argv.slice(2);
const WINDOW = 8_000n;
const RESERVE = 1_000n;

/** The component as a JavaScript module. */
async function load() {
  const { transpileBytes } = await import(pathToFileURL(resolve(transpiler, "dist/index.js")));
  const { files } = await transpileBytes(readFileSync(component), { name: "planner" });
  const folder = mkdtempSync(join(tmpdir(), "planner-"));
  try {
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    for (const [name, bytes] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), bytes);
    }
    const made = await import(pathToFileURL(join(folder, "planner.js")));
    await made.$init;
    return made.planning;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const none = new Uint8Array();
const part = (text) => ({ kind: 0, text, data: none, mediaType: "", name: "" });

/** An image as it stands in the message: base64 is not decoded, as no decision depends on it. */
function image(url) {
  const [mediaType, data] = url.slice("data:".length).split(";base64,");
  return { kind: 1, text: "", data: Buffer.from(data), mediaType, name: "" };
}

const parts = (content) =>
  typeof content === "string"
    ? [part(content)]
    : content.map((item) => (item.type === "text" ? part(item.text) : image(item.image_url.url)));

const entry = (kind, content, callId = "", name = "") => ({
  kind, callId, name, error: false, sealed: false, parts: parts(content),
});

/** The entries of one message. */
function entries(message) {
  const { role, content } = message;
  if (role === "tool") return [entry(5, content, message.tool_call_id)];
  if (role !== "assistant") return [entry({ system: 0, user: 1 }[role], content)];
  const out = [];
  if (message.reasoning_content) out.push(entry(3, message.reasoning_content));
  if (content) out.push(entry(2, content));
  for (const call of message.tool_calls ?? []) out.push(entry(4, call.function.arguments, call.id, call.function.name));
  return out;
}

/** SHA-256 over fields, each with its length. */
class Digest {
  hash = createHash("sha256");
  bytes(data) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(data.length);
    this.hash.update(length);
    this.hash.update(data);
  }
  number(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.bytes(bytes);
  }
  text(text) {
    this.bytes(Buffer.from(text));
  }
}

const planning = await load();
const session = planning.Session.open({
  contextWindow: WINDOW, reserveOutputTokens: RESERVE, stages: [], model: "", archive: true,
}, new Uint8Array());
const digest = new Digest();
let [turns, passes] = [0, 0];
for (const message of JSON.parse(readFileSync(file, "utf8")).messages) {
  session.push(entries(message));
  session.begin({
    scope: "", schemaTokens: 0n, overflow: false, cacheCold: false, manual: false, canSummarize: true,
  });
  let step = session.poll();
  for (; step.tag !== "done"; step = session.poll()) {
    if (step.tag === "summarize") session.summarizedByExtract(1_500);
    else session.archived(true);
  }
  turns += 1;
  passes += Number(step.val.compacted);
  for (const { tag, val } of session.view(0)) {
    digest.text(tag);
    if (tag === "entry") digest.number(val);
    else if (tag === "note") digest.text(val);
    else {
      digest.number(val[0]);
      digest.text(val.at(-1));
    }
  }
  digest.bytes(session.state());
}
console.log(`digest ${digest.hash.digest("hex")}`);
console.log(`${turns} turns, ${passes} passes, JavaScript`);
