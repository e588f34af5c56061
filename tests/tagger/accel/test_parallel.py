from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from sequst.corpus.generated import generate
from sequst.tagger.accel.forward import forward_of
from sequst.tagger.accel.parallel import _threads, on_all_cores
from sequst.tagger.predict import label_words
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs


@pytest.fixture
def tagger(tiny_encoder: str) -> Tagger:
    return Tagger.from_encoder(tiny_encoder, ["O", "B-x", "I-x"], seed=2)


@pytest.fixture(params=[1, 2, 3])
def cores(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    assert torch.get_num_threads() == request.param
    torch.set_num_threads(before)


def test_results_come_in_order_and_without_gradients(tagger: Tagger, cores: int) -> None:
    names, together = set(), threading.Barrier(cores)

    def work(item: int) -> int:
        names.add(threading.get_ident())
        together.wait(timeout=60)  # passes when as many are at work as there are cores
        assert torch.get_num_threads() == 1
        assert torch.is_inference_mode_enabled()
        return item * item

    with torch.inference_mode(), forward_of(tagger) as forward:
        assert list(on_all_cores(tagger, forward, work, range(cores * 5))) == [i * i for i in range(cores * 5)]
    assert len(names) == cores
    assert list(on_all_cores(tagger, forward, work, [])) == []


def test_what_fails_in_a_thread_fails_here(tagger: Tagger, cores: int) -> None:
    def work(item: int) -> None:
        if item == 3:
            raise ValueError("three")

    with forward_of(tagger) as forward, pytest.raises(ValueError, match="three"):
        list(on_all_cores(tagger, forward, work, range(9)))


def test_the_numbers_are_those_of_one_core(tagger: Tagger, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = generate().test[:60]
    monkeypatch.setattr("sequst.tagger.accel.cpu_forward.CpuForward.token_budget", 64)  # that there are many batches
    found = form_beliefs(tagger, sentences, 3, 5, probabilities=True), label_words(tagger, sentences)
    torch.set_num_threads(1)
    expected = form_beliefs(tagger, sentences, 3, 5, probabilities=True), label_words(tagger, sentences)
    torch.set_num_threads(cores)
    for name in ("labels", "plain_confidence", "confidence", "information_gain", "probabilities"):
        assert np.array_equal(getattr(found[0], name), getattr(expected[0], name))
    assert np.array_equal(found[1].labels, expected[1].labels)
    assert np.array_equal(found[1].confidences, expected[1].confidences)


def test_words_are_counted_as_batches_are_done(tagger: Tagger, cores: int) -> None:
    sentences = generate().test[:60]
    done: list[int] = []
    form_beliefs(tagger, sentences, 1, 5, advance=done.append)
    assert sum(done) == sum(map(len, sentences))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    _threads(2)
    child = os.fork()
    if child == 0:
        os._exit(_threads.cache_info().currsize)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert _threads.cache_info().currsize > 0
