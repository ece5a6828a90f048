// Starts @copilotkit/aimock with a few fixtures, prints its URL, and ends when its stdin does.
// Argument: the folder of the package.
import { pathToFileURL } from "node:url";

const { LLMock } = await import(pathToFileURL(`${process.argv[2]}/dist/index.js`));

// The first request of each of these gets `first`, and the second one an answer.
const twice = (userMessage, first, options) => [
  { match: { userMessage, sequenceIndex: 0 }, response: first, ...options },
  { match: { userMessage, sequenceIndex: 1 }, response: { content: `After ${userMessage}.` } },
];
const error = (status, type) => ({ error: { message: "Not now", type }, status });

const mock = new LLMock({ port: 0, logLevel: "silent" });
for (const fixture of [
  { match: { userMessage: "hello" }, response: { content: "Good morning to you." } },
  {
    match: { userMessage: "tools", hasToolResult: false },
    response: { toolCalls: [{ name: "time_now", arguments: '{"title":"Rome"}' }] },
  },
  { match: { userMessage: "tools", hasToolResult: true }, response: { content: "It is noon." } },
  ...twice("limit", error(429, "rate_limit_error")),
  ...twice("broken", error(500, "api_error")),
  ...twice("cut", { content: "This answer never ends." }, { chunkSize: 5, truncateAfterChunks: 3 }),
]) {
  mock.addFixture(fixture);
}
process.stdout.write(`${await mock.start()}\n`);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
