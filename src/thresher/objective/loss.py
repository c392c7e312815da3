"""temporary"""
from __future__ import annotations
from dataclasses import dataclass
from typing import Protocol
import torch
from torch import Tensor

class Loss(Protocol):
    name: str
    link: str
    quadratic: bool
    def value(self, output: Tensor, y: Tensor) -> Tensor: ...
    def slope(self, output: Tensor, y: Tensor) -> Tensor: ...
    def scaled(self, output: Tensor, y: Tensor, J: Tensor) -> Tensor: ...
    def constant(self, y: Tensor, share: Tensor) -> Tensor: ...

@dataclass(frozen=True)
class SquaredError:
    name: str = "squared"; link: str = "identity"; quadratic: bool = True
    def value(self, output, y): return 0.5 * (output - y).double().square().sum(1)
    def slope(self, output, y): return output - y
    def scaled(self, output, y, J): return J
    def constant(self, y, share): return (y.double() * share.double()[:, None]).sum(0)

@dataclass(frozen=True)
class Logistic:
    name: str = "logistic"; link: str = "logistic"; quadratic: bool = False
    def value(self, output, y): return (torch.nn.functional.softplus(output.double()) - y * output).sum(1)
    def slope(self, output, y): return torch.sigmoid(output) - y
    def scaled(self, output, y, J):
        p = torch.sigmoid(output); return J * (p * (1 - p)).sqrt()[:, :, None]
    def constant(self, y, share): return torch.logit((y.double() * share.double()[:, None]).sum(0), eps=1e-9)

@dataclass(frozen=True)
class CrossEntropy:
    name: str = "cross-entropy"; link: str = "softmax"; quadratic: bool = False
    def value(self, output, y): return torch.nn.functional.cross_entropy(output.double(), y[:, 0], reduction="none")
    def slope(self, output, y):
        p = torch.softmax(output, 1); p[torch.arange(len(y)), y[:, 0]] -= 1; return p
    def scaled(self, output, y, J):
        p = torch.softmax(output, 1); mean = (p[:, :, None] * J).sum(1, keepdim=True)
        return (J - mean) * p.sqrt()[:, :, None]
    def constant(self, y, share):
        n = int(y.max()) + 1
        p = torch.zeros(n, dtype=torch.float64).index_add_(0, y[:, 0], share.double())
        l = p.clamp(min=1e-9).log(); return l - l.mean()
