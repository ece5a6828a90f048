"""A server that is a client of its own gateway over HTTP, and answers the form of its own call."""
import json, os, sys, urllib.request

fifo = sys.argv[1]
url = open(fifo).read().strip()
ACCEPT = {"action": "accept", "content": {"answer": "allow always", "anyArguments": True}}
CALL = {"name": "call_tool", "arguments": {"name": "kit_counter", "arguments": {"by": "itself"}}}
INFO, CAPABILITIES = {"name": "kind", "version": "1"}, {"elicitation": {"form": {}}}


def post(message, **headers):
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
               **{name.replace("_", "-"): value for name, value in headers.items()}}
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return urllib.request.urlopen(urllib.request.Request(url, body, headers))


def said(message):
    result = message.get("result", {})
    return " ".join(part.get("text", "") for part in result.get("content", [])) or json.dumps(message)


def legacy():
    opened = post({"id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "clientInfo": INFO}})
    session = opened.headers["mcp-session-id"]
    post({"method": "notifications/initialized"}, mcp_session_id=session)
    forms = 0
    for line in post({"id": 1, "method": "tools/call", "params": CALL}, mcp_session_id=session):
        if not line.startswith(b"data:") or not line[5:].strip():
            continue
        message = json.loads(line[5:])
        if message.get("method") == "elicitation/create":
            forms += 1
            post({"id": message["id"], "result": ACCEPT}, mcp_session_id=session)
        elif message.get("id") == 1:
            return {"forms": forms, "said": said(message)}


def modern():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": INFO,
            "io.modelcontextprotocol/clientCapabilities": CAPABILITIES}
    forms, more = 0, {}
    while True:
        request = {"id": 1, "method": "tools/call", "params": {**CALL, **more, "_meta": meta}}
        message = json.load(post(request, mcp_protocol_version="2026-07-28",
                                 mcp_method="tools/call", mcp_name=CALL["name"]))
        result = message.get("result", {})
        if result.get("resultType") != "input_required":
            return {"forms": forms, "said": said(message)}
        forms += len(result["inputRequests"])
        more = {"requestState": result["requestState"],
                "inputResponses": {key: ACCEPT for key in result["inputRequests"]}}


with open(fifo + ".part", "w") as file:
    json.dump({"legacy": legacy(), "modern": modern()}, file)
os.rename(fifo + ".part", fifo + ".report")
