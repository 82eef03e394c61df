"""A server where the lab is not installed, as after `pip install kokoro-lab`."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from flask import Flask

from kokoro_lab.errors import MissingExtra


@pytest.mark.usefixtures("without_lab")
def test_a_server_without_the_lab_names_the_extra_where_benchmarks_are_asked_for(
    make_app: Callable[..., Flask], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        client = make_app(benchmark_interval_s=3600).test_client()
    assert "pip install 'kokoro-lab[lab]'" in caplog.text
    for answer in (client.get("/benchmarks"), client.post("/benchmarks"), client.get("/benchmarks/latest")):
        assert answer.status_code == 404
        assert answer.json["error"]["code"] == "missing_extra"
        assert "pip install 'kokoro-lab[lab]'" in answer.json["error"]["message"]
    assert client.get("/openapi.json").status_code == 200


@pytest.mark.usefixtures("without_lab")
def test_faults_that_could_not_strike_are_refused(make_app: Callable[..., Flask]) -> None:
    with pytest.raises(MissingExtra, match="lab"):
        make_app(faults="ready")
