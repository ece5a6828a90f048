"""A server of 2025-11-25 whose tool works only after a person has visited a page."""

import json
import sys

asked = 0
calls = 0


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": id, "result": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "visits", "version": "1"},
        }})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [{"name": "files", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        calls += 1
        if calls < 3:
            asked += 1
            visit = {
                "mode": "url", "elicitationId": f"visit-{asked}", "url": f"https://example.com/{asked}",
                "message": "Log in",
            }
            send({"id": id, "error": {
                "code": -32042, "message": "A visit is required", "data": {"elicitations": [visit]},
            }})
            send({"method": "notifications/elicitation/complete", "params": {"elicitationId": f"visit-{asked}"}})
        else:
            send({"id": id, "result": {"content": [{"type": "text", "text": f"{calls} calls"}]}})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "Method not found"}})
