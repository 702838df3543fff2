"""A decoder in plain PyTorch: the same network, from the same weights, as normlab trained and exported here.

    from model import load
    model = load()                       # eval mode; logits = model(ids), ids [B, T] -> [B, T, V]
    model(ids, real)                     # real [B, T]: False where a position is padding

    python model.py --prompt "Once "                                   writes text
    python model.py --train text.txt --steps 1000                      trains on
    torchrun --nproc-per-node 4 model.py --train text.txt --steps 1000 the same on four processes or GPUs (DDP)

Needs torch and safetensors, for text tokenizers too. CONFIG holds the settings under normlab's names.
"""
import argparse
import json
import math
import os
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = json.loads("""
@CONFIG@
""")
IGNORE = -100  # the target of a position that has none


class PowerStandardize(torch.autograd.Function):
    """z = x / sqrt(P + eps) with the running mean square P, and the backward of PowerNorm (Shen et al. 2020): with g the
    gradient of z and n the running projection, dx = (g - n z) / sqrt(P + eps), then n += momentum mean((g - n z) z)."""

    @staticmethod
    def forward(ctx, x, real, square, projection, eps, momentum):
        scale = torch.rsqrt(square + eps)
        z = x * scale
        ctx.save_for_backward(z, real, scale)
        ctx.projection, ctx.momentum = projection, momentum
        square.lerp_((x * x * real).sum((0, 1)) / real.sum(), momentum)
        return z

    @staticmethod
    def backward(ctx, g):
        z, real, scale = ctx.saved_tensors
        rest = g - ctx.projection * z
        ctx.projection.add_(ctx.momentum * (rest * z * real).sum((0, 1)) / real.sum())
        return rest * scale, None, None, None, None, None


class Norm(nn.Module):
    """CONFIG["model"]["norm"] over x [B, T, C]. real [B, T, 1] is 1 where a position enters the statistics, else 0."""

    def __init__(self, c):
        super().__init__()
        self.kind, self.eps, self.momentum = c["norm"], c["norm_eps"], c["norm_momentum"]
        self.groups, self.warmup = c["norm_groups"], c["norm_warmup_steps"]
        self.counts_padding = c["norm_padding"] == "count"
        d = c["d_model"]
        if self.kind == "none":
            return
        self.weight = nn.Parameter(torch.ones(1 if self.kind == "scale" else d))
        self.bias = nn.Parameter(torch.zeros(d)) if c["bias"] and self.kind not in ("rms", "scale") else None
        if self.kind == "dyt":
            self.alpha = nn.Parameter(torch.full((1,), 0.5))
        if self.kind in ("batch", "batch_step"):
            shape = (d,) if self.kind == "batch" else (c["context_length"], d)
            self.register_buffer("running_mean", torch.zeros(shape))
            self.register_buffer("running_var", torch.ones(shape))
        if self.kind == "fixed":
            self.register_buffer("deviation", torch.ones(1))
        if self.kind == "power":
            self.register_buffer("running_square", torch.ones(d))
            self.register_buffer("running_projection", torch.zeros(d))
            self.register_buffer("updates", torch.zeros(1))

    def forward(self, x, real):
        if self.kind == "none":
            return x
        if self.counts_padding:
            real = torch.ones_like(real)
        y = self.normalize(x, real) * self.weight
        return y if self.bias is None else y + self.bias

    def normalize(self, x, real):
        kind = self.kind
        if kind == "layer":
            return F.layer_norm(x, x.shape[-1:], eps=self.eps)
        if kind == "rms":
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        if kind == "scale":
            return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(self.eps)
        if kind == "group":  # each of `groups` groups of the channels of one token
            return F.group_norm(x.reshape(-1, x.shape[-1]), self.groups, eps=self.eps).view_as(x)
        if kind == "fixed":  # what a norm divided by on average, before it was taken out
            return x / self.deviation
        if kind == "dyt":
            return torch.tanh(self.alpha * x)
        if kind == "instance":  # a channel over the positions of its sample
            return self.standardize(x, real, (1,))[0]
        if kind == "layer_seq":  # all channels of all positions of a sample
            return self.standardize(x, real, (1, 2))[0]
        if kind in ("batch", "batch_step"):
            return self.by_batch(x, real) if self.training else self.by_running(x)
        if kind == "power":
            return self.power(x, real)
        raise ValueError(f"the norm {kind} is unknown here")

    def standardize(self, x, real, axes):
        """(x - mean) / sqrt(var + eps), with mean, var (biased) and the count over `axes` of what is real."""
        real = real.expand_as(x) if 2 in axes else real
        count = real.sum(axes, keepdim=True)
        mean = (x * real).sum(axes, keepdim=True) / count.clamp_min(1)
        var = ((x - mean).square() * real).sum(axes, keepdim=True) / count.clamp_min(1)
        return (x - mean) * torch.rsqrt(var + self.eps), mean, var, count

    def by_batch(self, x, real):
        """Over the rows of the batch and, but for batch_step, its positions. The running variance is the unbiased one;
        a position that no row has stays as it was."""
        y, mean, var, count = self.standardize(x, real, (0, 1) if self.kind == "batch" else (0,))
        with torch.no_grad():
            time = slice(x.shape[1] if self.kind == "batch_step" else None)
            share = self.momentum * (count > 0).to(x.dtype)
            for running, now in ((self.running_mean, mean), (self.running_var, var * count / (count - 1).clamp_min(1))):
                part = running[time]
                part.add_((share * (now - part)).view_as(part))
        return y

    def by_running(self, x):
        time = slice(x.shape[1] if self.kind == "batch_step" else None)
        return (x - self.running_mean[time]) * torch.rsqrt(self.running_var[time] + self.eps)

    def power(self, x, real):
        if not self.training:
            return x * torch.rsqrt(self.running_square + self.eps)
        before = self.updates.item()
        self.updates += 1
        if before >= self.warmup:
            return PowerStandardize.apply(x, real, self.running_square, self.running_projection, self.eps,
                                          self.momentum)
        square = (x.square() * real).sum((0, 1)) / real.sum()  # the first batches: their own mean square
        with torch.no_grad():
            self.running_square.lerp_(square, 1 / (before + 1))
        return x * torch.rsqrt(square + self.eps)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["d_model"]
        self.heads, self.dropout, self.rope = c["n_heads"], c["dropout"], c["position"] == "rope"
        self.base = c["rope_base"]
        self.qkv = nn.Linear(d, 3 * d, bias=c["bias"])
        self.out = nn.Linear(d, d, bias=c["bias"])

    def rotate(self, x):
        """The halves of each head against one another: pair i of position t by the angle t base^(-i / half)."""
        half = x.shape[-1] // 2
        frequency = self.base ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequency
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(d, -1))
        if self.rope:
            q, k = self.rotate(q), self.rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return F.dropout(self.out(y.transpose(1, 2).reshape(B, T, d)), self.dropout, self.training)


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.activation, self.dropout = c["activation"], c["dropout"]
        self.up = nn.Linear(c["d_model"], c["d_ff"], bias=c["bias"])
        if self.activation == "swiglu":
            self.gate = nn.Linear(c["d_model"], c["d_ff"], bias=c["bias"])
        self.down = nn.Linear(c["d_ff"], c["d_model"], bias=c["bias"])

    def forward(self, x):
        if self.activation == "swiglu":
            hidden = F.silu(self.gate(x)) * self.up(x)
        elif self.activation == "relu":
            hidden = F.relu(self.up(x))
        else:
            hidden = F.gelu(self.up(x), approximate="tanh" if self.activation == "gelu_tanh" else "none")
        return F.dropout(self.down(hidden), self.dropout, self.training)


class Block(nn.Module):
    """Two sublayers f with their norms n (in a sandwich, n before and m after f), where the placement has them."""

    def __init__(self, c):
        super().__init__()
        self.placement = c["placement"]
        self.scale = (2 * c["n_layers"]) ** 0.25  # of the stream, under deepnorm
        self.attn, self.mlp = Attention(c), Mlp(c)
        if self.placement != "none":
            self.attn_norm, self.mlp_norm = Norm(c), Norm(c)
        if self.placement == "sandwich":
            self.attn_out_norm, self.mlp_out_norm = Norm(c), Norm(c)

    def sublayer(self, x, f, n, m, real):
        if self.placement == "pre":
            return x + f(n(x, real))
        if self.placement == "post":
            return n(x + f(x), real)
        if self.placement == "sandwich":
            return x + m(f(n(x, real)), real)
        if self.placement == "res_post":
            return x + n(f(x), real)
        if self.placement == "deepnorm":
            return n(self.scale * x + f(x), real)
        return x + f(x)

    def forward(self, x, real):
        norm = lambda name: getattr(self, name, None)
        x = self.sublayer(x, self.attn, norm("attn_norm"), norm("attn_out_norm"), real)
        return self.sublayer(x, self.mlp, norm("mlp_norm"), norm("mlp_out_norm"), real)


def sinusoidal_positions(time, channels):
    """[T, C]: channel 2i is sin(t 10000^(-2i / C)), channel 2i + 1 the cosine (Vaswani et al. 2017)."""
    frequency = 10000.0 ** (-torch.arange(0, channels, 2, dtype=torch.float64) / channels)
    angle = torch.arange(time, dtype=torch.float64)[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], -1).view(time, channels)


class Decoder(nn.Module):
    def __init__(self, c=CONFIG["model"]):
        super().__init__()
        self.c = c
        d = c["d_model"]
        self.tok_embed = nn.Embedding(c["vocab_size"], d)
        if c["position"] == "learned":
            self.pos_embed = nn.Embedding(c["context_length"], d)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["n_layers"]))
        if c["placement"] in ("pre", "sandwich", "res_post"):
            self.final_norm = Norm(c)
        if not c["tie_embeddings"]:
            self.head = nn.Linear(d, c["vocab_size"], bias=False)

    def forward(self, ids, real=None):
        """ids [B, T], T at most context_length -> logits [B, T, V]. Padding, where real is False, enters as zeros."""
        x = self.tok_embed(ids)
        if self.c["position"] == "learned":
            x = x + self.pos_embed.weight[:ids.shape[1]]
        if self.c["position"] == "sinusoidal":
            x = x + sinusoidal_positions(*x.shape[1:]).to(x)
        real = torch.ones_like(x[..., :1]) if real is None else real[..., None].to(x)
        x = F.dropout(x * real, self.c["dropout"], self.training)
        for block in self.blocks:
            x = block(x, real)
        if hasattr(self, "final_norm"):
            x = self.final_norm(x, real)
        return F.linear(x, self.tok_embed.weight if self.c["tie_embeddings"] else self.head.weight)

    @torch.no_grad()
    def generate(self, ids, count, temperature=0.0):
        """`count` tokens that continue the list `ids`, the likeliest ones at temperature 0."""
        ids = list(ids)
        for _ in range(count):
            window = torch.tensor([ids[-self.c["context_length"]:]], device=self.tok_embed.weight.device)
            logits = self(window)[0, -1]
            ids.append(int(logits.argmax()) if temperature == 0 else
                       int(torch.multinomial((logits / temperature).softmax(-1), 1)))
        return ids


def loss_of(logits, targets):
    """The mean cross-entropy in nats over the targets that are not IGNORE."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE)


def load(path=HERE / "model.safetensors"):
    model = Decoder()
    model.load_state_dict(load_file(path))
    return model.eval()


def make_optimizer(model, c=CONFIG["optimizer"]):
    """AdamW, or SGD with decoupled decay; matrices and embeddings decay, gains and biases never."""
    groups = [{"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": c["weight_decay"]},
              {"params": [p for p in model.parameters() if p.dim() != 2], "weight_decay": 0.0}]
    if c["name"] == "adamw":
        return torch.optim.AdamW(groups, lr=c["lr"], betas=tuple(c["betas"]), eps=c["eps"])
    for group in groups:
        group["decoupled"] = group.pop("weight_decay")
    optimizer = torch.optim.SGD(groups, lr=c["lr"], momentum=c["momentum"])

    @torch.no_grad()
    def decay(optimizer, *_):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["decoupled"])

    optimizer.register_step_pre_hook(decay)
    return optimizer


def clip(model, limit=CONFIG["optimizer"]["grad_clip"]):
    """Scales all gradients together to a norm of at most `limit`; 0 is off. Returns their norm before."""
    return nn.utils.clip_grad_norm_(model.parameters(), limit if limit > 0 else math.inf)


def learning_rate(t, steps, c=CONFIG["schedule"], lr=CONFIG["optimizer"]["lr"]):
    """Of update t, from 1 to `steps`."""
    full, low = max(c["warmup_steps"], 1), c["min_lr"]
    if t <= full:
        return lr * t / full
    progress = min(1, (t - full) / (steps - full)) if steps > full else 1
    return {"constant": lr,
            "linear": lr + (low - lr) * progress,
            "cosine": low + (lr - low) * 0.5 * (1 + math.cos(math.pi * progress)),
            "inverse_sqrt": max(low, lr * math.sqrt(full / t))}[c["decay"]]


def train(model, ids, steps, batch_size=CONFIG["train"]["batch_size"]):
    """Trains on windows of a token sequence drawn at random; under torchrun each process draws its own."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device(f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu")
    model = model.to(device).train()
    if world > 1:
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    whole = nn.parallel.DistributedDataParallel(model) if world > 1 else model
    optimizer = make_optimizer(model)
    draw = torch.Generator().manual_seed(1337 + rank)
    length = model.c["context_length"]
    for t in range(1, steps + 1):
        starts = torch.randint(len(ids) - length, (batch_size,), generator=draw)
        rows = torch.stack([ids[s:s + length + 1] for s in starts.tolist()]).to(device)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(t, steps)
        optimizer.zero_grad()
        loss = loss_of(whole(rows[:, :-1]), rows[:, 1:])
        loss.backward()
        clip(model)
        optimizer.step()
        if rank == 0 and (t % 10 == 0 or t == steps):
            print(f"step {t}/{steps} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        save_file(model.state_dict(), HERE / "trained.safetensors")
    if world > 1:
        torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description="Writes text with the model, or trains it on.")
    parser.add_argument("--prompt", default="\n")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--train", metavar="FILE", help="a text to train on; the result is trained.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))
    if args.train:
        text = pathlib.Path(args.train).read_text(encoding="utf-8")
        train(load(), torch.tensor(tokenizer.encode(text).ids), args.steps)
    else:
        print(tokenizer.decode(load().generate(tokenizer.encode(args.prompt).ids, args.tokens, args.temperature)))


if __name__ == "__main__":
    main()
