// A session of an official TypeScript SDK with a gateway; prints what it saw as JSON.
//
//   session.mjs '{"modules": "…/node_modules", "mode": "legacy", "prefix": "conformant_", "asking": "…", "url": "http://…"}'
//   session.mjs '{…, "mode": "2026-07-28", "prefix": "", "command": "…", "args": […], "env": {…}}'
//
// `legacy` is the first SDK, which knows nothing newer than 2025-11-25; a version is the second. With a prefix, tools
// are searched and called through the gateway's own; without, they are its tools. `asking` is the tool that asks the
// person.
import { createRequire } from 'node:module';

const plan = JSON.parse(process.argv[2]);
// CommonJS is looked for where we say, not beside this file.
const require = createRequire(`${plan.modules}/session.js`);
const legacy = plan.mode === 'legacy';
const answer = async () => ({ action: 'accept', content: { name: 'Ada', username: 'Ada', email: 'a@b' } });
const name = { name: 'session', version: '1.0.0' };
const capabilities = { elicitation: {} };

function first() {
  const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = require('@modelcontextprotocol/sdk/types.js');
  const client = new Client(name, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, answer);
  return { client, StdioClientTransport, StreamableHTTPClientTransport };
}

function second() {
  const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
  const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
  const client = new Client(name, { capabilities, versionNegotiation: { mode: { pin: plan.mode } } });
  client.setRequestHandler('elicitation/create', answer);
  return { client, StdioClientTransport, StreamableHTTPClientTransport };
}

const { client, StdioClientTransport, StreamableHTTPClientTransport } = legacy ? first() : second();
const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url))
  : new StdioClientTransport({ command: plan.command, args: plan.args, env: plan.env });
await client.connect(transport);

const progress = [];
const onprogress = ({ progress: done, total }) => progress.push([done, total]);
async function call(tool, given, options) {
  const request = { name: tool, arguments: given };
  const result = await (legacy ? client.callTool(request, undefined, options) : client.callTool(request, options));
  return result.content[0].text;
}
function use(tool, options) {
  const name = plan.prefix + tool;
  const given = tool === 'test_elicitation' ? { message: 'Who?' } : {};
  return plan.prefix ? call('call_tool', { name, arguments: given }, options) : call(name, given, options);
}

const seen = {
  version: legacy ? (transport.protocolVersion ?? '2025-11-25') : plan.mode,
  tools: (await client.listTools()).tools.map(tool => tool.name),
  answer: await use('test_simple_text'),
  reported: await use('test_tool_with_progress', { onprogress }),
  progress,
  asked: await use(plan.asking),
};
if (plan.prefix) seen.found = await call('search_tools', { query: 'returns one text' });
const offers = client.getServerCapabilities();
if (offers.resources) {
  const { resources } = await client.listResources();
  const { uri } = resources.find(item => item.name === 'static-text');
  seen.resource = (await client.readResource({ uri })).contents[0].text;
}
if (offers.prompts) {
  const { prompts } = await client.listPrompts();
  const { name } = prompts.find(item => item.name.endsWith('test_prompt_with_arguments'));
  const given = { arg1: 'one', arg2: 'two' };
  seen.prompt = (await client.getPrompt({ name, arguments: given })).messages[0].content.text;
}
await client.close();
console.log(JSON.stringify(seen));
