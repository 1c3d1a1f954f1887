"""A Dask cluster of two processes: what they compute is NumPy's, and what goes wrong there is told here."""

import logging
import os

import dask
import dask.array as da
import numpy as np
import pytest

import simulcast

WAIT = 60
"""Seconds until a worker that does not answer is an error: far more than it takes."""


@pytest.fixture(scope="module")
def client():
    """Two worker processes on ports that happen to be free, without the dashboard."""
    from distributed import Client, LocalCluster

    patience = {"distributed.comm.timeouts.connect": f"{WAIT}s", "distributed.comm.timeouts.tcp": f"{WAIT}s"}
    place = {"host": "127.0.0.1", "scheduler_port": 0, "dashboard_address": None, "worker_dashboard_address": None}
    with (
        dask.config.set(patience),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, silence_logs=logging.CRITICAL, **place) as cluster,
        Client(cluster, timeout=WAIT) as client,
    ):
        client.wait_for_workers(2, timeout=WAIT)
        yield client


def test_there_are_two_processes(client):
    pids = client.run(os.getpid).values()
    assert len({*pids, os.getpid()}) == 3


IMAGE, MEAN, STD = np.arange(1.0, 241).reshape(4, 5, 12), np.arange(1.0, 13), np.arange(2.0, 7).reshape(5, 1)
LAZY = {"image": da.from_array(IMAGE, chunks=(3, 2, 5)), "mean": da.from_array(MEAN, chunks=7), "std": STD}


def test_results_are_numpys(client):
    image, mean, std = LAZY.values()
    normalised = simulcast.compile("(image - mean) / std")
    pairs = [
        (simulcast.add(image, mean), IMAGE + MEAN),
        (simulcast.multiply(std, mean), STD * MEAN),
        (simulcast.where(image > 100, image, std), np.where(IMAGE > 100, IMAGE, STD)),
        (simulcast.clip(image, mean, 200), np.clip(IMAGE, MEAN, 200)),
        (simulcast.broadcast_to(mean, IMAGE.shape), np.broadcast_to(MEAN, IMAGE.shape)),
        (simulcast.broadcast_arrays(image, std)[1], np.broadcast_arrays(IMAGE, STD)[1]),
        (simulcast.sum_to(image, (5, 1)), IMAGE.sum((0, 2)).reshape(5, 1)),
        (simulcast.vjp("multiply", (image, mean), IMAGE)[1], (IMAGE * IMAGE).sum((0, 1))),
        (simulcast.evaluate("(image - mean) / std", **LAZY), (IMAGE - MEAN) / STD),
        (simulcast.evaluate("image - image.mean(axis=0)", image=image), IMAGE - IMAGE.mean(axis=0)),
        (normalised(**LAZY), (IMAGE - MEAN) / STD),
        (simulcast.add(image[0], [1.0, 2.0, 3.0, 4.0, 5.0], rule="pdpd:0"), IMAGE[0] + np.arange(1.0, 6)[:, None]),
    ]
    futures = client.compute([ours for ours, _ in pairs])
    for (ours, theirs), future in zip(pairs, futures):
        assert isinstance(ours, da.Array) and ours.shape == theirs.shape and ours.dtype == theirs.dtype
        computed = future.result(timeout=WAIT)
        assert np.allclose(computed, theirs, rtol=1e-14) and computed.dtype == theirs.dtype


def test_functions_and_expressions_go_to_workers(client):
    normalised = simulcast.compile("(image - mean) / std")
    for future, theirs in [
        (client.submit(simulcast.add, IMAGE, MEAN, pure=False), IMAGE + MEAN),
        (client.submit(simulcast.evaluate, "image * 2 + mean", image=IMAGE, mean=MEAN), IMAGE * 2 + MEAN),
        (client.submit(normalised, image=IMAGE, mean=MEAN, std=STD), (IMAGE - MEAN) / STD),
        (client.submit(simulcast.sum_to, IMAGE, (12,), rule=simulcast.Rule("numpy")), IMAGE.sum((0, 1))),
    ]:
        assert (future.result(timeout=WAIT) == theirs).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run(simulcast.add, np.ones((2, 3, 4)), np.ones((2, 4))),
        lambda run: run(simulcast.evaluate, "image - mean", image=np.ones((2, 3, 4)), mean=np.ones(3)),
        lambda run: run(simulcast.compile("image - mean"), image=np.ones((2, 3, 4)), mean=np.ones(3)),
        lambda run: run(simulcast.check, (32, 1), (32,), policy="strict", names=["pred", "target"]),
    ],
    ids=["function", "evaluate", "compiled", "policy"],
)
def test_errors_come_back_whole(client, call):
    with pytest.raises(simulcast.BroadcastError) as here:
        call(lambda function, *args, **options: function(*args, **options))
    with pytest.raises(simulcast.BroadcastError) as there:
        call(lambda *args, **options: client.submit(*args, **options).result(timeout=WAIT))
    here, there = here.value, there.value
    assert str(there) == str(here) and vars(there) == vars(here)
    assert there.axis is not None and there.shapes and there.operands and there.suggestions
