"""Of what cells have shown, readers get tables, figures and sounds, and what was said; no progress bars."""

from __future__ import annotations

from typing import Any

from kokoro_lab.lab.report.outputs import message_of, output_html

BARS = "\rclips:   0%|      | 0/8 [00:00<?, ?it/s]\rclips: 100%|██████| 8/8 [00:08<00:00,  1.05s/it]\n"


def shown(**data: Any) -> str:
    kinds = {kind.replace("_", "/", 1): value for kind, value in data.items()}
    return output_html({"output_type": "execute_result", "data": kinds, "metadata": {}}, "Words")


def stderr(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stderr", "text": [text]}


def test_progress_bars_are_nowhere_and_warnings_are_kept() -> None:
    assert message_of(stderr(BARS)) == ""
    assert message_of(stderr(f"{BARS}175 of 141600 samples\n were clipped\n")) == (
        "175 of 141600 samples\n were clipped"
    )
    assert message_of(stderr("\rstreams: 3it [00:01,  2.1it/s]UserWarning: x")) == "UserWarning: x"
    assert output_html(stderr("UserWarning: x"), "") == ""


def test_a_traceback_is_a_message_without_colours_and_that_of_a_verdict_is_none() -> None:
    output = {"output_type": "error", "ename": "ZeroDivisionError", "traceback": ["\x1b[0;31mby zero\x1b[0m"]}
    assert message_of(output) == "by zero"
    assert message_of(output | {"ename": "GateFailed"}) == ""


def test_what_is_printed_is_text() -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": "2 < 3\n"}
    assert output_html(printed, "") == '<p class="said">2 &lt; 3</p>'
    assert shown(text_plain="'Take chunks of 30 ms.'") == '<p class="said">Take chunks of 30 ms.</p>'
    assert shown(text_plain=["{'a':", " 1}"]) == '<p class="said">{&#x27;a&#x27;: 1}</p>'


def test_a_figure_has_a_description() -> None:
    assert shown(image_png="aGk=\n", text_plain="<Figure>") == (
        '<img alt="Figure: Words" src="data:image/png;base64,aGk=">'
    )
    about = {"image/png": {"alt": 'loudness "by" voice', "width": 640}}
    output = {"output_type": "display_data", "data": {"image/png": "aGk="}, "metadata": about}
    assert 'alt="loudness &quot;by&quot; voice" width="640"' in output_html(output, "Words")


def test_the_header_that_a_notebook_shows_is_not_shown_twice() -> None:
    assert shown(text_html='<section class="run-header passed">', text_plain="99_test: passed") == ""


def test_what_needs_a_kernel_says_so() -> None:
    output = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "VBox()"}
    assert "JupyterLab only" in output_html({"output_type": "display_data", "data": output}, "")
