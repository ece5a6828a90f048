"""A process with a shell that tries to approve for itself."""
import json, os, pty, subprocess, sys

toolgate, home, config, asked, report = sys.argv[1:6]
approving, reference = open(asked).read().split()
environment = dict(os.environ, TOOLGATE_HOME=home, TOOLGATE_CONFIG=config)


def piped(*arguments):
    done = subprocess.run([toolgate, *arguments], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    return [done.returncode, done.stderr]


def typed(*arguments):
    """At a terminal of its own, where it says yes."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(toolgate, [toolgate, *arguments], environment)
    seen = b""
    try:
        while more := os.read(terminal, 4096):
            seen += more
            if seen.endswith(b"? ") or seen.endswith(b"[y/N] "):
                os.write(terminal, b"y\n")
    except OSError:
        pass
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen.decode()]


def own_gateway():
    """As a client of a gateway of its own, which answers the form itself."""
    gateway = subprocess.Popen([toolgate, "serve", "--stdio"], env=environment, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)

    def send(message):
        gateway.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        gateway.stdin.flush()

    client = {"name": "raw-client", "version": "1.0.0"}
    send({"id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": client}})
    for line in gateway.stdout:
        message = json.loads(line)
        if message.get("method") == "elicitation/create":
            content = {"answer": "allow always", "anyArguments": True}
            send({"id": message["id"], "result": {"action": "accept", "content": content}})
        elif message.get("id") == 1:
            send({"method": "notifications/initialized"})
            call = {"name": "kit_counter", "arguments": {}}
            send({"id": 2, "method": "tools/call", "params": {"name": "call_tool", "arguments": call}})
        elif message.get("id") == 2:
            gateway.stdin.close()
            gateway.wait()
            is_made = "result" in message and not message["result"].get("isError")
            return [0 if is_made else 1, json.dumps(message)]
    return [1, "it has ended"]


attempts = {
    "approve --yes": piped("approve", approving, "--yes"),
    "approve": piped("approve", approving),
    "approve by the name": piped("approve", reference),
    "approve, typed": typed("approve", approving, "--for", "always", "--any-arguments"),
    "call, typed": typed("call", "kit_counter"),
    "token": piped("token", "create", "--name", "mine"),
    "gateway": own_gateway(),
}
with open(report + ".part", "w") as file:
    json.dump(attempts, file)
os.rename(report + ".part", report)
