"""A server that ignores cancellations: each call ends when the file of its name is there.

It writes when a call begins and ends, so that the log shows how many it had at once."""

import json
import os
import sys
import threading
import time

folder = sys.argv[1]
lock = threading.Lock()


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(text):
    with lock, open(os.path.join(folder, "calls.log"), "a") as log:
        log.write(text + "\n")


def work(request):
    name = request["params"]["arguments"]["until"]
    note("begin " + name)
    while not os.path.exists(os.path.join(folder, name)):
        time.sleep(0.01)
    note("end " + name)
    send({"id": request["id"], "result": {"content": [{"type": "text", "text": "done"}]}})


for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        about = {"name": "stubborn", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        send({"id": request["id"], "result": result})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"until": {"type": "string"}}}
        send({"id": request["id"], "result": {"tools": [{"name": "work", "inputSchema": schema}]}})
    elif method == "tools/call":
        threading.Thread(target=work, args=(request,), daemon=True).start()
    elif "id" in request and method:
        send({"id": request["id"], "error": {"code": -32601, "message": "unknown"}})
