#!/usr/bin/env python3
"""The training step of `normlab bench step-A` to `step-D` in PyTorch, as fast as PyTorch on a CPU lets it be.

    /usr/bin/python3 tests/peer/torch_peer.py A --threads 2

float32, dropout 0: forward, backward, clipping of the gradient norm and AdamW on random tokens. Prints one line of
JSON: the median time of a step in ms, and the largest resident memory in 2^20 bytes. Works with PyTorch 1.13 and 2.x.
"""
import argparse
import json
import math
import os
import resource
import statistics
import sys
import time

#          layers, channels, heads, context, rows, vocabulary
PRESETS = {"A": (4, 128, 4, 64, 12, 65), "B": (6, 384, 6, 256, 16, 65),
           "C": (24, 64, 4, 64, 16, 65), "D": (4, 256, 4, 128, 8, 50304)}
LR, BETA1, BETA2, EPS, DECAY, CLIP = 1e-3, 0.9, 0.99, 1e-8, 0.1, 1.0
QUERY_BLOCK = 64  # without a fused attention, long contexts go by blocks of queries, which skip most hidden keys


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=30, help="timed steps, after five others")
    return parser.parse_args()


ARGS = arguments()
# All of this is read when a process or a library is loaded. The C library is told to keep freed memory and to use huge
# pages, or each step would pay for page faults.
SETTINGS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(ARGS.threads))
SETTINGS.update(MALLOC_TOP_PAD_=str(1 << 26), GLIBC_TUNABLES=":".join(
    "glibc.malloc." + s for s in ("hugetlb=1", f"mmap_threshold={1 << 32}", f"trim_threshold={1 << 32}")))
if any(os.environ.get(name) != value for name, value in SETTINGS.items()):
    os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **SETTINGS})

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

FUSED_ATTENTION = hasattr(F, "scaled_dot_product_attention")
FUSED_ADAMW = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 4)


def initial_values(layers, d, context, vocab):
    """Names to values, as normlab names them; matrices are [out, in]."""
    def normal(*shape, scale=0.02):
        return torch.randn(shape) * scale
    residual = 0.02 / math.sqrt(2 * layers)
    values = {"tok": normal(vocab, d), "pos": normal(context, d), "norm.w": torch.ones(d), "norm.b": torch.zeros(d)}
    for i in range(layers):
        for name, out, inside, scale in (("qkv", 3 * d, d, 0.02), ("out", d, d, residual), ("up", 4 * d, d, 0.02),
                                         ("down", d, 4 * d, residual)):
            values[f"{i}.{name}.w"] = normal(out, inside, scale=scale)
            values[f"{i}.{name}.b"] = torch.zeros(out)
        for name in ("norm1", "norm2"):
            values[f"{i}.{name}.w"], values[f"{i}.{name}.b"] = torch.ones(d), torch.zeros(d)
    return values


class FlatAdamW:
    """Parameters and gradients are views into two buffers each (decayed or not), so an update is a few large calls."""

    def __init__(self, values):
        self.step_count, self.buffers, self.parameters = 0, [], {}
        for decayed in (True, False):
            group = {name: v for name, v in values.items() if (v.dim() >= 2) == decayed}
            weights = torch.cat([v.reshape(-1) for v in group.values()])
            grads, first = torch.zeros_like(weights), 0
            for name, v in group.items():
                part = slice(first, first + v.numel())
                leaf = weights[part].view(v.shape).detach().requires_grad_()
                leaf.grad = grads[part].view(v.shape)
                self.parameters[name], first = leaf, part.stop
            state = [torch.zeros_like(weights) for _ in range(3)]
            self.buffers.append((weights, grads, *state, DECAY if decayed else 0.0))

    @torch.no_grad()
    def update(self):
        self.step_count += 1
        norm = math.sqrt(sum(float(torch.dot(grads, grads)) for _, grads, *_ in self.buffers))
        clip = min(1.0, CLIP / (norm + 1e-6))
        correction1, correction2 = 1 - BETA1 ** self.step_count, math.sqrt(1 - BETA2 ** self.step_count)
        for weights, grads, m, v, root, decay in self.buffers:
            m.mul_(BETA1).add_(grads, alpha=(1 - BETA1) * clip)
            v.mul_(BETA2).addcmul_(grads, grads, value=(1 - BETA2) * clip ** 2)
            if decay:
                weights.mul_(1 - LR * decay)
            torch.sqrt(v, out=root).add_(EPS * correction2)
            weights.addcdiv_(m, root, value=-LR * correction2 / correction1)
            grads.zero_()


class FusedAdamW:
    """PyTorch's own, where it has one kernel for it."""

    def __init__(self, values):
        self.parameters = {name: v.requires_grad_() for name, v in values.items()}
        leaves = list(self.parameters.values())
        self.optimizer = torch.optim.AdamW(
            [dict(params=[p for p in leaves if p.dim() >= 2], weight_decay=DECAY),
             dict(params=[p for p in leaves if p.dim() < 2], weight_decay=0.0)],
            lr=LR, betas=(BETA1, BETA2), eps=EPS, fused=True)

    def update(self):
        torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def attention(qkv, heads, mask):
    rows, time, width = qkv.shape
    size = width // 3 // heads
    q, k, v = qkv.view(rows, time, 3, heads, size).permute(2, 0, 3, 1, 4).unbind(0)
    if FUSED_ATTENTION:
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        q, k, v = (part.reshape(rows * heads, time, size) for part in (q, k, v))
        k = k.transpose(1, 2)
        block = QUERY_BLOCK if time >= 2 * QUERY_BLOCK else time
        outputs = []
        for begin in range(0, time, block):
            end = min(begin + block, time)
            scores = torch.baddbmm(mask[begin:end, :end], q[:, begin:end], k[:, :, :end], alpha=size ** -0.5)
            outputs.append(torch.bmm(scores.softmax(-1), v[:, :end]))
        mixed = (torch.cat(outputs, 1) if len(outputs) > 1 else outputs[0]).view(rows, heads, time, size)
    return mixed.transpose(1, 2).reshape(rows, time, width // 3)


def loss_of(p, tokens, targets, layers, heads, mask):
    d = p["tok"].shape[1]

    def linear(name, x):
        return F.linear(x, p[name + ".w"], p[name + ".b"])

    def norm(name, x):
        return F.layer_norm(x, (d,), p[name + ".w"], p[name + ".b"])

    x = F.embedding(tokens, p["tok"]) + p["pos"]
    for i in range(layers):
        x = x + linear(f"{i}.out", attention(linear(f"{i}.qkv", norm(f"{i}.norm1", x)), heads, mask))
        x = x + linear(f"{i}.down", F.gelu(linear(f"{i}.up", norm(f"{i}.norm2", x)), approximate="tanh"))
    logits = F.linear(norm("norm", x), p["tok"])
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def main():
    layers, d, heads, context, rows, vocab = PRESETS[ARGS.preset]
    torch.manual_seed(1337)
    torch.set_num_threads(ARGS.threads)
    torch.set_flush_denormal(True)
    optimizer = (FusedAdamW if FUSED_ADAMW else FlatAdamW)(initial_values(layers, d, context, vocab))
    mask = torch.full((context, context), float("-inf")).triu(1)

    def step():
        tokens = torch.randint(vocab, (rows, context + 1))
        loss = loss_of(optimizer.parameters, tokens[:, :-1], tokens[:, 1:], layers, heads, mask)
        loss.backward()
        optimizer.update()
        return loss.item()

    for _ in range(5):
        step()
    times = []
    for _ in range(ARGS.steps):
        begin = time.perf_counter()
        loss = step()
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps(dict(
        torch=torch.__version__, preset=ARGS.preset, threads=ARGS.threads, ms=round(statistics.median(times), 3),
        ms_min=round(min(times), 3), loss=round(loss, 4),
        peak_rss_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))))


main()
