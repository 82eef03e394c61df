"""Break the speech on purpose, one line at a time, and see which tests notice (minutes; fetched weights).

python scripts/mutations.py [NAME ...]: only mutations whose names hold one of these words.

The working tree is never touched: its files, as they are now, are copied to a temporary folder, and each
mutation is put in there, judged by the tests that are expected to notice, and taken out again. Exits with 1
if one of them survives: then a fault of that kind could be committed unseen.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change to one file that breaks what is heard.

    Parameters
    ----------
    name : str
        What is broken.
    file : str
        Path in the repository.
    old, new : str
        Text that stands in the file once, and what takes its place.
    tests : tuple of str
        Tests, as pytest names them, that are there to notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def of(self, source: str) -> str:
        """The source with the mutation in it.

        Raises
        ------
        ValueError
            What is to be changed does not stand in it exactly once.
        """
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has {source.count(self.old)} times: {self.old!r}")
        return source.replace(self.old, self.new)


ENGINE, PLACES, RESUME = "tests/test_engine.py", "tests/test_places.py", "tests/server/test_resume.py"
TRIM, STATISTICS = "tests/dsp/test_trim.py", "tests/model/test_statistics.py"
BEGINNING = "tests/model/test_beginning.py"
WINDOWS = "tests/model/test_windows.py"
LIMITER = "tests/dsp/test_limiter.py"

MUTATIONS = (
    Mutation(
        "no fade into a segment",
        "kokoro_lab/dsp/trim.py",
        "held[: len(self._fade_in)] *= self._fade_in",
        "pass",
        (f"{TRIM}::test_a_cut_edge_fades_so_that_it_cannot_click",),
    ),
    Mutation(
        "no fade out of a segment",
        "kokoro_lab/dsp/trim.py",
        "return held[:kept] * self._fade_out if self.tail_samples else held",
        "return held[:kept] if self.tail_samples else held",
        (f"{TRIM}::test_a_cut_edge_fades_so_that_it_cannot_click",),
    ),
    Mutation(
        "no pause between segments",
        "kokoro_lab/pauses.py",
        "return silence(0.0 if first else self.between_s, SAMPLE_RATE_HZ)",
        "return silence(0.0, SAMPLE_RATE_HZ)",
        (f"{ENGINE}::test_pauses_follow_the_punctuation",),
    ),
    Mutation(
        "a stream without limiter",
        "kokoro_lab/levelling.py",
        "limiter.push(gain.push(piece)) if isinstance(piece, np.ndarray) else limiter.flush()",
        "gain.push(piece) if isinstance(piece, np.ndarray) else gain.flush()",
        (f"{ENGINE}::test_a_stream_that_is_turned_up_stays_below_the_peak_limit",),
    ),
    Mutation(
        "a file without limiter",
        "kokoro_lab/dsp/loudness.py",
        "limited = limiter.run(Gain(gain_db).run(samples))",
        "limited = Gain(gain_db).run(samples)",
        (
            "tests/dsp/test_loudness.py::test_no_true_peak_is_over_the_limit_even_where_the_target_cannot_be_met",
        ),
    ),
    Mutation(
        "a stream without its voice's gain",
        "kokoro_lab/levelling.py",
        "gain, limiter = Gain(gain_db), Limiter(SAMPLE_RATE_HZ)",
        "gain, limiter = Gain(0.0), Limiter(SAMPLE_RATE_HZ)",
        (f"{ENGINE}::test_a_stream_is_as_loud_as_its_voice_is_on_average",),
    ),
    Mutation(
        "the next row of the voice's styles",
        "kokoro_lab/model/voices.py",
        "self.pack[token_count - 1]",
        "self.pack[min(token_count, PACK_ROWS - 1)]",
        (
            f"{ENGINE}::test_the_style_row_follows_the_number_of_token_ids",
            f"{ENGINE}::test_each_token_sounds_where_its_timing_says",
        ),
    ),
    Mutation(
        "the second segment is lost",
        "kokoro_lab/preparation.py",
        "yield Prepared(segment, pause, decoded, delivery)",
        "yield from (Prepared(segment, pause, decoded, delivery),) if segment.segment_id != 1 else ()",
        (
            f"{ENGINE}::test_chunks_are_frames_in_order",
            f"{ENGINE}::test_every_word_of_a_long_text_is_heard_in_its_place",
        ),
    ),
    Mutation(
        "a chunk is lost",
        "kokoro_lab/streaming.py",
        "for at in range(0, whole, self._size):",
        "for at in range(0, whole, self._size)[:3]:",
        ("tests/test_streaming.py::test_frames_joined_are_the_stream",),
    ),
    Mutation(
        "statistics of another style",
        "kokoro_lab/model/predictor.py",
        "            prosody.style[0, :128],\n",
        "            prosody.style[0, 128:],\n",
        (f"{STATISTICS}::test_predicted_statistics_sound_like_true_ones",),
    ),
    Mutation(
        "no bend in the predicted statistics",
        "kokoro_lab/model/predictor.py",
        "coordinates = coordinates + self.bend.at(coordinates)",
        "pass",
        ("tests/tuning/test_predictor_fit.py::test_what_bends_needs_a_bend_and_keeps_it",),
    ),
    Mutation(
        "a trunk that looks a frame less far",
        "kokoro_lab/model/prosody.py",
        "TRUNK_REACH_FRAMES = 10",
        "TRUNK_REACH_FRAMES = 9",
        (f"{BEGINNING}::test_of_true_statistics_come_the_first_frames_of_the_whole_trunk",),
    ),
    Mutation(
        "no fade out of the first window",
        "kokoro_lab/model/beginning.py",
        "into[: len(out)] = out + rise * (into[: len(out)] - out)",
        "pass",
        (f"{BEGINNING}::test_what_fades_out_ends_and_what_fades_in_begins",),
    ),
    Mutation(
        "a first window that waits for the trunk",
        "kokoro_lab/model/beginning.py",
        "return None if whole or contours.f0_hz.size < LEAST_FRAMES else cls(audible, spans)",
        "return None",
        (f"{BEGINNING}::test_the_first_sound_does_not_wait_for_the_trunk",),
    ),
    Mutation(
        "a first window as long as it may be",
        "kokoro_lab/model/vocoder.py",
        "if self.first_chunk is None:",
        "if True:",
        (
            f"{WINDOWS}::test_the_first_window_ends_with_the_first_chunk_and_the_next_one_with_the_second",
            f"{BEGINNING}::test_the_first_chunk_takes_one_small_window",
        ),
    ),
    Mutation(
        "a layer that looks a column less far",
        "kokoro_lab/model/context_passes.py",
        "SAMPLE_REACH = 2",
        "SAMPLE_REACH = 1",
        (
            "tests/model/test_context.py"
            "::test_a_window_of_which_only_what_is_looked_at_is_worked_out_is_the_same",
        ),
    ),
    Mutation(
        "a window without context",
        "kokoro_lab/model/vocoder.py",
        "before = SILENT_CONTEXT_FRAMES if start == audible[0] else context",
        "before = 0",
        (f"{STATISTICS}::test_windows_with_true_statistics_are_the_whole",),
    ),
    Mutation(
        "the lexicon is not read",
        "kokoro_lab/g2p/lexicon.py",
        "    found = lexicon.find(sentence.text, language)\n",
        "    lexicon = Lexicon(())\n    found = lexicon.find(sentence.text, language)\n",
        (f"{ENGINE}::test_a_request_may_bring_a_lexicon",),
    ),
    Mutation(
        "one word in fifty is dropped",
        "kokoro_lab/g2p/english.py",
        "            if phonemes:\n                space = bool(token.whitespace)",
        "            if phonemes and i % 50 != 16:\n                space = bool(token.whitespace)",
        ("tests/g2p/test_english.py::test_two_thousand_characters_without_a_stop_lose_nothing",),
    ),
    Mutation(
        "a resumed stream loses a chunk",
        "kokoro_lab/server/speech_events.py",
        "wanted = chunk.chunk_id > self._after",
        "wanted = chunk.chunk_id > self._after + (self._after >= 0)",
        (f"{RESUME}::test_every_frame_can_be_gone_on_behind",),
    ),
    Mutation(
        "a resumed stream replays a chunk",
        "kokoro_lab/server/speech_events.py",
        "wanted = chunk.chunk_id > self._after",
        "wanted = chunk.chunk_id >= self._after",
        (f"{RESUME}::test_every_frame_can_be_gone_on_behind",),
    ),
    Mutation(
        "a block forgets what the limiter has not let go yet",
        "kokoro_lab/dsp/limiter.py",
        "self._raised = last if last > _LOG_OF_NOTHING else -math.inf",
        "self._raised = -math.inf",
        ("tests/dsp/test_block.py::test_blocks_do_not_matter_to_the_last_bit",),
    ),
    Mutation(
        "a resumed segment's limiter rounds otherwise",
        "kokoro_lab/dsp/limiter.py",
        "raised = on_grid(np.log(needed), _LOG_BITS) + decay",
        "raised = np.log(needed) + decay",
        (f"{LIMITER}::test_a_release_does_not_depend_on_where_it_is_counted_from",),
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What tests said: their names where they failed, and all that they wrote where they could not run."""

    failed: tuple[str, ...]
    broken: str = ""


def copied(repository: Path, folder: Path) -> Path:
    """The files of a checkout that git knows or would add, as they are now, in `folder`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (repository / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, folder / name)
    return folder


def outcome_of(folder: Path, tests: Iterable[str]) -> Outcome:
    """Run tests in a copy, on the package that lies there."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rf",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",  # a mutation may come and go within the clock of a file's time
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they make every start longer, and no test here needs one
    }
    run = subprocess.run(
        [*command, *tests], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    failed = re.findall(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
    # 0: all passed, 1: some failed; anything else is no verdict
    broken = "" if run.returncode in (0, 1) else run.stdout + run.stderr
    return Outcome(tuple(failed), broken)


def outcome_with(mutation: Mutation, folder: Path) -> Outcome:
    """What the tests say of a copy while the mutation is in it."""
    path = folder / mutation.file
    source = path.read_text("utf-8")
    path.write_text(mutation.of(source), "utf-8")
    try:
        return outcome_of(folder, mutation.tests)
    finally:
        path.write_text(source, "utf-8")


def survivors(mutations: Sequence[Mutation], folder: Path) -> list[Mutation]:
    """Those that no test noticed, each mutation's line written as it is known.

    Raises
    ------
    RuntimeError
        Tests that fail, or cannot run, without any mutation.
    """
    named = sorted({test for mutation in mutations for test in mutation.tests})
    untouched = outcome_of(folder, named)
    if untouched.failed or untouched.broken:
        raise RuntimeError(f"Without any mutation: {untouched.failed or untouched.broken}")
    survived = []
    for mutation in mutations:
        outcome = outcome_with(mutation, folder)
        seen_by = ", ".join(dict.fromkeys(re.sub(r"^.*::|\[.*", "", test) for test in outcome.failed))
        verdict = "BROKEN" if outcome.broken else "caught" if outcome.failed else "SURVIVED"
        sys.stdout.write(f"{verdict:8}  {mutation.name:48}  {seen_by}{outcome.broken[-400:]}\n")
        sys.stdout.flush()
        if verdict != "caught":
            survived.append(mutation)
    return survived


def main(words: Sequence[str]) -> int:
    """Run the mutations that `words` ask for, all if there are none; the exit code."""
    chosen = [m for m in MUTATIONS if not words or any(word in m.name for word in words)]
    with tempfile.TemporaryDirectory() as name:
        left = survivors(chosen, copied(Path(__file__).parents[1], Path(name)))
    sys.stdout.write(f"{len(chosen) - len(left)} of {len(chosen)} mutations are caught\n")
    return int(bool(left) or not chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
