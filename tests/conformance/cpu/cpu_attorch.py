"""Layers of attorch, forward and backward: odd sizes, float32 and float16, each against the layer of torch."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, both, entry, learnt, normal
from tests.conformance.cpu.cpu_philox import rand

FLOAT = 1e-4
"""The tolerance of float32."""
HALF = 1e-2
"""The tolerance of float16, whose steps are 2 ** -10 and of which some are added up."""
TF32 = 2e-2
"""The tolerance of products of float32 that a kernel leaves at TF32."""
SEEDS = 65535
"""The number of seeds that attorch draws one of."""

Layer = Callable[..., Any]


def _attorch(name: str, *kernels: str, tolerance: float = FLOAT, call: str = "") -> Callable[[Any], Any]:
    """An entry whose kernels stand in one file, which is named as its layer's."""
    file = f"attorch/{kernels[0].removesuffix('_forward_kernel').removesuffix('2d')}_kernels.py"
    return entry(
        "attorch", file.replace("act_func", "act"), *kernels, call=call or name, tolerance=tolerance, name=name
    )


def _pair(kernel: str) -> tuple[str, str]:
    return f"{kernel}_forward_kernel", f"{kernel}_backward_kernel"


def _with(layer: Layer, *names: str) -> Layer:
    """A layer as a function of its inputs and, after them, of its parameters of these names."""

    def call(*given: torch.Tensor) -> Any:
        inputs, parameters = given[: len(given) - len(names)], given[len(given) - len(names) :]
        return functional_call(layer, dict(zip(names, parameters, strict=True)), inputs)  # pyright: ignore

    return call


ACTIVATIONS = (
    "Sigmoid", "LogSigmoid", "Tanh", "ReLU", "GELU", "SiLU", "ReLU6", "Hardsigmoid", "Hardtanh", "Hardswish", "SELU",
    "Mish", "Softplus", "Softsign", "Tanhshrink", "LeakyReLU", "ELU", "CELU", "Hardshrink", "Softshrink",
)  # fmt: skip
BOUNDARIES = 0.5, 1.0, 3.0, 6.0
"""Where functions that are made of pieces change from one to the other, on both sides of 0.

The derivative of Hardswish at 3 does not exist: attorch's is 1.5, torch's 1."""


def activation(name: str, load: Load) -> Pairs:
    """Compare an activation in float32, at its boundaries, in float16 with autocast, and with dropout."""
    layers = load("act_layers")
    mine, theirs = getattr(layers, name)(), getattr(nn, name)()
    yield from both(mine, theirs, learnt(3, 5, 67, scale=2))
    edges = torch.tensor([
        sign * each for each in BOUNDARIES for sign in (1.0, -1.0)
        if (name, each) != ("Hardswish", 3.0)
    ])  # fmt: skip
    yield from both(mine, theirs, edges.requires_grad_())

    def in_half(x: torch.Tensor) -> Any:
        with torch.autocast("cuda", torch.float16):
            return mine(x)

    yield from both(in_half, theirs, learnt(4, 257, dtype=torch.float16))
    dropping = getattr(layers, name)(drop_p=0.3)
    yield from both(_seeded(dropping), lambda x: theirs(x) * _kept(x, 0.3), learnt(3, 5, 67, seed=1))


def _seeded(layer: Layer) -> Layer:
    def call(*given: torch.Tensor) -> Any:
        random.seed(5)
        return layer(*given)

    return call


def _kept(x: torch.Tensor, probability: float) -> torch.Tensor:
    """The factor of each element under dropout with the seed that `_seeded` leads to."""
    random.seed(5)
    drawn = rand(random.randint(0, SEEDS), torch.arange(x.numel(), dtype=torch.int32)).reshape(x.shape)
    return (drawn >= probability) / (1 - probability)


for _name in ACTIVATIONS:
    entry(
        "attorch", "attorch/act_kernels.py", *_pair("act_func"), call=f"attorch.{_name}", tolerance=HALF,
        name=_name.lower(), reference=f"`torch.nn.{_name}`; with dropout, times Philox's mask in Python",
    )(partial(activation, _name))  # fmt: skip


@entry(
    "attorch", "attorch/act_kernels.py", *_pair("act_func"), call="ActFuncAutoGrad", tolerance=FLOAT,)  # fmt: skip
def gelu_approximate(load: Load) -> Pairs:
    """`torch.nn.functional.gelu` by tanh."""
    apply = load("act_layers").ActFuncAutoGrad.apply
    yield from both(
        lambda x: apply(x, "geluapprox", 0.0, True),
        partial(functional.gelu, approximate="tanh"),
        learnt(7, 93, scale=2),
    )


def _batch_norm(load: Load, features: int, *inputs: torch.Tensor, act: str | None = None, affine: bool = True) -> Pairs:
    """Compare training with its running statistics, and evaluation."""
    shape = inputs[0].shape
    kind = "BatchNorm2d" if len(shape) == 4 else "BatchNorm1d"
    options = {"momentum": 0.2, "affine": affine, "eps": 1e-4}
    mine = getattr(load("batch_norm_layer"), kind)(features, **options, act_func=act)
    theirs = getattr(nn, kind)(features, **options)
    end = getattr(functional, act) if act else nn.Identity()
    names = ("weight", "bias") if affine else ()
    weights = (learnt(features, seed=8), learnt(features, seed=9)) if affine else ()

    def reference(*given: torch.Tensor) -> Any:
        normed = _with(theirs, *names)(given[0], *given[len(inputs) :])
        return end(normed + given[1] if len(inputs) > 1 else normed)

    yield from both(_with(mine, *names), reference, *inputs, *weights)
    yield mine.running_mean, theirs.running_mean
    yield mine.running_var, theirs.running_var
    mine.eval(), theirs.eval()
    plain = [each.detach() for each in (*inputs, *weights)]
    yield _with(mine, *names)(*plain), reference(*plain)


BATCH_NORM = _pair("batch_norm")


@_attorch("batch_norm_rows", *BATCH_NORM, call="BatchNorm1d", tolerance=1e-3)
def batch_norm_rows(load: Load) -> Pairs:
    """`torch.nn.BatchNorm1d` of rows, in training and in evaluation, with its running statistics."""
    yield from _batch_norm(load, 7, learnt(33, 7))


@_attorch("batch_norm_1d", *BATCH_NORM, call="BatchNorm1d", tolerance=1e-3)
def batch_norm_1d(load: Load) -> Pairs:
    """`torch.nn.BatchNorm1d` of sequences, the same."""
    yield from _batch_norm(load, 13, learnt(6, 13, 29))


@_attorch("batch_norm_2d", *BATCH_NORM, call="BatchNorm2d", tolerance=1e-3)
def batch_norm_2d(load: Load) -> Pairs:
    """`torch.nn.BatchNorm2d`, the same."""
    yield from _batch_norm(load, 3, learnt(5, 3, 7, 9))


@_attorch("batch_norm_plain", *BATCH_NORM, call="BatchNorm2d", tolerance=1e-3)
def batch_norm_plain(load: Load) -> Pairs:
    """`torch.nn.BatchNorm2d` without weights, and `relu`."""
    yield from _batch_norm(load, 5, learnt(3, 5, 6, 7), act="relu", affine=False)


@_attorch("batch_norm_residual", *BATCH_NORM, call="BatchNorm1d", tolerance=1e-3)
def batch_norm_residual(load: Load) -> Pairs:
    """`torch.nn.BatchNorm1d`, a sum with another tensor, and `gelu`."""
    yield from _batch_norm(load, 9, learnt(5, 9, 31), learnt(5, 9, 31, seed=1), act="gelu")


@_attorch("batch_norm_half", *BATCH_NORM, call="BatchNorm2d", tolerance=2e-2)
def batch_norm_half(load: Load) -> Pairs:
    """`torch.nn.BatchNorm2d` of float16."""
    yield from _batch_norm(load, 4, learnt(6, 4, 5, 11, dtype=torch.float16))


def _convolution(load: Load, x: torch.Tensor, outputs: int, size: Any, **options: Any) -> Pairs:
    dtype, kind = x.dtype, "Conv2d" if x.dim() == 4 else "Conv1d"
    mine = getattr(load("conv_layer"), kind)(x.shape[1], outputs, size, dtype=dtype, **options)
    theirs = getattr(nn, kind)(x.shape[1], outputs, size, dtype=dtype, **options)
    weights = [learnt(*each.shape, seed=at, dtype=dtype, scale=0.3) for at, each in enumerate(theirs.parameters())]
    names = [name for name, _ in theirs.named_parameters()]
    yield from both(_with(mine, *names), _with(theirs, *names), x, *weights)


CONVOLUTION = "conv2d_forward_kernel"


@_attorch("conv1d", CONVOLUTION, call="Conv1d", tolerance=TF32)
def conv1d(load: Load) -> Pairs:
    """`torch.nn.Conv1d` with a stride and padding; gradients are torch's own."""
    yield from _convolution(load, learnt(2, 6, 37), 10, 5, stride=2, padding=1)


@_attorch("conv2d", CONVOLUTION, call="Conv2d", tolerance=TF32)
def conv2d(load: Load) -> Pairs:
    """`torch.nn.Conv2d` of 3 x 3 with padding."""
    yield from _convolution(load, learnt(2, 5, 11, 9), 7, 3, padding=1)


@_attorch("conv2d_rectangular", CONVOLUTION, call="Conv2d", tolerance=TF32)
def conv2d_rectangular(load: Load) -> Pairs:
    """`torch.nn.Conv2d` of 5 x 3 with strides 1 and 2, without a bias."""
    yield from _convolution(load, learnt(3, 4, 13, 10), 18, (5, 3), stride=(1, 2), bias=False)


@_attorch("conv2d_groups", CONVOLUTION, call="Conv2d", tolerance=TF32)
def conv2d_groups(load: Load) -> Pairs:
    """`torch.nn.Conv2d` of 2 groups, and of as many as channels."""
    yield from _convolution(load, learnt(2, 6, 8, 7), 4, 2, groups=2)
    yield from _convolution(load, learnt(1, 6, 8, 7), 12, 3, groups=6, padding=2)


@_attorch("conv2d_half", CONVOLUTION, call="Conv2d", tolerance=TF32)
def conv2d_half(load: Load) -> Pairs:
    """`torch.nn.Conv2d` of float16."""
    yield from _convolution(load, learnt(2, 8, 9, 7, dtype=torch.float16), 5, 3)


def _pool(load: Load, x: torch.Tensor, *options: Any) -> Pairs:
    kind = "AvgPool2d" if x.dim() == 4 else "AvgPool1d"
    yield from both(getattr(load("pooling_layer"), kind)(*options), getattr(nn, kind)(*options), x)


@_attorch("avg_pool1d", CONVOLUTION, call="AvgPool1d", tolerance=TF32)
def avg_pool1d(load: Load) -> Pairs:
    """`torch.nn.AvgPool1d` with and without an overlap."""
    yield from _pool(load, learnt(2, 3, 41), 3)
    yield from _pool(load, learnt(2, 3, 41), 4, 1, 2)


@_attorch("avg_pool2d", CONVOLUTION, call="AvgPool2d", tolerance=TF32)
def avg_pool2d(load: Load) -> Pairs:
    """`torch.nn.AvgPool2d` of 2 x 2."""
    yield from _pool(load, learnt(2, 3, 9, 13), 2)


@_attorch("avg_pool2d_padded", CONVOLUTION, call="AvgPool2d", tolerance=TF32)
def avg_pool2d_padded(load: Load) -> Pairs:
    """`torch.nn.AvgPool2d` of 3 x 3 with stride 1 and padding."""
    yield from _pool(load, learnt(1, 5, 7, 10), 3, 1, 1)


LINEAR = "linear_forward_kernel"


def _linear(load: Load, *given: torch.Tensor, act: str | None = None) -> Pairs:
    end = getattr(functional, act) if act else nn.Identity()
    yield from both(
        lambda x, w, b=None: load("linear_layer").LinearAutoGrad.apply(x, w, b, act),
        lambda x, w, b=None: end(x @ w if b is None else x @ w + b), *given,
    )  # fmt: skip


@_attorch("linear", LINEAR, call="LinearAutoGrad", tolerance=TF32)
def linear(load: Load) -> Pairs:
    """A product of matrices and a bias; gradients are torch's own."""
    yield from _linear(load, learnt(37, 50), learnt(50, 33, seed=1, scale=0.2), learnt(33, seed=2))


@_attorch("linear_gelu", LINEAR, call="LinearAutoGrad", tolerance=TF32)
def linear_gelu(load: Load) -> Pairs:
    """A product of matrices, a bias and `gelu`."""
    yield from _linear(load, learnt(3, 7, 70), learnt(70, 96, seed=1, scale=0.2), learnt(96, seed=2), act="gelu")


@_attorch("linear_silu", LINEAR, call="LinearAutoGrad", tolerance=TF32)
def linear_silu(load: Load) -> Pairs:
    """A product of matrices and `silu`, without a bias."""
    yield from _linear(load, learnt(65, 19), learnt(19, 130, seed=1, scale=0.2), act="silu")


@_attorch("linear_half", LINEAR, call="LinearAutoGrad", tolerance=TF32)
def linear_half(load: Load) -> Pairs:
    """A product of matrices of float16, and a bias."""
    given = learnt(21, 100), learnt(100, 17, seed=1, scale=0.1), learnt(17, seed=2)
    yield from _linear(load, *(each.detach().half().requires_grad_() for each in given))


def _layer_norm(load: Load, x: torch.Tensor, *names: str) -> Pairs:
    width = x.shape[-1]
    options = {"elementwise_affine": bool(names), "bias": "bias" in names}
    mine, theirs = load("layer_norm_layer").LayerNorm(width, 1e-5, **options), nn.LayerNorm(width, 1e-5, **options)
    yield from both(
        _with(mine, *names),
        lambda x, *given: _with(theirs, *names)(x.float(), *given),
        x,
        *(learnt(width, seed=at) for at, _ in enumerate(names)),
    )


LAYER_NORM = _pair("layer_norm")


@_attorch("layer_norm", *LAYER_NORM, call="LayerNorm", tolerance=1e-3)
def layer_norm(load: Load) -> Pairs:
    """`torch.nn.LayerNorm`."""
    yield from _layer_norm(load, learnt(5, 257), "weight", "bias")


@_attorch("layer_norm_plain", *LAYER_NORM, call="LayerNorm", tolerance=1e-3)
def layer_norm_plain(load: Load) -> Pairs:
    """`torch.nn.LayerNorm` without weights, of rows and of one vector."""
    yield from _layer_norm(load, learnt(4, 257))
    yield from _layer_norm(load, learnt(99))


@_attorch("layer_norm_narrow", *LAYER_NORM, call="LayerNorm", tolerance=1e-3)
def layer_norm_narrow(load: Load) -> Pairs:
    """`torch.nn.LayerNorm` of many short rows, with weights and without a bias."""
    yield from _layer_norm(load, learnt(2049, 3), "weight")


@_attorch("layer_norm_half", *LAYER_NORM, call="LayerNorm", tolerance=HALF)
def layer_norm_half(load: Load) -> Pairs:
    """`torch.nn.LayerNorm` of float16."""
    yield from _layer_norm(load, learnt(3, 4, 100, dtype=torch.float16), "weight", "bias")


def _rms_norm(load: Load, x: torch.Tensor, *names: str) -> Pairs:
    width = x.shape[-1]
    mine = load("rms_norm_layer").RMSNorm(width, 1e-5, elementwise_affine=bool(names))
    theirs = nn.RMSNorm(width, 1e-5, elementwise_affine=bool(names))
    yield from both(
        _with(mine, *names),
        lambda x, *given: _with(theirs, *names)(x.float(), *given),
        x,
        *(learnt(width, seed=at) for at, _ in enumerate(names)),
    )


RMS_NORM = _pair("rms_norm")


@_attorch("rms_norm", *RMS_NORM, call="RMSNorm", tolerance=1e-3)
def rms_norm(load: Load) -> Pairs:
    """`torch.nn.RMSNorm`, with and without weights."""
    yield from _rms_norm(load, learnt(5, 257), "weight")
    yield from _rms_norm(load, learnt(3, 2, 67))


@_attorch("rms_norm_narrow", *RMS_NORM, call="RMSNorm", tolerance=1e-3)
def rms_norm_narrow(load: Load) -> Pairs:
    """`torch.nn.RMSNorm` of many short rows."""
    yield from _rms_norm(load, learnt(2049, 5), "weight")


@_attorch("rms_norm_half", *RMS_NORM, call="RMSNorm", tolerance=HALF)
def rms_norm_half(load: Load) -> Pairs:
    """`torch.nn.RMSNorm` of float16."""
    yield from _rms_norm(load, learnt(7, 130, dtype=torch.float16), "weight")


SOFTMAX = _pair("softmax")


def softmax(name: str, load: Load) -> Pairs:
    """Compare rows, one vector and many short rows, and float16."""
    mine, theirs = getattr(load("softmax_layers"), name)(dim=-1), getattr(nn, name)(dim=-1)
    for shape in ((5, 257), (99,), (3, 50, 7)):
        yield from both(mine, theirs, learnt(*shape, scale=3))
    yield from both(mine, lambda x: theirs(x.float()), learnt(4, 130, dtype=torch.float16))


for _name in ("Softmax", "LogSoftmax", "Softmin"):
    entry(
        "attorch", "attorch/softmax_kernels.py", *SOFTMAX, call=f"attorch.{_name}", tolerance=HALF,
        name=_name.lower(), reference=f"`torch.nn.{_name}`",
    )(partial(softmax, _name))  # fmt: skip


CROSS_ENTROPY = _pair("cross_entropy_loss")


@_attorch("cross_entropy", *CROSS_ENTROPY, call="CrossEntropyLoss")
def cross_entropy(load: Load) -> Pairs:
    """`torch.nn.CrossEntropyLoss`, of rows of classes long and short."""
    layer = load("cross_entropy_loss_layer").CrossEntropyLoss()
    for rows, classes in ((7, 301), (65, 9)):
        yield from both(layer, nn.CrossEntropyLoss(), learnt(rows, classes), below(classes, rows, dtype=torch.int64))


@_attorch("cross_entropy_weighted", *CROSS_ENTROPY, call="CrossEntropyLoss", tolerance=HALF)
def cross_entropy_weighted(load: Load) -> Pairs:
    """`torch.nn.CrossEntropyLoss` with weights of classes, of float32 and float16."""
    weight = normal(77, seed=3).abs()
    mine = load("cross_entropy_loss_layer").CrossEntropyLoss(weight=weight)
    theirs = nn.CrossEntropyLoss(weight=weight)
    for dtype in (torch.float32, torch.float16):
        yield from both(
            mine, lambda x, at: theirs(x.float(), at), learnt(6, 77, dtype=dtype), below(77, 6, dtype=torch.int64)
        )  # fmt: skip


NLL = _pair("nll_loss")


def _nll(load: Load, reduction: str, *shape: int, weighted: bool = False) -> Pairs:
    weight = normal(shape[1], seed=3).abs() if weighted else None
    options = {"weight": weight, "reduction": reduction}
    given = learnt(*shape), below(shape[1], shape[0], *shape[2:], dtype=torch.int64)
    yield from both(load("nll_loss_layer").NLLLoss(**options), nn.NLLLoss(**options), *given)


@_attorch("nll_loss_each", *NLL, call="NLLLoss")
def nll_loss_each(load: Load) -> Pairs:
    """`torch.nn.NLLLoss` of each row and pixel."""
    yield from _nll(load, "none", 8, 11)
    yield from _nll(load, "none", 4, 5, 3, 7)


@_attorch("nll_loss_mean", *NLL, call="NLLLoss")
def nll_loss_mean(load: Load) -> Pairs:
    """`torch.nn.NLLLoss`, the mean, with and without weights."""
    yield from _nll(load, "mean", 16, 101)
    yield from _nll(load, "mean", 8, 19, 5, weighted=True)


@_attorch("nll_loss_sum", *NLL, call="NLLLoss")
def nll_loss_sum(load: Load) -> Pairs:
    """`torch.nn.NLLLoss`, the sum, with weights."""
    yield from _nll(load, "sum", 8, 33, 3, weighted=True)


def difference_loss(name: str, load: Load) -> Pairs:
    """Compare each reduction in float32, and one in float16."""
    for reduction in ("none", "mean", "sum"):
        mine, theirs = (getattr(each, name)(reduction=reduction) for each in (load("p_loss_layers"), nn))
        yield from both(mine, theirs, learnt(5, 133, scale=2), learnt(5, 133, seed=1))
    mine, theirs = (getattr(each, name)(reduction="none") for each in (load("p_loss_layers"), nn))
    half = torch.float16
    yield from both(mine, theirs, learnt(3, 67, dtype=half), learnt(3, 67, seed=1, dtype=half))


for _name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"):
    entry(
        "attorch", "attorch/p_loss_kernels.py", *_pair("p_loss"), call=f"attorch.{_name}", tolerance=HALF,
        name=_name.lower(), reference=f"`torch.nn.{_name}` of each reduction",
    )(partial(difference_loss, _name))  # fmt: skip


def _dropout(load: Load, probability: float, *shape: int) -> Pairs:
    layer = load("dropout_layer").Dropout(probability)
    yield from both(_seeded(layer), lambda x: x * _kept(x, probability), learnt(*shape))


@_attorch("dropout", *_pair("dropout"), call="Dropout")
def dropout(load: Load) -> Pairs:
    """Philox's mask in Python, for two probabilities."""
    yield from _dropout(load, 0.15, 5, 67)
    yield from _dropout(load, 0.75, 3, 5, 41)


@_attorch("dropout_ends", *_pair("dropout"), call="Dropout")
def dropout_ends(load: Load) -> Pairs:
    """The input where nothing is dropped, and nothing where all is."""
    x = normal(9, 31)
    yield load("dropout_layer").Dropout(0.0)(x), x
    yield load("dropout_layer").Dropout(1.0)(x), torch.zeros_like(x)
    yield from _dropout(load, 0.999, 7, 9)


def _glu(load: Load, act: str, x: torch.Tensor, end: Any = None) -> Pairs:
    end = end or getattr(functional, act)
    size = x.shape[-1] // 2
    yield from both(
        load("glu_layer").GLU(act_func=act), lambda x: x[..., :size] * end(x[..., size:]), x,
    )  # fmt: skip


@_attorch("glu", *_pair("glu"), call="GLU")
def glu(load: Load) -> Pairs:
    """One half times `sigmoid` of the other."""
    yield from _glu(load, "sigmoid", learnt(5, 134), torch.sigmoid)
    yield from _glu(load, "sigmoid", learnt(98), torch.sigmoid)


@_attorch("glu_gelu", *_pair("glu"), call="GLU")
def glu_gelu(load: Load) -> Pairs:
    """One half times `gelu`, and `mish`, of the other."""
    yield from _glu(load, "gelu", learnt(3, 5, 66))
    yield from _glu(load, "mish", learnt(3, 5, 66, seed=1))


@_attorch("glu_half", *_pair("glu"), call="GLU", tolerance=HALF)
def glu_half(load: Load) -> Pairs:
    """One half times `silu`, and a leaky `relu`, of the other, in float16."""
    x = learnt(4, 3, 38, dtype=torch.float16)
    yield from _glu(load, "silu", x)
    yield from _glu(load, "leaky_relu_0.01", x, functional.leaky_relu)
