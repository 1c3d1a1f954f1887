"""Accidental broadcasts that were planted: every kind is found, confirmed, and repaired by the fix that is printed.

`pred` is (n, 1) and `target` is (n,), for two values of n. The right loss is that of the same lines with `pred[:, 0]`.
"""

import linecache

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: cargo xtask test torch")

import torch.nn.functional as F
from torch import nn

import simulcast.torch

PLANTED = {
    # Written out.
    "square": "loss = ((pred - target) ** 2).mean()",
    "square, the other way": "loss = ((target - pred) ** 2).mean()",
    "absolute": "loss = (pred - target).abs().sum()",
    "root of the mean": "loss = torch.sqrt(torch.mean(torch.square(pred - target)))",
    "norm": "loss = (pred - target).flatten().norm()",
    "method": "loss = pred.sub(target).pow(2).mean()",
    "function": "loss = torch.sub(pred, target).square().mean()",
    "named argument": "loss = torch.sub(input=pred, other=target).square().mean()",
    "entry of a batch": "loss = ((pred - batch['y']) ** 2).mean()",
    "attribute": "loss = ((pred - holder.y) ** 2).mean()",
    "quotient": "loss = (pred / target).mean()",
    "relative error": "error = pred - target\nloss = (error / (error.abs() + 1)).mean()",
    "per sample, then weighted": "each = (pred - target) ** 2\nloss = each.sum(-1).sum()",
    "weights of samples": "loss = ((pred - column) ** 2 * target).mean()",
    "accuracy": "loss = (pred.round() == target.round()).float().mean()",
    "logarithms": "loss = torch.xlogy(target.abs(), pred.abs()).mean()",
    "maximum": "loss = torch.maximum(pred, target).mean()",
    "log of a sum": "loss = torch.logaddexp(pred, target).mean()",
    "interpolation": "loss = torch.lerp(pred, target, 0.5).mean()",
    "product added": "loss = torch.addcmul(torch.zeros(()), pred, target).mean()",
    "bounds": "loss = torch.clamp(pred, max=target).mean()",
    "distance": "loss = torch.dist(pred, target)",
    # Functional losses, and their modules.
    "mse_loss": "loss = F.mse_loss(pred, target)",
    "l1_loss": "loss = F.l1_loss(pred, target)",
    "smooth_l1_loss": "loss = F.smooth_l1_loss(pred, target)",
    "huber_loss": "loss = F.huber_loss(pred, target)",
    "gaussian_nll_loss": "loss = F.gaussian_nll_loss(pred, target, 1.0)",
    "poisson_nll_loss": "loss = F.poisson_nll_loss(pred, target)",
    "kl_div": "loss = F.kl_div(pred, target, reduction='sum')",
    "hinge_embedding_loss": "loss = F.hinge_embedding_loss(pred, sign)",
    "no reduction": "loss = F.mse_loss(pred, target, reduction='none').mean()",
    "named arguments": "loss = F.mse_loss(input=pred, target=target, reduction='sum')",
    "MSELoss": "loss = nn.MSELoss()(pred, target)",
    "HuberLoss": "criterion = nn.HuberLoss()\nloss = criterion(pred, target)",
    # Distributions.
    "Normal": "loss = -torch.distributions.Normal(pred, 1.0).log_prob(target).mean()",
    "Laplace": "loss = -torch.distributions.Laplace(pred, 1.0).log_prob(target).mean()",
    "Exponential": "loss = -torch.distributions.Exponential(pred, validate_args=False).log_prob(target).mean()",
    "Normal of two": "loss = torch.distributions.Normal(pred, target.exp()).entropy().mean()",
    # Masks.
    "where": "loss = torch.where(mask, pred, torch.zeros(())).mean()",
    "masked_fill": "loss = pred.masked_fill(mask, 0.0).sum()",
    "mask of a loss": "loss = ((pred - column) ** 2 * mask).sum() / mask.sum()",
    # In place.
    "stored and changed": "error = pred - target\nerror.pow_(2)\nloss = error.mean()",
    "added up": "total = torch.zeros(())\ntotal = total + (pred - target).pow(2).mean()\nloss = total",
    # Reinforcement learning.
    "advantages": "advantage = target - pred\nadvantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)\n"
    "loss = advantage.pow(2).mean()",
    "ratio and advantage": "ratio = torch.exp(target - pred)\nloss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean()",
    "temporal difference": "goal = target + 0.99 * pred.detach()\nloss = goal.pow(2).mean()",
    # Transforms of functions.
    "func.grad": "loss = torch.func.grad(lambda p: ((p - target) ** 2).mean())(pred).sum()",
    "vmap": "loss = torch.func.vmap(lambda s: ((s * pred - target) ** 2).mean())(torch.ones(2)).mean()",
}


def names(n, right):
    torch.manual_seed(n)
    pred, target = torch.randn(n, 1), torch.randn(n)

    class holder:
        y = target

    own = {"pred": pred, "target": target, "column": torch.randn(n, 1), "holder": holder,
           "batch": {"y": target}, "mask": target > 0, "sign": target.sign(), "torch": torch, "F": F, "nn": nn}  # fmt: skip
    if right:
        own |= {name: own[name][:, 0] for name in ("pred", "column")}
    return own


def run(text, n, file, right=False):
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    own = names(n, right)
    exec(compile(text, file, "exec"), own)
    return own["loss"]


def repaired(text, fix):
    lines = text.splitlines()
    assert fix["line"] == fix["end_line"]
    line = lines[fix["line"] - 1]
    lines[fix["line"] - 1] = line[: fix["column"] - 1] + fix["text"] + line[fix["end_column"] - 1 :]
    return "\n".join(lines)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", PLANTED)
def test_planted_bugs_are_found_confirmed_and_repaired(kind):
    text = PLANTED[kind]
    with simulcast.torch.guard() as watch:
        for n in (8, 5):
            run(text, n, f"<planted {kind}>")
    assert watch.confirmed, kind
    finding = watch.confirmed[0]
    fixes = finding.to_dict()["fixes"]
    assert fixes, finding
    for fix in fixes:
        better = repaired(text, fix)
        for n in (8, 5):
            with simulcast.torch.guard() as after:
                loss = run(better, n, f"<repaired {kind} {fix['text']}>")
            right = run(text, n, f"<right {kind}>", right=True)
            assert torch.allclose(loss, right, atol=1e-6, equal_nan=True), (better, loss, right)
        assert not after.findings, better


def test_there_are_enough_of_them():
    assert len(PLANTED) >= 20
