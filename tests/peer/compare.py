#!/usr/bin/env python3
"""Times normlab's training steps compared with PyTorch's (torch_peer.py), in turn, on this machine.

    make bench-torch                           Debian's PyTorch, installed where it is missing
    make bench-torch PYTHON=venv/bin/python    the PyTorch of another Python
    tests/peer/compare.py A C --rounds 5       some configurations only

A ratio is the peer's time / ours, the median over pairs of neighbouring runs. Measure on a quiet machine: where
threads have to wait for a core, figures of several threads mean nothing.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
#               timed steps of the peer, aim for the ratio with all threads, aim for our memory in MB
PRESETS = {"A": (100, 2.4, 60), "B": (8, 1.4, 900), "C": (40, 4.0, 200), "D": (12, 1.6, 700)}
ONE_THREAD_TOO = "AC"
PACKAGES = ["python3-torch", "libopenblas0-openmp"]


def peer_python():
    """PYTHON of the environment, or the system's with Debian's torch."""
    if os.environ.get("PYTHON"):
        return os.environ["PYTHON"]
    python = "/usr/bin/python3"
    installed = [subprocess.run(["dpkg", "-s", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                check=False).returncode == 0 for name in PACKAGES] if shutil.which("dpkg") else [False]
    if not all(installed):
        if not shutil.which("apt-get"):
            sys.exit("there is no apt-get here; name a Python that has PyTorch: make bench-torch PYTHON=...")
        print("installing", *PACKAGES, file=sys.stderr)
        as_root = [] if os.geteuid() == 0 else ["sudo"]
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
            subprocess.run([*as_root, "apt-get", *words], check=True, stdout=sys.stderr)
    return python


def result_of(words, environment=None):
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} failed with exit code {done.returncode}")
    return json.loads(done.stdout)


class Peer:
    def __init__(self, python):
        self.python = python
        self.environment = {**os.environ, "OMP_PROC_BIND": "true"}
        tuned = [name for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ]
        if tuned:  # made for this machine or not: the faster way counts
            plain = {name: value for name, value in self.environment.items() if name not in tuned}
            self.environment = min((self.environment, plain), key=lambda env: self.run("A", 1, env)["ms"])
        self.version = ""

    def run(self, preset, threads, environment=None):
        result = result_of([self.python, str(HERE / "torch_peer.py"), preset, "--threads", str(threads), "--steps",
                            str(PRESETS[preset][0])], environment or self.environment)
        self.version = result["torch"]
        return result


def our_run(program, preset, threads):
    document = result_of([program, "bench", f"step-{preset}", "--threads", str(threads), "--json"])
    step = document["steps"][0]
    return {"ms": step["ms_per_step"], "peak_rss_mb": step["peak_rss_mb"]}


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("presets", nargs="*", help="A B C D; all without one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--program", default=str(HERE.parent.parent / "build" / "normlab"))
    args = parser.parse_args()
    if unknown := set(args.presets) - set(PRESETS):
        parser.error(f"{', '.join(sorted(unknown))} is none of A B C D")
    presets = args.presets or list(PRESETS)
    if (load := os.getloadavg()[0]) > 0.5:
        print(f"warning: the machine is not quiet (load {load:.1f}); wait, or distrust what follows", file=sys.stderr)
    peer = Peer(peer_python())
    cases = [(preset, args.threads) for preset in presets]
    if args.threads > 1:
        cases += [(preset, 1) for preset in presets if preset in ONE_THREAD_TOO]
    print("step  threads  peer ms   our ms  ratio    aim  peer MB  our MB    aim")
    for preset, threads in cases:
        pairs = []
        for turn in range(args.rounds):
            print(f"step {preset}, {threads} threads, round {turn + 1} of {args.rounds}", file=sys.stderr)
            pairs.append((peer.run(preset, threads), our_run(args.program, preset, threads)))
        theirs, ours = zip(*pairs)
        ratio = statistics.median(a["ms"] / b["ms"] for a, b in pairs)
        _, speed_aim, memory_aim = PRESETS[preset]
        aim = f"{speed_aim:.1f}" if threads == args.threads and threads > 1 else ""
        print(f"{preset:4}  {threads:7}  {median(theirs, 'ms'):7.1f}  {median(ours, 'ms'):7.1f}  {ratio:5.2f}  {aim:>5}"
              f"  {median(theirs, 'peak_rss_mb'):7.0f}  {median(ours, 'peak_rss_mb'):6.0f}  {memory_aim:5}", flush=True)
    print(f"peer: PyTorch {peer.version} of {peer.python}")


main()
