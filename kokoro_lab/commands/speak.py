"""`speak`: speaks a text into a file and through the sound card."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

import click

from kokoro_lab.commands.completion import languages, offering
from kokoro_lab.commands.console import counted, require_one_text, say, text_as_written, text_of
from kokoro_lab.commands.options import (
    PATH,
    choice_option,
    code_option,
    detection_option,
    emoji_option,
    entries_of,
    input_format_option,
    json_option,
    lexicon_option,
    variant_option,
    voice_option,
)
from kokoro_lab.config import SPEED_MAX, SPEED_MIN
from kokoro_lab.errors import ParameterError

if TYPE_CHECKING:
    from kokoro_lab.datatypes import Samples


STANDARD_INPUT = Path("-")
HOW = {True: "warm stream", False: "whole file, first use"}


@click.command()
@click.argument("text", required=False)
@click.option(
    "-i",
    "--input",
    "input_file",
    type=PATH,
    help="Read the text from a file; from -, speak standard input as it is written.",
)
@click.option("--tee", is_flag=True, help="With -i -: pass the text on to standard output.")
@click.option(
    "-o",
    "--output",
    type=PATH,
    default="speech.wav",
    show_default=True,
    help="File to write; its ending chooses the format.",
)
@click.option("--captions", type=PATH, help="Write captions, too: .srt or .vtt.")
@click.option("--play", is_flag=True, help="Play the speech; with --stream, while it is computed.")
@voice_option
@click.option("--speed", type=float, default=1.0, show_default=True, help=f"{SPEED_MIN} to {SPEED_MAX}.")
@click.option("--language", help="Such as en-gb.  [default: the voice's]", shell_complete=offering(languages))
@detection_option
@variant_option
@click.option("--provider", help="ONNX Runtime provider that computes, such as cpu or coreml.")
@click.option("--sample-rate", type=int, default=24_000, show_default=True, help="Sample rate, in Hz.")
@input_format_option("What TEXT is: plain, a subset of SSML, Markdown, or plain with marks like [pause:1s].")
@code_option
@emoji_option
@click.option("--loudness", default="auto", help="What sets the gain: auto, measured, voice, none (no gain).")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the noise of --dither.")
@choice_option(
    "--dither", ("tpdf", "shaped"), "tpdf", "In WAV, FLAC, PCM: white noise, or noise that is less audible."
)
@click.option("--stream", is_flag=True, help="Speak as a stream does, and report its time to first audio.")
@lexicon_option
@json_option
def speak(
    text: str | None,
    input_file: Path | None,
    output: Path,
    captions: Path | None,
    play: bool,
    sample_rate: int,
    variant: str | None,
    provider: str | None,
    stream: bool,
    tee: bool,
    dither: Literal["tpdf", "shaped"],
    lexicon: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Speak TEXT (or a file, or standard input) into a file: WAV, MP3, FLAC, Opus, AAC or bare PCM."""
    import numpy as np

    from kokoro_lab.containers import Encoder, dithered, format_of, write_encoded
    from kokoro_lab.containers.plain_json import finite
    from kokoro_lab.dsp import ditherer
    from kokoro_lab.metrics.loudness import true_peak_dbtp
    from kokoro_lab.playback.aloud import aloud
    from kokoro_lab.playback.sinks import SoundCard
    from kokoro_lab.scheduling.kept_threads import Lookahead
    from kokoro_lab.scheduling.priority import loaded_without_collector
    from kokoro_lab.speech.captions import caption_format_of, captions_file
    from kokoro_lab.speech.engine import load_engine

    require_one_text(text, input_file)
    kind = caption_format_of(captions) if captions else None
    live = input_file == STANDARD_INPUT
    if tee and not live:
        raise ParameterError(
            "--tee passes on what is spoken as it is written.", field="--tee", mend="Add -i -."
        )
    said: list[str] = []

    begun: list[float] = []

    def take_note(written: str) -> None:
        if not said:
            begun.append(time.perf_counter())
        said.append(written)
        if tee:
            sys.stdout.write(written)
            sys.stdout.flush()

    words: str | Iterator[str]
    words = text_as_written(sys.stdin.buffer, take_note) if live else text_of(text, input_file)
    stream = stream or live
    tell = partial(click.echo, err=tee)
    options["lexicon"] = entries_of(lexicon)
    encoder = Encoder(format_of(output), sample_rate, options["seed"], streamed=False, dither=dither)
    if dither != "tpdf" and not dithered(encoder.kind):
        say(f"note   dither: {encoder.kind} is not of 16 bit, and has none to shape.")
    with loaded_without_collector():
        engine = load_engine(variant, provider, voice=options["voice"], say=say)
    with ExitStack() as stack:
        dithering = ditherer(dither, 24_000, options["seed"])
        heard = stack.enter_context(aloud(SoundCard(), dithering)) if play else None
        if stream and not live:
            # as from a server that has been running for a while
            engine.warm(options["voice"], text="Ready.")
        stop = Event()
        stack.callback(stop.set)  # after Ctrl-C, no further text is waited for
        source = engine.stream(words, streamed=stream, stop=stop, **options)
        chunks = []
        # In another thread, so that this one can handle Ctrl-C while a window is computed
        ahead = Lookahead(source)
        ahead.begin()
        for chunk in ahead:
            ahead.begin()
            if len(begun) == 1:
                begun.append(time.perf_counter())
            if stream and heard is not None:
                heard.push(chunk.samples)
            chunks.append(chunk.samples)
        samples, report = np.concatenate(chunks), source.report
        output.parent.mkdir(parents=True, exist_ok=True)
        path = write_encoded(output, encoder, samples)
        if captions and kind:
            whole = words if isinstance(words, str) else "".join(said)
            how = {"language": report.language, "code": options["code"]}
            written = captions_file(kind, whole, options["input_format"], source.timings, **how)
            captions.write_text(written, "utf-8")
        figures: dict[str, Any] = {
            "path": str(path),
            "audio_s": round(report.audio_s, 3),
            "compute_s": round(report.compute_s, 3),
            "rtf": round(report.rtf, 4),
            "ttfa_s": round(report.ttfa_s, 4),
            "integrated_lufs": round(_integrated_lufs(samples), 2),
            "true_peak_dbtp": round(true_peak_dbtp(samples, 24_000), 2),
            "fallbacks": [asdict(fallback) for fallback in report.fallbacks],
        }
        if not as_json:
            _print_figures(tell, figures, report, HOW[stream], begun)
        try:
            if heard is not None:
                if not stream:
                    heard.push(samples)
                figures["fallbacks"] += [asdict(fallback) for fallback in heard.finish().fallbacks]
        finally:
            if as_json:
                tell(json.dumps(finite({**figures, "report": asdict(report)})))


def _integrated_lufs(samples: Samples) -> float:
    """The loudness of a clip; NaN if it is shorter than a block of the standard."""
    from kokoro_lab.metrics.loudness import MOMENTARY_S, IntegratedLoudness

    if len(samples) < MOMENTARY_S * 24_000:
        return math.nan
    meter = IntegratedLoudness(24_000)
    meter.push(samples)
    return meter.lufs()


def _print_figures(
    tell: Callable[[str], None], figures: dict[str, Any], report: Any, how: str, begun: list[float]
) -> None:
    tell(f"wrote  {figures['path']}")
    tell(f"speech {report.audio_s:.2f} s, voice {report.voice}, {counted(report.segments, 'segment')}")
    changed = [stretch for stretch in report.stretches if stretch != 1]
    if changed:
        tell(
            f"speed  {report.speed:g}: {report.speed * changed[0]:.2f} by the model, and a time stretch to "
            f"{changed[0]:.2f} of its length"
        )
    if begun:
        tell(f"begins {begun[-1] - begun[0]:.3f} s behind the text's first letters (live text, first use)")
    elif report.segments:  # a document of breaks alone has no first sound
        tell(f"TTFA   {report.ttfa_s:.3f} s ({how}, one trial)")
    tell(f"RTF    {report.rtf:.3f} ({report.variant} on {report.active_provider}, {report.threads} threads)")
    loudness = figures["integrated_lufs"]
    tell(
        f"level  {f'{loudness:.1f} LUFS' if math.isfinite(loudness) else 'too short or soft to measure'}, "
        f"true peak {figures['true_peak_dbtp']:.1f} dBTP (gain {report.gain_db:+.1f} dB)"
    )
    for fallback in report.fallbacks:
        where = "" if fallback.start is None else f" (characters {fallback.start} to {fallback.end})"
        click.echo(f"note   {fallback.stage}: {fallback.reason}{where}", err=True)
