"""Dask arrays: lazy results, through Dask's own operations, after our own check of the shapes.

A rule is only asked where axes go (`_layout`). Then `align` gives every operand the result's axes, of
size 1 where it had none, and all that follows sees NumPy's rule: `blockwise` for what is computed block
by block, `broadcast_to` for views. Dask's `map_blocks` is never used: it reports wrong shapes for
operands of different rank.

Only entered with a Dask array in hand, so importing Dask here costs nothing.
"""

import math

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks, unify_chunks

from . import _policy
from ._inputs import plain
from ._simulcast import _layout
from ._simulcast import sum_to as _sum_to

LIMIT = 128 << 20
"""Blocks of a result that would have more bytes are made smaller."""


def operand(x):
    """The operand as a Dask array whose sizes are known."""
    if not isinstance(x, da.Array):
        return da.from_array(plain(x), chunks=-1)
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


def blockwise(function, operands, rule, name, *, dtype, **options):
    """`function` of blocks of the operands, which have the result's rank and NumPy's sizes.

    `function` is one of a module, so that it pickles; Dask calls it on blocks without elements first.
    """
    operands = [operand(x) for x in operands]
    _policy.observe(name, tuple(x.shape for x in operands), rule)
    shape, feeds = _layout(rule, *[x.shape for x in operands])
    aligned = [align(x, own, len(shape)) for x, own in zip(operands, feeds)]
    chunks = chunks_of(aligned, shape, np.dtype(dtype).itemsize)
    axes = tuple(range(len(shape)))
    if any(size != 1 and all(x.shape[k] == 1 for x in aligned) for k, size in enumerate(shape)):
        # The rule itself brings an axis, which no block has.
        aligned = [_shown(x, shape, chunks) for x in aligned]
    pairs = [part for x in aligned for part in (rechunked(x, chunks), axes)]
    # Chunks agree already; Dask would take a block of size 1 for the result's where each has one block.
    options.update(align_arrays=False, adjust_chunks=dict(enumerate(chunks)))
    return da.blockwise(function, axes, *pairs, dtype=dtype, token=f"simulcast-{name}", **options)


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
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    _, [feeds] = _layout(rule, shape, target=x.shape)
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


def _sum_block(block, axis, keepdims):
    """The sums of one block, on one thread: Dask has threads of its own."""
    axes = {own % block.ndim for own in axis}
    shape = tuple(1 if own in axes else size for own, size in enumerate(block.shape))
    return _sum_to(np.asarray(block), shape, threads=1)
