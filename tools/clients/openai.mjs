// What the OpenAI client for JavaScript does with an endpoint; tools/clients.py runs it, as
//
//   node openai.mjs URL [--key KEY] [--faults]
//
// from a folder with the client installed. Prints one JSON object: how many checks there were, which did not hold, and TTFT and
// ITL of the measured requests by X-Request-ID.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const require = createRequire(process.cwd() + "/");
const { default: OpenAI } = await import(pathToFileURL(require.resolve("openai")));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { key: { type: "string", default: "none" }, faults: { type: "boolean", default: false } },
});
const url = positionals[0];
const model = "m";
const problems = [];
const requests = {};
let checks = 0;

function that(held, problem) {
  checks++;
  if (!held) problems.push(problem);
}

// A call must end with this kind of error, soon.
async function raises(kind, what, call) {
  const started = performance.now();
  try {
    await call();
    that(false, `${what}: no error`);
  } catch (e) {
    that(e instanceof kind, `${what}: ${e.constructor.name}: ${e.message}, not ${kind.name}`);
  }
  const seconds = (performance.now() - started) / 1e3;
  that(seconds < 10, `${what}: took ${seconds.toFixed(1)} s`);
}

// A prompt of so many bytes that begins like no other.
function text(number, length) {
  return (`Question ${number}: ` + "what does the simulator say of this? ".repeat(length / 32 + 1)).slice(0, length);
}

function body(prompt, tokens, stream) {
  const options = stream ? { stream: true, stream_options: { include_usage: true } } : {};
  return { model, messages: [{ role: "user", content: prompt }], max_completion_tokens: tokens, ignore_eos: true, ...options };
}

const named = (id, session) => ({ headers: { "X-Request-ID": id, ...(session ? { "X-Correlation-ID": session } : {}) } });

async function chunksOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

// Whole answers and streams of both endpoints say the same, and count right.
async function answers(client) {
  const models = await client.models.list();
  that(models.data.length === 1 && models.data[0].id === model, "the list of models");
  const prompt = text("of answers", 1000);
  const whole = await client.chat.completions.create(body(prompt, 20, false), named("js-whole"));
  const said = whole.choices[0].message.content;
  that(whole.choices[0].finish_reason === "length" && said.length === 20, `a chat completion: ${JSON.stringify(whole)}`);
  that(whole.usage.prompt_tokens === 1000 && whole.usage.completion_tokens === 20, `its usage: ${JSON.stringify(whole.usage)}`);

  const chunks = await chunksOf(await client.chat.completions.create(body(prompt, 20, true), named("js-again")));
  const streamed = chunks.map((c) => c.choices[0]?.delta?.content ?? "").join("");
  that(streamed === said, `a stream says ${JSON.stringify(streamed)}, the whole answer to the same ${JSON.stringify(said)}`);
  that(chunks.at(-1).usage?.prompt_tokens_details?.cached_tokens >= 900, `the last chunk: ${JSON.stringify(chunks.at(-1))}`);

  const done = await client.completions.create({ model, prompt, max_tokens: 8 });
  that(done.choices[0].text.length === 8 && done.usage.completion_tokens === 8, `a completion: ${JSON.stringify(done)}`);
  const parts = await chunksOf(await client.completions.create({ model, prompt, max_tokens: 8, stream: true }));
  that(parts.map((c) => c.choices[0]?.text ?? "").join("").length === 8, `a stream of a completion: ${JSON.stringify(parts)}`);

  const several = { model, prompt: [prompt, "another"], n: 2, max_tokens: 8, ignore_eos: true };
  const four = await client.completions.create(several);
  that(four.choices.map((c) => c.index).join() === "0,1,2,3" && four.choices.every((c) => c.text.length === 8), `four choices: ${JSON.stringify(four)}`);
  that(four.usage.prompt_tokens === 1007 && four.usage.completion_tokens === 32, `their usage: ${JSON.stringify(four.usage)}`);
  const told = ["", "", "", ""];
  for (const c of await chunksOf(await client.completions.create({ ...several, stream: true }))) told[c.choices[0].index] += c.choices[0].text;
  that(told.join() === four.choices.map((c) => c.text).join(), `streams of four choices: ${JSON.stringify(told)}`);

  const runner = client.chat.completions.stream({ ...body(text("of a runner", 300), 12, false), stream: true });
  const final = await runner.finalChatCompletion().catch((e) => e);
  // The helper refuses answers that were cut off at their length, which says that it read the whole of this one.
  that(final instanceof OpenAI.APIError || final?.choices?.[0]?.message?.content?.length === 12, `the helper for streams: ${final}`);
}

// What the endpoint refuses, as the kinds of errors that programs look for.
async function refusals(client) {
  const chat = (changes) => () => client.chat.completions.create({ ...body("Hello", 4, false), ...changes });
  await raises(OpenAI.BadRequestError, "no messages", chat({ messages: [] }));
  await raises(OpenAI.BadRequestError, "a negative length", chat({ max_completion_tokens: -1 }));
  const long = [{ role: "user", content: "x".repeat(2e6) }];
  await raises(OpenAI.BadRequestError, "a prompt longer than the context", chat({ messages: long }));
  await raises(OpenAI.NotFoundError, "an unknown model", chat({ model: "another" }));
}

// A stream, timed by its chunks with text.
async function measured(client, id, prompt, tokens) {
  const sent = performance.now();
  const times = [];
  let usage;
  for await (const chunk of await client.chat.completions.create(body(prompt, tokens, true), named(id))) {
    if (chunk.choices[0]?.delta?.content) times.push(performance.now());
    usage = chunk.usage ?? usage;
  }
  that(usage?.completion_tokens === tokens, `${id}: usage ${JSON.stringify(usage)}, not ${tokens} tokens`);
  requests[id] = { ttft_ms: times[0] - sent, itl_ms: (times.at(-1) - times[0]) / (tokens - 1), output_tokens: tokens };
}

// Streams one after the other, and many at once that begin one after the other.
async function streams(client) {
  for (let i = 0; i < 6; i++) await measured(client, `js-${i}`, text(i, 1500 + 100 * i), 40);
  const many = Array.from({ length: 50 }, (_, i) =>
    sleep(i * 50).then(() => measured(client, `js-many-${i}`, text(`${i} of many`, 800), 60)));
  for (const one of await Promise.allSettled(many)) that(one.status === "fulfilled", `one of 50 streams: ${one.reason}`);
}

// A stream that is given up; the caller sees on /metrics that nothing runs any more.
async function cancelled(client) {
  const stream = await client.chat.completions.create(body(text("given up", 500), 5000, true), named("js-cancelled"));
  let count = 0;
  for await (const _ of stream) if (++count === 4) break;
  stream.controller.abort();
}

// An endpoint that wants a key and does things wrong, by session.
async function faults() {
  const stranger = new OpenAI({ baseURL: url, apiKey: "wrong", maxRetries: 0, timeout: 20e3 });
  await raises(OpenAI.AuthenticationError, "a wrong key", () => stranger.chat.completions.create(body("Hello", 4, false)));
  const client = new OpenAI({ baseURL: url, apiKey: values.key, maxRetries: 0, timeout: 3e3 });
  const drain = (session) => async () =>
    chunksOf(await client.chat.completions.create(body("Hello", 50, true), named(`js-${session}`, session)));
  await raises(OpenAI.RateLimitError, "429", drain("status-429"));
  await raises(OpenAI.InternalServerError, "500", drain("status-500"));
  await raises(Error, "a dropped connection", drain("drop"));
  await raises(Error, "malformed events", drain("malformed"));
  const said = (await drain("fine")()).map((c) => c.choices[0]?.delta.content ?? "").join("");
  that(said.length === 50, `a request that no rule matches: ${said}`);
}

if (values.faults) {
  await faults();
} else {
  const client = new OpenAI({ baseURL: url, apiKey: values.key, maxRetries: 0, timeout: 60e3 });
  await answers(client);
  await refusals(client);
  await streams(client);
  await cancelled(client);
}
const { version } = JSON.parse(readFileSync(join(dirname(require.resolve("openai")), "package.json")));
process.stdout.write(JSON.stringify({ version, checks, problems, requests }));
process.exit(0);
