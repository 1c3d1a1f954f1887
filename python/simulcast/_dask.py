"""Dask arrays: lazy results, through Dask's own operations, after our own check of the shapes.

A rule is only asked where axes go (`_layout`). Then `align` gives every operand the result's axes, of
size 1 where it had none, and all that follows sees NumPy's rule: `blockwise` for what is computed block
by block, `broadcast_to` for views. Dask's `map_blocks` is never used: it reports wrong shapes for
operands of different rank.

Only entered with a Dask array in hand, so importing Dask here costs nothing.
"""

# Dask has no types of its own.
# mypy: allow-untyped-defs, allow-untyped-calls

import itertools
import math
import operator
from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks, unify_chunks

from . import _policy, _simulcast
from ._inputs import is_number as _is_number
from ._inputs import plain, unlabelled
from ._simulcast import _layout
from ._simulcast import sum_to as _sum_to
from ._workers import stoppable as _stoppable

_NUMPY = _simulcast.Rule("numpy")

LIMIT = 128 << 20
"""Blocks of a result that would have more bytes are made smaller."""


def operand(x):
    """The operand as a Dask array whose sizes are known."""
    x = unlabelled(x)
    if not isinstance(x, da.Array):
        return da.from_array(plain(x), chunks=-1)
    plain(x._meta)  # A masked one is refused.
    if any(math.isnan(size) for size in x.shape):
        raise ValueError(f"the shape {x.shape} is not known; call compute_chunk_sizes() first")
    return x


def align(x, feeds, rank):
    """The operand with the axes of a result of that rank: axis k goes to `feeds[k]`, the rest are new."""
    dropped = tuple(axis for axis, target in enumerate(feeds) if target is None)
    kept = [axis for axis, target in enumerate(feeds) if target is not None]
    if dropped:
        x = x[tuple(0 if axis in dropped else slice(None) for axis in range(x.ndim))]
    targets = [feeds[axis] for axis in kept]
    order = sorted(range(len(targets)), key=targets.__getitem__)
    if order != list(range(len(order))):
        x = x.transpose(order)
    present = set(targets)
    index = tuple(slice(None) if axis in present else None for axis in range(rank))
    return x if len(present) == rank else x[index]


def chunks_of(arrays, shape, itemsize, limit=LIMIT):
    """The chunks of a result: those of its aligned operands, smaller where a block would exceed the limit."""
    axes = tuple(range(len(shape)))
    # An axis of size 1 follows the others.
    wide = [(x, tuple(k for k in axes if x.shape[k] != 1)) for x in arrays]
    wide = [(x[tuple(slice(None) if k in own else 0 for k in axes)], own) for x, own in wide if own]
    known, _ = unify_chunks(*[part for pair in wide for part in pair]) if wide else ({}, [])
    chunks = tuple(known.get(k, (shape[k],)) for k in axes)
    if math.prod(max(own, default=0) for own in chunks) * itemsize <= limit:
        return chunks
    item = np.dtype((np.void, itemsize))
    return normalize_chunks("auto", shape=shape, limit=limit, dtype=item, previous_chunks=chunks)


def rechunked(x, chunks):
    """The aligned operand in the chunks of the result, where it is longer than 1."""
    return x.rechunk({k: own for k, own in enumerate(chunks) if x.shape[k] != 1})


def blockwise(function, operands, rule, name, *, dtype, asked=False, **options):
    """`function` of blocks of the operands, which have the result's rank and NumPy's sizes.

    Numbers of Python's are operands too. `function` is one of a module, so that it pickles. The policy is asked, unless
    it was `asked` before.
    """
    operands = [x if _is_number(x) else operand(x) for x in operands]
    shape, feeds = _laid(operands, [_is_number(x) for x in operands], rule, None if asked else name)
    aligned = [x if _is_number(x) else align(x, own, len(shape)) for x, own in zip(operands, feeds)]
    arrays = [x for x in aligned if not _is_number(x)]
    chunks = chunks_of(arrays, shape, np.dtype(dtype).itemsize)
    axes = tuple(range(len(shape)))
    if any(size != 1 and all(x.shape[k] == 1 for x in arrays) for k, size in enumerate(shape)):
        # The rule itself brings an axis, which no block has.
        aligned = [x if _is_number(x) else _shown(x, shape, chunks) for x in aligned]
    # Numbers go to every block as they are, and stay weak.
    pairs = [part for x in aligned for part in ((x, None) if _is_number(x) else (rechunked(x, chunks), axes))]
    # Chunks agree already; Dask would take a block of size 1 for the result's where each has one block.
    options.update(align_arrays=False, adjust_chunks=dict(enumerate(chunks)))
    return da.blockwise(function, axes, *pairs, dtype=dtype, token=f"simulcast-{name}", **options)


def _laid(operands, numbers, rule, name):
    """The result's shape, and where the axes of each operand go; numbers have none, and fit everywhere.

    The policy is asked of the function that has a name.
    """
    own = rule if isinstance(rule, _simulcast.Rule) else _simulcast.Rule(rule)
    # Numbers fit everywhere, but where each operand has names.
    takes_numbers = own == _NUMPY or own._is_named
    laid = [np.shape(x) for x, number in zip(operands, numbers) if takes_numbers or not number]
    if len(laid) < len(operands) and len(laid) < 2 and own._arity == 2:
        rule = "numpy"
    if name is not None:
        _policy.observe(name, tuple(laid), rule)
    shape, feeds = _layout(rule, *laid)
    if len(laid) < len(operands):
        each = iter(feeds)
        feeds = [[] if number else next(each) for number in numbers]
    return shape, feeds


def broadcast_to(x, shape, rule):
    x = operand(x)
    shape, [feeds] = _layout(rule, x.shape, target=shape)
    _policy.observe_view("broadcast_to", x.shape, shape)
    return _shown(align(x, feeds, len(shape)), shape)


def broadcast_arrays(operands, rule):
    operands = [operand(x) for x in operands]
    _policy.observe("broadcast_arrays", tuple(x.shape for x in operands), rule)
    shape, feeds = _layout(rule, *[x.shape for x in operands])
    aligned = [align(x, own, len(shape)) for x, own in zip(operands, feeds)]
    chunks = chunks_of(aligned, shape, max(x.dtype.itemsize for x in aligned))
    return tuple(_shown(x, shape, chunks) for x in aligned)


def _shown(x, shape, chunks=None):
    """An aligned operand in the result's shape; blocks are views of the operand's."""
    if chunks is None:
        chunks = chunks_of([x], shape, x.dtype.itemsize)
    return da.broadcast_to(rechunked(x, chunks), shape, chunks=chunks)


def sum_to(x, shape, rule):
    x = operand(x)
    shape = tuple(shape) if np.iterable(shape) else (operator.index(shape),)
    _, [feeds] = _layout(rule, shape, target=x.shape)
    return _summed(x, shape, feeds)


def _summed(x, shape, feeds):
    """The sums to an operand of that shape, whose axis k fed axis `feeds[k]`."""
    dtype = x.dtype
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        # Sums of blocks are kept in float32, as within a block.
        x = x.astype(np.float32)
    kept = {own for axis, own in enumerate(feeds) if own is not None and shape[axis] == x.shape[own]}
    summed = tuple(axis for axis in range(x.ndim) if axis not in kept)
    if summed:
        x = da.reduction(x, _sum_block, _sum_block, axis=summed, keepdims=True, dtype=x.dtype)
    order = [target for target in feeds if target in kept]
    x = x[tuple(slice(None) if axis in kept else 0 for axis in range(x.ndim))]
    ranks = sorted(order)
    if order != ranks:
        x = x.transpose([ranks.index(target) for target in order])
    index = tuple(slice(None) if target in kept else None for target in feeds)
    return x[index].astype(dtype)


@_stoppable
def _sum_block(block, axis, keepdims):
    """The sums of one block, on one thread: Dask has threads of its own."""
    axes = {own % block.ndim for own in axis}
    shape = tuple(1 if own in axes else size for own, size in enumerate(block.shape))
    return _sum_to(np.asarray(block), shape, threads=1)


def _standing_for(x):
    """An array of that type and shape, of one element that repeats; a number as it is."""
    if _is_number(x):
        return x
    return np.broadcast_to(np.array("", x.dtype) if x.dtype.kind in "OTU" else np.empty((), x.dtype), x.shape)


def _empty(x):
    """What stands for an operand where only its type counts: a number, or an array of one element."""
    if _is_number(x):
        return x
    dtype = getattr(x, "dtype", None) or np.asarray(x).dtype
    return np.full((1,) * np.ndim(x), "" if dtype.kind in "OTU" else 1, dtype)


@_stoppable
@_policy.unasked()
def _block(*blocks, called, settings):
    """A function of blocks, on one thread: Dask has threads of its own."""
    return np.asarray(getattr(_simulcast, called)(*blocks, threads=1, **settings))


def apply(name, operands, *, casting, dtype, rule):
    """An operation on arrays of which one is Dask's."""
    return _lazily(_block, operands, rule, name, called=name, settings={"casting": casting, "dtype": dtype})


def _lazily(function, operands, rule, name, asked=False, **options):
    """`function` of blocks, whose dtype is what it gives for operands of one element."""
    operands = [x if _is_number(x) or isinstance(x, da.Array) else plain(x) for x in operands]
    dtype = function(*map(_empty, operands), **options).dtype
    return blockwise(function, operands, rule, name, dtype=dtype, meta=np.empty((), dtype), asked=asked, **options)


@_stoppable
@_policy.unasked()
def _clip_block(*blocks, low, high, settings):
    bounds = iter(blocks[1:])
    a_min, a_max = next(bounds) if low else None, next(bounds) if high else None
    return np.asarray(_simulcast.clip(blocks[0], a_min, a_max, threads=1, **settings))


def clip(a, a_min, a_max, *, casting, dtype, rule):
    operands = [x for x in (a, a_min, a_max) if x is not None]
    options = {"low": a_min is not None, "high": a_max is not None}
    return _lazily(_clip_block, operands, rule, "clip", settings={"casting": casting, "dtype": dtype}, **options)


@_stoppable
@_policy.unasked()
def _expression_block(*blocks, expression, names, settings, words):
    made = np.asarray(expression(threads=1, local_dict=dict(zip(names, blocks)), **settings))
    return made if words is None else made.astype(words)


_DEPTH = 40
"""Calls within calls that a part of an expression has at most."""

_ELEMENTWISE = {"value", "name", "apply", "compare", "if", "clip", "round", "cast"}


def evaluate(expression, operands, *, casting, dtype, rule):
    """An expression: in one pass over the blocks where all of it is element by element, else part by part."""
    operands = {name: x if _is_number(x) else operand(x) for name, x in operands.items()}
    # What is wrong is shown in the text, and the policy is asked of every operation in it.
    expression._shape({name: _standing_for(x) for name, x in operands.items()}, rule)
    settings = {"casting": casting, "dtype": dtype}
    with _policy.unasked():
        if str(rule) == "numpy":
            return _in_parts(expression, operands, settings)
        values: list[Any] = []
        for kind, what, children in expression._nodes:
            values.append(_step(kind, what, [values[child] for child in children], operands, rule))
    result = values[-1]
    return result if dtype is None else result.astype(dtype, casting=casting)


def _in_one_pass(expression, operands, settings):
    """An expression of which all is element by element."""
    options = {"expression": expression, "names": tuple(operands), "words": _words(expression, operands)}
    return _lazily(_expression_block, operands.values(), "numpy", "evaluate", asked=True, settings=settings, **options)


def _in_parts(expression, operands, settings):
    """An expression in as few passes as there can be: between those, axes are moved or reduced."""
    nodes = expression._nodes
    if all(kind in _ELEMENTWISE for kind, _, _ in nodes):
        return _in_one_pass(expression, operands, settings)
    operands = dict(operands)
    # Nodes whose values were computed, or are arrays of their own, and their names among the operands.
    made = {}

    def put(node, value):
        """The node is an operand from now on."""
        made[node] = next(name for name in map("_{}".format, itertools.count()) if name not in operands)
        operands[made[node]] = value

    def value(node, casting="same_kind", dtype=None):
        kind, what, _ = nodes[node]
        name = made.get(node, what if kind == "name" else None)
        if name in operands and dtype is None:
            return operands[name]
        part = expression._part(node, list(made.items()))
        # An operand may have the name of a constant.
        names = dict.fromkeys(what for kind, what, _ in part._nodes if kind == "name" and what in operands)
        if all(_is_number(operands[name]) for name in names):
            return part(local_dict={name: operands[name] for name in names}, casting=casting, dtype=dtype)
        return _in_one_pass(part, {name: operands[name] for name in names}, {"casting": casting, "dtype": dtype})

    depths: list[int] = []
    for node, (kind, what, children) in enumerate(nodes):
        depth = 1 + max((depths[child] for child in children), default=0)
        if kind == "reduce":
            [child] = children
            put(node, _reduced(operand(value(child)), what, lambda child=child: value(child, dtype=np.float32)))
        elif kind not in _ELEMENTWISE:
            put(node, _step(kind, what, [value(children[0])], operands, "numpy"))
        elif kind == "value" and isinstance(what, str):
            put(node, operand(what))
        elif depth > _DEPTH:
            whole = value(node)
            # Of numbers alone, a number, which stays weak.
            put(node, whole if isinstance(whole, da.Array) else whole.item())
        depths.append(0 if node in made else depth)
    return operand(value(len(nodes) - 1, **settings))


def _words(expression, operands):
    """The dtype of a result that is text of a fixed width: as wide as the longest that there can be."""
    widths: list[int | None] = []
    for kind, what, children in expression._nodes:
        own = [widths[child] for child in children]
        if kind == "value" and isinstance(what, str):
            widths.append(len(what))
        elif kind == "name":
            dtype = getattr(operands.get(what), "dtype", None)
            widths.append(dtype.itemsize // 4 if dtype is not None and dtype.kind == "U" else None)
        elif (kind, what) in (("apply", "add"), ("apply", "concat")) and None not in own:
            widths.append(sum(own))
        elif (kind, what) == ("apply", "where") and None not in own[1:]:
            widths.append(max(own[1:]))
        elif kind == "if" and None not in (own[0], own[2]):
            widths.append(max(own[0], own[2]))
        elif kind == "cast" and what.kind in "OTU":
            widths.append(own[0])
        else:
            widths.append(None)
    return None if widths[-1] is None else np.dtype(("U", widths[-1]))


_CONSTANTS = {"nan": math.nan, "inf": math.inf, "pi": math.pi, "e": math.e}


def _step(kind, what, args, operands, rule):
    """One node of an expression."""

    def function(name, *own):
        if all(_is_number(x) for x in own):
            # As Python and NumPy compute them, before they meet an array.
            return _simulcast.Expression(_CALLS[len(own)].format(name))(**dict(zip("abc", own))).item()
        return getattr(_simulcast, name)(*own, rule=rule)

    if kind == "value":
        return what
    if kind == "name":
        return operands[what] if what in operands else _CONSTANTS[what]
    if kind == "apply":
        first, *rest = args
        if len(rest) < 2 or what in ("where", "multiply_add"):
            return function(what, *args)
        for own in rest:
            first = function(what, first, own)
        return first
    if kind == "compare":
        compared = [function(name, *pair) for name, pair in zip(what, zip(args, args[1:]))]
        whole = compared[0]
        for own in compared[1:]:
            whole = function("logical_and", whole, own)
        return whole
    if kind == "if":
        yes, condition, no = args
        if all(_is_number(x) for x in args):
            return yes if condition else no
        return function("where", condition, yes, no)
    if kind == "clip":
        return function("minimum", function("maximum", args[0], args[1]), args[2])
    [x] = args
    if kind == "round":
        made = _simulcast.Expression(f"round(a, {what})")(a=x)
        return made.item() if _is_number(x) else made
    if kind == "cast":
        return x.astype(what) if hasattr(x, "astype") else what.type(x)
    x = operand(x)
    if kind == "index":
        return x[tuple({"keep": slice(None), "new": None, "rest": ...}[own] for own in what)]
    if kind == "transpose":
        return x.transpose(*what or ())
    return _reduced(x, what, lambda: x.astype(np.float32))


def _reduced(x, what, wide):
    """A reduction; sums and means of halves are those of what they are in float32, which `wide` gives."""
    name, axes, keepdims = what
    half = _is_half(x) and name not in ("max", "min")
    reduced = getattr(da, name)(wide() if half else x, axis=None if axes is None else tuple(axes), keepdims=keepdims)
    return reduced.astype(x.dtype) if half else reduced


_CALLS = {1: "{}(a)", 2: "{}(a, b)", 3: "{}(a, b, c)"}


@_stoppable
@_policy.unasked()
def _vjp_block(*blocks, called, given, place):
    """The gradient of one operand before it is summed back: of blocks that are all shown in one shape."""
    *shown, grad = np.broadcast_arrays(*blocks)
    own = iter(shown)
    return _simulcast.vjp(called, [next(own) if there else None for there in given], grad)[place]


def vjp(name, operands, grad, rule):
    """The gradients, each summed back lazily."""
    numbers = [_is_number(x) for x in operands if x is not None]
    operands = [x if x is None or _is_number(x) or isinstance(x, da.Array) else plain(x) for x in operands]
    types = [x.dtype for x in operands if hasattr(x, "dtype")]
    operands = [np.asarray(x, np.result_type(x, *types)) if _is_number(x) else x for x in operands]
    given = [x for x in operands if x is not None]
    grad = operand(grad)
    with _policy.unasked():
        # What has no derivative is said at once.
        _simulcast.vjp(name, [x if x is None else np.ones(1, x.dtype) for x in operands], np.ones(1, grad.dtype))
    shape, feeds = _laid(given, numbers, rule, name)
    if grad.shape != shape:
        raise ValueError(f"the gradient is {grad.shape}, the result {shape}")
    # Halves are computed and summed in float32.
    wide = [operand(x).astype(np.float32) if _is_half(x) else operand(x) for x in given]
    aligned = [align(x, own, len(shape)) for x, own in zip(wide, feeds)]
    there = tuple(x is not None for x in operands)
    gradients: list[Any] = []
    each = iter(zip(wide, feeds))
    for place, x in enumerate(operands):
        if x is None:
            gradients.append(None)
            continue
        like, own = next(each)
        if x.dtype.kind not in "fV" or name == "where" and place == 0:
            gradients.append(None)
            continue
        options = {"called": name, "given": there, "place": place, "dtype": like.dtype, "meta": np.empty((), like.dtype)}
        made = blockwise(_vjp_block, [*aligned, grad], "numpy", f"vjp-{name}", asked=True, **options)
        gradients.append(_summed(made, x.shape, own).astype(x.dtype))
    return tuple(gradients)


def _is_half(x):
    return x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
