"""How many threads the arithmetic libraries of this process start with."""

from __future__ import annotations

import os
import sys

__all__ = ["inference_threads", "set_thread_defaults"]


def set_thread_defaults() -> None:
    """Keep the thread pools of torch, FAISS and numpy from spinning against each other, unless someone chose already.

    Measured on 2 cores (embed a query, search 10,000 vectors, multiply once with numpy): 36 + 20 ms with the
    defaults, 10.7 + 1.1 ms with `OPENBLAS_NUM_THREADS=1` and FAISS on one thread. `OMP_NUM_THREADS=1` on top of that
    gains nothing and costs torch its second core, which is a third of the speed of embedding many texts; so it is
    left alone, and the index sets FAISS's threads itself.

    The variable is read when a library is loaded: nothing is set when numpy or torch are here already, or when the
    user set any of these variables. It is set for this process, and so for those that it starts.
    """
    chosen = any(name in os.environ for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"))
    if not chosen and "numpy" not in sys.modules and "torch" not in sys.modules:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"


def inference_threads() -> int:
    """Return with how many threads a model is run that, unlike torch, does not read `OMP_NUM_THREADS` itself.

    As many as that variable says, so that one setting holds for every way to run a model; else one for each processor
    that this process may use.
    """
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isascii() and said.isdigit() and int(said[:4]) > 0:
        return int(said[:4])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
