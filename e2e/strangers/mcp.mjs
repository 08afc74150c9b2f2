// A client of MCP that others have written: the SDK of the older protocol (1) or that of the newer
// (2), over HTTP or a child process. It says yes to everything that it is asked, and prints what
// came of it as JSON.
//
//	node mcp.mjs '{"sdk": 1, "url": "http://…/mcp", "key": "…", "machine": {…}}'
//	node mcp.mjs '{"sdk": 2, "mode": "auto", "command": "dialai", "args": ["mcp"], "machine": {…}}'

const given = JSON.parse(process.argv[2]);

const load = {
  1: async () => ({
    Client: (await import("@modelcontextprotocol/sdk/client/index.js")).Client,
    HTTP: (await import("@modelcontextprotocol/sdk/client/streamableHttp.js")).StreamableHTTPClientTransport,
    Stdio: (await import("@modelcontextprotocol/sdk/client/stdio.js")).StdioClientTransport,
    elicit: (await import("@modelcontextprotocol/sdk/types.js")).ElicitRequestSchema,
  }),
  2: async () => ({
    Client: (await import("@modelcontextprotocol/client")).Client,
    HTTP: (await import("@modelcontextprotocol/client")).StreamableHTTPClientTransport,
    Stdio: (await import("@modelcontextprotocol/client/stdio")).StdioClientTransport,
    elicit: "elicitation/create",
  }),
};

const { Client, HTTP, Stdio, elicit } = await load[given.sdk]();
const out = { forms: 0 };
const options = { capabilities: { elicitation: { form: {} } } };
if (given.mode) options.versionNegotiation = { mode: given.mode };
const client = new Client({ name: "stranger", version: "1" }, options);
client.setRequestHandler(elicit, async (request) => {
  out.forms++;
  const { properties } = request.params.requestedSchema;
  const content = Object.fromEntries(Object.entries(properties).map(([name, p]) => [name, p.enum ? p.enum[0] : (given.type ?? "yes")]));
  return { action: "accept", content };
});
const transport = given.url
  ? new HTTP(new URL(given.url), { requestInit: { headers: { Authorization: `Bearer ${given.key}` } } })
  : new Stdio({ command: given.command, args: given.args, env: given.env, stderr: "ignore" });
await client.connect(transport);
out.server = client.getServerVersion?.()?.name;
out.tools = (await client.listTools()).tools.map((t) => t.name);
const call = async (name, args) => await client.callTool({ name, arguments: args });
const ran = await call("run_session", { machine: given.machine });
out.status = ran.structuredContent.session.status;
const sessionId = ran.structuredContent.session.sessionId;
out.asked = (await call("execute_transition", { sessionId, transitionName: given.transition, toState: given.target, specialistId: given.human })).structuredContent;
out.after = (await call("get_session", { sessionId })).structuredContent.currentState;
out.refused = await call("get_session", { sessionId: "none" });
out.inbox = JSON.parse((await client.readResource({ uri: "dialai://inbox" })).contents[0].text).items.length;
out.prompts = (await client.listPrompts()).prompts.map((p) => p.name);
out.sessions = (await call("get_sessions", {})).structuredContent.items.length;
await client.close();
console.log(JSON.stringify(out));
process.exit(0);
