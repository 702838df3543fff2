#!/usr/bin/env python3
"""Compares what normlab writes with what the programs make of it that it is written for.

    make interop                            installs them into build/interop/venv from PyPI (gigabytes, for PyTorch)
    make interop PYTHON=venv/bin/python     takes a Python that has them

One line a comparison, with the largest difference found and the most that is allowed. Exit code 1 when one fails.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ["transformers", "torch", "tokenizers", "safetensors", "tensorboard", "pandas", "PyYAML"]

NORMS = ["layer", "rms", "scale", "group", "instance", "layer_seq", "batch", "batch_step", "power", "dyt"]
PLACEMENTS = ["pre", "post", "sandwich", "res_post", "deepnorm"]
TINY = {"data.size": 20000, "model.n_layers": 2, "model.n_heads": 2, "model.d_model": 16, "model.context_length": 12,
        "train.steps": 3, "train.batch_size": 4, "eval.windows": 4, "log.sample_tokens": 0, "schedule.warmup_steps": 0}
# Models that transformers has, each with another tokenizer.
FOLDERS = {
    "GPT-2, gelu, tied, char": {},
    "GPT-2, gelu_tanh, untied, no bias, bpe": {"model.activation": "gelu_tanh", "model.tie_embeddings": "false",
                                               "model.bias": "false", "data.tokenizer": "bpe",
                                               "data.vocab_size": 300},
    "GPT-2, relu, narrow MLP, byte": {"model.activation": "relu", "model.d_ff": 24, "data.tokenizer": "byte"},
    "Llama, tied, bpe": {"model.norm": "rms", "model.position": "rope", "model.activation": "swiglu",
                         "model.bias": "false", "data.tokenizer": "bpe", "data.vocab_size": 300},
    "Llama, untied, rope_base 500, char": {"model.norm": "rms", "model.position": "rope", "model.activation": "swiglu",
                                           "model.bias": "false", "model.tie_embeddings": "false",
                                           "model.rope_base": 500, "model.norm_eps": "1e-3"},
}
# What the product of norms and placements does not show.
OTHERS = {
    "no norm": {"model.norm": "none", "model.placement": "none"},
    "power, past its warm-up": {"model.norm": "power", "model.norm_warmup_steps": 2},
    "batch, padding counts": {"model.norm": "batch", "model.norm_padding": "count"},
    "rope, swiglu, no bias": {"model.position": "rope", "model.activation": "swiglu", "model.bias": "false"},
    "sinusoidal, relu, untied": {"model.position": "sinusoidal", "model.activation": "relu",
                                 "model.tie_embeddings": "false"},
    "gelu_tanh, group of 8": {"model.activation": "gelu_tanh", "model.norm": "group", "model.norm_groups": 8},
}


def ensure_environment(work):
    """A Python with the packages: PYTHON of the environment, or one of our own."""
    if os.environ.get("PYTHON"):
        return os.environ["PYTHON"]
    python = work / "venv" / "bin" / "python"
    if not (work / "venv" / "complete").exists():
        print("installing", *PACKAGES, "into", work / "venv", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", work / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-input", *PACKAGES], check=True,
                       stdout=sys.stderr)
        (work / "venv" / "complete").touch()
    return python


class Report:
    """Prints one line a comparison."""

    def __init__(self):
        self.failed = 0
        self.count = 0

    def add(self, name, difference, bound=0.0):
        fits = difference <= bound  # false for NaN
        self.failed += not fits
        self.count += 1
        print(f"{'ok  ' if fits else 'FAIL'}  {name:64}  largest difference {difference:9.2e}, allowed {bound:g}",
              flush=True)

    def equal(self, name, ours, theirs):
        """Sequences: the difference is how many entries are not the same."""
        wrong = sum(a != b for a, b in zip(ours, theirs)) + abs(len(ours) - len(theirs))
        self.add(f"{name} ({len(ours)})", wrong if len(ours) else 1)


class Ours:
    """The program, and runs of it in a directory."""

    def __init__(self, program, work):
        self.program, self.work = str(pathlib.Path(program).resolve()), work
        self.config = work / "base.yaml"
        self.config.write_text("# what the comparisons change is on their command lines\nseed: 1\n")

    def __call__(self, *words, check=True):
        done = subprocess.run([self.program, *map(str, words)], env={**os.environ, "OMP_NUM_THREADS": "1"},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if check and done.returncode != 0:
            sys.exit(f"normlab {' '.join(map(str, words))} failed: {done.stderr.decode()}")
        return done.stdout.decode()

    def train(self, name, settings):
        run = self.work / name
        self("train", self.config, f"run.dir={run}", "--force",
             *(f"{key}={value}" for key, value in {**TINY, **settings}.items()))
        return run

    def free(self, name):
        """A path where nothing is, since the program replaces nothing: what an earlier comparison left is removed."""
        path = self.work / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        return path

    def export(self, run, to, name):
        path = self.free(name)
        self("export", run, "--to", to, path)
        return path

    def logits(self, run, *more):
        """tokens [N, T] and logits [N, T, V] of the first windows of the validation text."""
        from safetensors.torch import load_file
        file = self.free("logits.safetensors")
        self("eval", run, "--logits", file, *more)
        tensors = load_file(file)
        return tensors["tokens"], tensors["logits"]


def load_module(folder):
    spec = importlib.util.spec_from_file_location("model", folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def largest(a, b):
    return (a.double() - b.double()).abs().max().item()


def compare_transformers(ours, report):
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name, settings in FOLDERS.items():
        run = ours.train("hf-run", {**settings, "model.context_length": 48, "train.steps": 150,
                                    "schedule.warmup_steps": 10, "optimizer.lr": "1e-2"})
        folder = ours.export(run, "hf", "hf")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokens, logits = ours.logits(run)
        with torch.no_grad():
            report.add(f"transformers: logits, {name}", largest(model(tokens).logits, logits), 1e-4)
        prompt = "The "
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        count = 48 - ids.shape[1]
        text = ours("sample", run, "--prompt", prompt, "--tokens", count, "--temperature", "0")[:-1]
        written = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False)[0]
        report.equal(f"transformers: greedy text, {name}", text, tokenizer.decode(written))


def compare_safetensors(ours, report):
    import torch
    from safetensors.torch import load_file, save_file
    run = ours.train("st-run", {"model.norm": "batch"})
    exported = load_file(ours.export(run, "pytorch", "st") / "model.safetensors")
    checkpoint = load_file(run / "checkpoints" / "step-000003.safetensors")
    report.add(f"safetensors reads our files ({len(exported)} of {len(checkpoint)} tensors)",
               max(largest(tensor, checkpoint[name]) for name, tensor in exported.items()))
    # Their writer's file, read by ours: a reference file of a checkpoint that has everything but the results.
    save_file({"input_ids": torch.zeros(1, 2, dtype=torch.int64)}, ours.work / "theirs.safetensors", {"config": "{}"})
    said = json.loads(ours("verify", ours.work / "theirs.safetensors", "--json", check=False))["files"][0]["reason"]
    report.add("ours reads the files of safetensors", 0 if "the key model is missing" in said else 1)


def compare_tensorboard(ours, report):
    import struct
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    run = ours.train("tb-run", {"model.norm": "batch", "train.steps": 60, "log.layers_every": 20})
    events = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    float32 = lambda value: struct.unpack("f", struct.pack("f", value))[0]
    loss = [(line["step"], float32(line["loss"])) for line in lines if line["kind"] == "train"]
    report.equal("tensorboard: train/loss", loss, [(e.step, e.value) for e in events.Scalars("train/loss")])
    layers = [line for line in lines if line["kind"] == "layers"]
    name = "blocks.1.attn.qkv.weight"
    report.equal(f"tensorboard: grad_norm/{name}", [float32(line["grad_norm"][name]) for line in layers],
                 [e.value for e in events.Scalars(f"grad_norm/{name}")])
    report.equal("tensorboard: residual_rms/block.1", [float32(line["residual_rms"][1]) for line in layers],
                 [e.value for e in events.Scalars("residual_rms/block.1")])
    tags = events.Tags()
    report.add(f"tensorboard: {len(tags['scalars'])} scalars, all as group/name",
               sum(tag.count("/") != 1 for tag in tags["scalars"]))
    shown = events.Tensors("config")[0].tensor_proto.string_val[0].decode()
    report.equal("tensorboard: the configuration as text",
                 "".join("    " + line for line in (run / "config.yaml").read_text().splitlines(True)).rstrip(),
                 shown.rstrip())
    # A file that a crash cut short in the middle of a record.
    file = next(run.glob("events.out.tfevents.*"))
    cut = ours.work / "cut"
    shutil.rmtree(cut, ignore_errors=True)
    cut.mkdir()
    (cut / file.name).write_bytes(file.read_bytes()[:-7])
    events = EventAccumulator(str(cut))
    events.Reload()
    report.add("tensorboard: a file cut short is read up to there", 0 if len(events.Scalars("train/loss")) >= 59 else 1)


def mixed_lines():
    """1000 lines: words, numbers, white space, emoji, other scripts, and bytes that are not UTF-8."""
    draw = random.Random(1)
    pieces = [b"the", b" cat", b"Once upon", b"  ", b"\t", b" \t ", b"1984", b" 3.14", b"it's", b"don't", b"!?", b"...",
              b"\r", b"\x0b", b"\x00", b"\x7f", b"#include <x>", "é".encode(), "ß".encode(), "日本語".encode(), "Ελλάς".encode(),
              "🙂".encode(), "👩‍👩‍👧".encode(), "🇪🇺".encode(), "\u00a0".encode(), "\u3000".encode(), "e\u0301".encode()]
    broken = [b"\xff", b"\xc3", b"\xf0\x9f", b"\x80\x80", b"\xed\xa0\x80"]
    lines = []
    for i in range(1000):
        some = pieces + broken if i % 4 == 0 else pieces
        lines.append(b"".join(draw.choice(some) for _ in range(draw.randrange(1, 12))) + b"\n")
    return lines


def compare_tokenizers(ours, report):
    from tokenizers import Tokenizer
    lines = mixed_lines()
    source = ours.work / "mixed.txt"
    source.write_bytes(b"".join(lines))
    small = {"data.source": source, "model.n_layers": 1, "model.d_model": 8, "model.context_length": 2048,
             "train.steps": 1, "train.batch_size": 1, "eval.windows": 1, "log.layers_every": 0}
    for kind, vocab in (("bpe", 600), ("byte", 256)):
        run = ours.train("tok-run", {**small, "data.tokenizer": kind, "data.vocab_size": vocab})
        path = ours.export(run, "pytorch", "tok") / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(path))
        pattern = json.loads(path.read_text())["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
        character = {}
        visible = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
        for byte in range(256):
            hidden = [b for b in range(256) if b not in visible]
            character[byte] = chr(byte) if byte in visible else chr(256 + hidden.index(byte))
        theirs = []
        for line in lines:
            try:
                theirs.append(tokenizer.encode(line.decode()).ids)
            except UnicodeDecodeError:  # the package takes text: its model gets the bytes of each pre-token
                theirs.append([token.id for piece in re.findall(pattern.encode(), line, re.DOTALL)
                               for token in tokenizer.model.tokenize("".join(character[b] for b in piece))])
        # Ours, window by window; the text is given again so that the last line lies in a whole window.
        expected = [id for ids in theirs for id in ids]
        got = []
        for first in range(0, len(lines), 250):
            part = ours.work / "part.txt"
            chunk = b"".join(lines[first:first + 250])
            part.write_bytes(chunk + b"\n" * 4096)
            tokens, _ = ours.logits(run, "--data", part)
            got += tokens.flatten().tolist()[:sum(map(len, theirs[first:first + 250]))]
        report.equal(f"tokenizers: ids of 1000 lines, broken UTF-8 too, {kind}", got, expected)
        whole = [line.decode() for i, line in enumerate(lines) if i % 4]
        report.equal(f"tokenizers: text comes back, {kind}", whole,
                     [tokenizer.decode(tokenizer.encode(line).ids) for line in whole])


def write_case(module, path, rows=6):
    """Three AdamW steps of model.py in float64, from the exported weights, as a file for `normlab verify`."""
    import torch
    from safetensors.torch import save_file
    torch.manual_seed(1)
    model, c = module.load().double().train(), module.CONFIG["model"]
    T = c["context_length"]
    ids = torch.randint(c["vocab_size"], (rows, T + 1))
    ids, targets = ids[:, :-1].clone(), ids[:, 1:].clone()
    for row, length in enumerate([T, T, T, T - 1, T - 3, 2][:rows]):
        ids[row, length:], targets[row, length:] = 0, module.IGNORE
    real = targets != module.IGNORE
    tensors = {"input_ids": ids, "targets": targets}
    state = lambda prefix: {prefix + name: t.detach().clone() for name, t in model.state_dict().items()}
    tensors.update(state("param."))
    optimizer, losses = module.make_optimizer(model), []
    for step in range(3):
        optimizer.zero_grad()
        logits = model(ids, real)
        loss = module.loss_of(logits, targets)
        loss.backward()
        if step == 0:
            tensors["logits"] = (logits * real[..., None]).detach()
            tensors.update({"grad." + name: p.grad.clone() for name, p in model.named_parameters()})
        norm = module.clip(model)
        if step == 0:
            tensors["loss"], tensors["grad_norm"] = loss.detach(), norm.detach()
        losses.append(loss.item())
        optimizer.step()
    tensors.update(state("after."))
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    config = {"model": c, "optimizer": {**module.CONFIG["optimizer"], "steps": 3}, "mode": "train"}
    save_file({name: t.contiguous() for name, t in tensors.items()}, path, {"config": json.dumps(config)})


def compare_model(ours, report, name, settings):
    import torch
    if str(settings.get("model.norm")).startswith("batch"):
        # A bias before such a norm has no gradient but rounding, of which Adam makes a step that the running mean
        # follows: 4e-7 of it from the order of the rows alone. With a larger eps that is too small to matter.
        settings = {**settings, "optimizer.eps": "1e-3"}
    run = ours.train("pt-run", settings)
    folder = ours.export(run, "pytorch", "pt")
    module = load_module(folder)
    tokens, logits = ours.logits(run)
    with torch.no_grad():
        report.add(f"model.py: logits, {name}", largest(module.load()(tokens), logits), 1e-4)
    if settings.get("model.norm") == "fixed":
        return  # verify has no trained model to take its deviations from
    case = ours.work / "case.safetensors"
    write_case(module, case)
    result = json.loads(ours("verify", case, "--double", "--json", check=False))["files"][0]
    errors = result["max_error"].values()
    report.add(f"model.py: three AdamW steps, {name}",
               max(errors) if result["status"] != "refused" else float("nan"), 1e-9)
    if result["status"] != "ok":
        print("     ", result["reason"])


def compare_pytorch(ours, report):
    for norm in NORMS:
        for placement in PLACEMENTS:
            compare_model(ours, report, f"{norm}, {placement}", {"model.norm": norm, "model.placement": placement})
    for name, settings in OTHERS.items():
        compare_model(ours, report, name, settings)
    source = ours.train("from-run", {"model.norm": "layer"})
    compare_model(ours, report, "fixed, pre", {"model.norm": "fixed", "model.from": source})
    run = ours.train("pt-run", {"train.steps": 150, "model.norm": "batch"})
    folder = ours.export(run, "pytorch", "pt")
    module = load_module(folder)
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = ours("sample", run, "--prompt", "The ", "--tokens", 60, "--temperature", "0")[:-1]
    report.equal("model.py: greedy text", text,
                 tokenizer.decode(module.load().generate(tokenizer.encode("The ").ids, 60)))
    ours("data", "tales", tales := ours.free("tales.txt"), "data.size=20000")
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", folder / "model.py",
                           "--train", tales, "--steps", "10"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    report.add("model.py: trains on in two processes (torchrun)", done.returncode)
    if done.returncode:
        print(done.stderr.decode())


def compare_tables(ours, report):
    import pandas
    import yaml
    run = ours.train("csv-run", {"train.steps": 60, "log.layers_every": 20})
    lines = pandas.read_json(run / "metrics.jsonl", lines=True, precise_float=True)
    table = pandas.read_csv(ours.export(run, "csv", "metrics.csv"))

    def add(name, theirs, rows):  # relative, to the last digit that a reader of decimal numbers may get wrong
        report.add(f"pandas: {name} in metrics.jsonl and CSV ({len(rows)})",
                   max(abs(a - b) / abs(b) for a, b in zip(theirs, rows.value, strict=True)), 1e-15)

    train, layers = lines[lines.kind == "train"], lines[lines.kind == "layers"]
    for measure in ("loss", "lr", "grad_norm", "tokens"):
        add(measure, map(float, train[measure]), table[(table.part == "train") & (table.measure == measure)])
    add("update_norm of blocks.1.mlp.up.weight", [norms["blocks.1.mlp.up.weight"] for norms in layers.update_norm],
        table[(table.part == "mlp.up.weight") & (table.layer == 1) & (table.measure == "update_norm")])
    module = load_module(ours.export(run, "pytorch", "yaml"))
    config, known = yaml.safe_load((run / "config.yaml").read_text()), module.CONFIG
    known["model"].pop("vocab_size")
    config["model"].pop("from")  # where weights came from is not part of the network
    for section in ("model", "optimizer", "schedule"):
        report.equal(f"PyYAML: config.yaml, {section}", [(key, type(value), value) for key, value in
                     known[section].items()], [(key, type(value), value) for key, value in config[section].items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", help="transformers safetensors tensorboard tokenizers pytorch tables")
    parser.add_argument("--program", default=str(HERE.parent.parent / "build" / "normlab"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    work = pathlib.Path(args.program).resolve().parent / "interop"
    work.mkdir(exist_ok=True)
    if not args.inside:
        python = ensure_environment(work)
        sys.exit(subprocess.run([python, __file__, "--inside", *sys.argv[1:]],
                                env={**os.environ, "HF_HUB_OFFLINE": "1"}, check=False).returncode)
    parts = {"transformers": compare_transformers, "safetensors": compare_safetensors,
             "tensorboard": compare_tensorboard, "tokenizers": compare_tokenizers, "pytorch": compare_pytorch,
             "tables": compare_tables}
    report, ours = Report(), Ours(args.program, work)
    for name, part in parts.items():
        if not args.parts or name in args.parts:
            part(ours, report)
    print(f"{report.count - report.failed} of {report.count} comparisons agree")
    sys.exit(report.failed > 0)


main()
