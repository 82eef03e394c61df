"""Paths of the cached weights, verified. `fetching` downloads them.

Nothing here needs a network. The cache has:

    <home>/weights/kokoro-v1.0.fp32.onnx      and the other variants
    <home>/weights/voices/af_heart.bin        and 53 more
    <home>/weights/english-tagger/tagger/model    and four more, laid out as in the spaCy model they are from
    <home>/weights/whisper-base/model.bin     the recogniser and its three other files, if it was asked for
    <home>/weights/voice-encoder/pretrained.pt    the voice encoder, if it was asked for
    <home>/weights/verified.json              what was hashed, at which size and time
    <home>/staging/                           downloads under way, the lock of `fetch`
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from kokoro_lab.config import settings
from kokoro_lab.errors import VoiceError
from kokoro_lab.typed import require_choice
from kokoro_lab.weights.catalogue import WeightFile, catalogue
from kokoro_lab.weights.verified import DAMAGED, MISSING, damage_of, record, size_and_time, verified

Status = Literal["ok", "corrupt", "missing"]
ENGLISH_TAGGER = "english-tagger"
"""The folder of the English tagger below the folder of the weights."""


def weights_home(home: Path | None = None) -> Path:
    """The folder that holds weights and what is made of them; `Settings.home` unless given."""
    return Path(home or settings().home).expanduser().absolute()


def voice_names() -> tuple[str, ...]:
    """The names of all voices, sorted."""
    return tuple(sorted(catalogue().voices))


def model_sha256(variant: str) -> str:
    """SHA-256 of a variant's model file, in lower-case hex.

    Raises
    ------
    ParameterError
        There is no such upstream variant.
    """
    return _model(variant).sha256


def model_path(variant: str, home: Path | None = None) -> Path:
    """Path of a variant's ONNX file, verified.

    Raises
    ------
    WeightsError
        The file has not been fetched.
    IntegrityError
        The file is there but its bytes are wrong.
    ParameterError
        There is no such upstream variant.
    """
    return verified(_model(variant), weights_home(home) / "weights")


def voice_path(voice: str, home: Path | None = None) -> Path:
    """Path of a voice pack, verified: little-endian float32, 510 × 1 × 256.

    Raises
    ------
    WeightsError
        The file has not been fetched.
    IntegrityError
        The file is there but its bytes are wrong.
    VoiceError
        There is no such voice.
    """
    require_choice("voice", voice, voice_names(), f"There is no voice {voice!r}.", VoiceError)
    return verified(catalogue().voices[voice], weights_home(home) / "weights")


def english_tagger_path(home: Path | None = None) -> Path:
    """Folder of the tagger, which finds the word classes of English words; all its files are verified.

    The files are those of spaCy's `en_core_web_sm`, with their names there: `tok2vec/model`, `tagger/model`,
    `tagger/cfg` (its labels), `tokenizer`, `vocab/lookups.bin`. `fetching.english_tagger` fetches them first
    where they are missing.

    Raises
    ------
    WeightsError
        A file has not been fetched.
    IntegrityError
        A file is there but its bytes are wrong.
    """
    folder = weights_home(home) / "weights"
    for file in catalogue().english_tagger.values():
        verified(file, folder)
    return folder / ENGLISH_TAGGER


def recogniser_path(home: Path | None = None) -> Path:
    """Folder of the recogniser, Whisper base for CTranslate2, all its files verified.

    Raises
    ------
    WeightsError
        A file has not been fetched.
    IntegrityError
        A file is there but its bytes are wrong.
    """
    folder = weights_home(home) / "weights"
    command = "kokoro-lab fetch --recogniser"
    paths = [verified(file, folder, command) for file in catalogue().recogniser.values()]
    return paths[0].parent


def voice_encoder_path(home: Path | None = None) -> Path:
    """The checkpoint of the voice encoder, verified.

    Raises
    ------
    WeightsError
        The checkpoint has not been fetched.
    IntegrityError
        The checkpoint is there but its bytes are wrong.
    """
    (file,) = catalogue().voice_encoder.values()
    return verified(file, weights_home(home) / "weights", "kokoro-lab fetch --voice-encoder")


def missing(
    variants: Iterable[str],
    home: Path | None = None,
    *,
    recogniser: bool = False,
    voice_encoder: bool = False,
) -> list[str]:
    """Names of the files that `variants`, the voices and the tagger need, and that are missing or have
    another size. Files of the recogniser and of the voice encoder count only if `recogniser` or
    `voice_encoder` is True.

    Nothing is hashed; `verify` does that.
    """
    folder = weights_home(home) / "weights"
    files = files_of(variants, recogniser=recogniser, voice_encoder=voice_encoder)
    return [f.name for f in files if size_and_time(folder / f.name)[0] != f.bytes]


def verify(home: Path | None = None) -> dict[str, Status]:
    """Hash every file of the catalogue again, whatever is on record.

    Returns
    -------
    dict of str to {"ok", "corrupt", "missing"}
        The state of each file, by its name below the weights folder. A file that is not right is removed from
        the record, so that loading it is refused as well.
    """
    folder = weights_home(home) / "weights"
    found: dict[str, Status] = {}
    for file in every_file():
        promised = {file.name: (file.bytes, file.sha256)}
        try:
            damage = damage_of(promised, folder, folder, again=True)
        except OSError:  # it cannot be read, so neither used
            damage = DAMAGED
            record(folder, {file.name: None})
        found[file.name] = "missing" if damage.endswith(MISSING) else "corrupt" if damage else "ok"
    return found


def every_file() -> tuple[WeightFile, ...]:
    """All files of the catalogue."""
    return files_of(catalogue().models, recogniser=True, voice_encoder=True)


def files_of(
    variants: Iterable[str], *, recogniser: bool = False, voice_encoder: bool = False
) -> tuple[WeightFile, ...]:
    """All voices, the tagger and the models of `variants`; and recogniser and voice encoder, if they are
    wanted.

    Voices and tagger first: they are small and always needed.

    Raises
    ------
    ParameterError
        There is no such upstream variant.
    """
    known = catalogue()
    models = (_model(variant) for variant in dict.fromkeys(variants))
    judges = [*(known.recogniser.values() if recogniser else ())]
    judges += known.voice_encoder.values() if voice_encoder else ()
    return (*known.voices.values(), *known.english_tagger.values(), *models, *judges)


def _model(variant: str) -> WeightFile:
    models = catalogue().models
    require_choice("variant", variant, models, f"There is no model file of a variant {variant!r}.")
    return models[variant]
