"""How the neighbouring sentences change a segment near its border, and what it costs to let it see them.

The engine speaks a segment as if nothing stood before or after it. Here, both sides of a border are also read
with some token ids of the other side, which are cut off afterwards; the `continuous` mode of kokoro-onnx does
so with 60 ids. A third way reads both sides in one pass; every other way is compared with it. The style
vector is that of the segment by itself in all ways, so that they differ only in the token ids that the model
sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp.trim import KEEP_LEAD_S, KEEP_TAIL_S
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES, frames_of
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.fixtures import FixtureText, load_rows, load_texts, spread
from kokoro_lab.lab.research.turns import ratios, take_turns
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning.comparison import heard_part
from kokoro_lab.metrics.intervals import Estimate, mean_of
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.metrics.prosody import F0_A_FRAME, prosody_drift
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.model.pauses import FRAME_S, QUIET_ENERGY, SOFTER_S
from kokoro_lab.model.prosody import Contours, Values
from kokoro_lab.text.segment import MAX_TOKENS
from kokoro_lab.weights.voices import Voice, english_of, load_voice

ALONE, ONE_PASS, OTHERS, TWICE = "alone", "one pass", "60 ids of another text", "one pass, again"
SEEN = {ALONE: 0, "10 ids": 10, "30 ids": 30, "60 ids": 60, ONE_PASS: MAX_TOKENS}
"""Way of reading → the most token ids of the other side that the model sees."""
PEERS = "60 ids"
ZONE = 15
"""Token ids on each side of a border that are compared: about a second of speech."""
EAR_S = 1.5
"""Seconds of speech on each side of a border that DNSMOS rates, in place of a listener."""
FADE_S = 0.025
"""Length of the fade between two sides that saw each other, as in kokoro-onnx."""
LU_A_UNIT = 1.5
"""Loudness in LU for one unit of the model's energy curve. The gain of streams is estimated with the same
factor."""
NOTICED = {"f0_cents": 150.0, "tempo_percent": 5.0, "level_lu": 1.0}
"""Differences above these are noticed by people who compare two readings: in the pitch of speech ('t Hart,
JASA 69, 1981, has 1.5 to 2 semitones, and 3 where people just listen), in tempo (Quené, Journal of Phonetics
35, 2007), and in loudness."""
FIGURES = [*NOTICED, "pause_ms"]
_SPACE = encode(" ")
_MARKS = frozenset(encode(' .!?…:,;—"“”()'))
"""Token ids at a border that are not speech; `pause_s` measures their silence."""
_ENDS = frozenset(encode(".!?…"))


@dataclass(frozen=True, slots=True, eq=False)
class Border:
    """Two segments of a text that follow each other, as token ids, and the voice that speaks them.

    `pause_s` is the silence that is added between them.
    """

    text: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    pause_s: float
    voice: Voice

    @property
    def kind(self) -> str:
        """Whether the border is the end of a sentence, or lies within a sentence that was cut."""
        return "sentence" if {*self.before[-2:]} & _ENDS else "within a sentence"

    @property
    def zones(self) -> tuple[slice, slice]:
        """The `ZONE` token ids nearest to the border on each side, marks left out."""
        last = max(place for place, each in enumerate(self.before, 1) if each not in _MARKS)
        first = min(place for place, each in enumerate(self.after) if each not in _MARKS)
        return slice(max(0, last - ZONE), last), slice(first, first + ZONE)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One side of a border as it was read: frames of 25 ms for each of its token ids, and the curves of F0
    and energy with two values a frame. A reading also keeps the contours of all that was read, and where this
    side begins and ends in them."""

    frames: np.ndarray
    f0_hz: Values
    energy: Values
    contours: Contours
    cut: slice

    def ids(self, kept: slice) -> Reading:
        """The reading of some of the token ids; the contours from which it was cut stay."""
        ends = np.concatenate([[0], np.cumsum(self.frames)])
        numbers = range(len(self.frames))[kept]
        values = slice(F0_A_FRAME * ends[numbers.start], F0_A_FRAME * ends[numbers.stop])
        return replace(self, frames=self.frames[kept], f0_hz=self.f0_hz[values], energy=self.energy[values])


def all_texts() -> list[FixtureText]:
    """The fixture texts, and the fixture answers, which have several sentences."""
    answers = [(row["id"], "".join(piece for piece, _ in row["written"])) for row in load_rows("answers")]
    return [*load_texts(), *(FixtureText(name, "prose", text) for name, text in answers)]


def borders_of(texts: Sequence[FixtureText], voices: Sequence[str], each: int) -> list[Border]:
    """At most `each` borders of every text; each text is read by the next voice in turn. A border is left out
    if both sides together are too long for one pass."""
    front_end, found = FrontEnd(), []
    for number, text in enumerate(texts):
        voice = load_voice(voices[number % len(voices)])
        segments = list(front_end.segments(text.text, english_of(voice.name), lambda _: None))
        pairs = [
            Border(text.id, one.token_ids, other.token_ids, one.pause_after_s, voice)
            for one, other in pairwise(segments)
            if len(one.token_ids) + len(other.token_ids) < MAX_TOKENS
        ]
        found += spread(pairs, each)
    return found


class BorderReader:
    """Reads both sides of borders, with more or less of the other side, and speaks them.

    Parameters
    ----------
    config : EngineConfig
        Configuration of a variant that runs in stages. Pauses within a segment are left as the model makes
        them.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.decoder = StagedDecoder(replace(config, pauses="model"))

    def sides(self, border: Border, way: str, other: Border) -> tuple[Reading, Reading]:
        """Both sides of `border`, read in the given way. In the way `OTHERS`, the model sees ids of the
        border `other` instead."""
        seen, beside = SEEN.get(way, 60), other if way == OTHERS else border
        seen = MAX_TOKENS if way == TWICE else seen
        return (
            self.read(border, (), border.before, beside.after[:seen]),
            self.read(border, beside.before[max(0, len(beside.before) - seen) :], border.after, ()),
        )

    def read(
        self, border: Border, ahead: Sequence[int], own: Sequence[int], behind: Sequence[int]
    ) -> Reading:
        """Read one side of the border, the ids `own`, with the ids `ahead` before them and the ids `behind`
        after them."""
        lead = [*ahead, *_SPACE] if ahead else []
        ids = [*lead, *own, *_SPACE, *behind] if behind else [*lead, *own]
        contours = self.decoder.prosody.contours(ids, border.voice.style(len(own)), 1.0)
        frames = frames_of(contours.durations).reshape(-1)
        first, last = len(lead) + 1, len(lead) + 1 + len(own)  # a pad is in front of all
        ends = np.concatenate([[0], np.cumsum(frames)])
        values = slice(F0_A_FRAME * ends[first], F0_A_FRAME * ends[last])
        # A side at an edge keeps its pad, which holds the end of the sound; a space belongs to the side
        # before
        cut = slice(ends[first] if lead else 0, ends[last + 1] if behind else ends[-1])
        curves = contours.f0_hz.reshape(-1)[values], contours.energy.reshape(-1)[values]
        return Reading(frames[first:last], *curves, contours, cut)

    def spoken(self, border: Border, way: str, other: Border) -> Samples:
        """The samples of `EAR_S` on each side of the border. Sides that were read alone have a stream's pause
        between them. Sides that saw each other contain the pause, and are faded into each other as in
        kokoro-onnx. One pass needs neither."""
        one, behind = self.sides(border, way, other)
        length = round(EAR_S * SAMPLE_RATE_HZ)
        if way == ONE_PASS:
            at = one.cut.stop * DURATION_FRAME_SAMPLES
            return self._samples(border.before, border.voice, one)[max(0, at - length) : at + length]
        first, second = (
            self._samples(ids, border.voice, side)[_samples_of(side.cut)]
            for ids, side in ((border.before, one), (border.after, behind))
        )
        if way == ALONE:
            silence = np.zeros(round(border.pause_s * SAMPLE_RATE_HZ), np.float32)
            first, second = first[heard_part(first)], second[heard_part(second)]
            return np.concatenate([first[-length:], silence, second[:length]])
        fade = round(FADE_S * SAMPLE_RATE_HZ)
        rise = np.linspace(0, 1, fade, dtype=np.float32)
        both = first[-fade:] * (1 - rise) + second[:fade] * rise
        return np.concatenate([first[-length:-fade], both, second[fade:length]])

    def _samples(self, own: Sequence[int], voice: Voice, side: Reading) -> Samples:
        """The samples of all that was read, including the part that is cut off."""
        behind = self.decoder.prosody.behind(side.contours, voice.style(len(own)))
        return self.decoder.vocoder.whole(behind)


def _samples_of(frames: slice) -> slice:
    return slice(frames.start * DURATION_FRAME_SAMPLES, frames.stop * DURATION_FRAME_SAMPLES)


def distance(
    border: Border, reference: tuple[Reading, Reading], candidate: tuple[Reading, Reading]
) -> dict[str, float]:
    """How far one reading of the token ids next to a border is from another, as the mean of both sides.

    Returns
    -------
    dict
        f0_cents: the difference in pitch, as a median over voiced frames; tempo_percent: the difference in
        the length of all that is not silent; level_lu: the difference in loudness. All are absolute values.
    """
    found = []
    for zone, one, other in zip(border.zones, reference, candidate, strict=True):
        first, second = one.ids(zone), other.ids(zone)
        drift = prosody_drift(first.frames, first.f0_hz, second.frames, second.f0_hz)
        # The last sound of a side has the silence behind it in its frames
        spoken = [np.count_nonzero(side.energy >= QUIET_ENERGY) for side in (first, second)]
        longer = np.log(np.maximum(spoken[1], 1) / np.maximum(spoken[0], 1))
        louder = np.log(np.exp(second.energy).mean() / np.exp(first.energy).mean())
        found.append((drift.f0_change_cents, 100 * abs(longer), LU_A_UNIT * abs(louder)))
    return dict(zip(NOTICED, np.nanmean(found, axis=0), strict=True))


def pause_s(border: Border, model: Reading) -> tuple[float, float]:
    """Seconds of silence at the border: in one pass, and in a stream."""
    ends = np.cumsum(frames_of(model.contours.durations))
    quiet = model.contours.energy.reshape(-1) < QUIET_ENERGY
    at = F0_A_FRAME * int(ends[len(border.before)])  # ids are counted from the pad
    runs = np.flatnonzero(np.diff(np.concatenate([[0], quiet.astype(np.int8), [0]])))
    near = [(start, stop) for start, stop in runs.reshape(-1, 2) if start - 4 <= at <= stop + 4]
    longest = max((stop - start for start, stop in near), default=0)
    made = longest * FRAME_S / F0_A_FRAME + SOFTER_S if longest else 0.0
    return made, KEEP_TAIL_S + border.pause_s + KEEP_LEAD_S


def read_all(reader: BorderReader, borders: Sequence[Border]) -> pd.DataFrame:
    """Read every border in every way; a row for each, with the distances to one pass (see `distance`).

    Columns: text, border, kind, way, the figures of `NOTICED`, and pause_ms, the difference in silence at the
    border.
    """
    rows = []
    for number, border in enumerate(tqdm(borders, desc="borders", disable=None)):
        other = borders[(number + len(borders) // 2 + 1) % len(borders)]
        model = reader.sides(border, ONE_PASS, other)
        made, ours = pause_s(border, model[0])
        for way in (*SEEN, OTHERS, TWICE):
            found = distance(border, model, reader.sides(border, way, other))
            pause_ms = 0.0 if way in (ONE_PASS, TWICE) else 1000 * abs(ours - made)
            place = {"text": border.text, "border": number, "kind": border.kind, "way": way}
            rows.append({**place, **found, "pause_ms": pause_ms})
    return pd.DataFrame(rows)


def estimates(table: pd.DataFrame, way: str) -> dict[str, Estimate]:
    """Means over texts, with their intervals, of one way's figures."""
    rows = table[table.way == way]
    return {name: mean_of(rows[name], list(rows.text)) for name in FIGURES if name in rows}


def by_way(table: pd.DataFrame) -> pd.DataFrame:
    """`estimates` of every way, written with their intervals; a row for each way."""
    ways = dict.fromkeys(table.way)
    return pd.DataFrame({way: {n: str(e) for n, e in estimates(table, way).items()} for way in ways}).T


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """For each kind of border: `estimates` of segments that are spoken without their neighbours."""
    kinds = dict(iter(table.groupby("kind")))
    return pd.concat(
        {kind: by_way(rows).loc[[ALONE]] for kind, rows in kinds.items()}, names=["border", "way"]
    )


def by_text(table: pd.DataFrame) -> pd.DataFrame:
    """Medians over the borders of each text, for the ways that are drawn."""
    drawn = table[table.way.isin([ALONE, PEERS, OTHERS, ONE_PASS])]
    return drawn.groupby(["text", "way"], sort=False, as_index=False)[list(NOTICED)].median()


def noticed(found: dict[str, Estimate]) -> list[str]:
    """Figures whose whole interval is above the limit in `NOTICED`."""
    return [name for name, limit in NOTICED.items() if found[name].low > limit]


def listened(
    reader: BorderReader, borders: Sequence[Border], ear: Callable[[Samples, int], float] = dnsmos
) -> pd.DataFrame:
    """How DNSMOS, which needs no reference, rates each border. Columns: text, kind, way, dnsmos, and
    dnsmos_gain, the rating minus that of the same border when its segments are spoken without their
    neighbours."""
    rows = []
    for number, border in enumerate(tqdm(borders, desc="listened to", disable=None)):
        other = borders[(number + len(borders) // 2 + 1) % len(borders)]
        said = {way: reader.spoken(border, way, other) for way in (ALONE, PEERS, OTHERS, ONE_PASS)}
        noise = np.random.default_rng(number).normal(0, 0.1 * said[ONE_PASS].std(), len(said[ONE_PASS]))
        said["one pass, in noise"] = said[ONE_PASS] + noise.astype(np.float32)
        opinions = {way: ear(samples, SAMPLE_RATE_HZ) for way, samples in said.items()}
        rows += [
            {"text": border.text, "kind": border.kind, "way": way, "dnsmos": opinion}
            | {"dnsmos_gain": opinion - opinions[ALONE]}
            for way, opinion in opinions.items()
        ]
    return pd.DataFrame(rows)


def gain_of(heard: pd.DataFrame, way: str) -> Estimate:
    """How much higher DNSMOS rates borders that are read in `way` than the same borders of segments spoken
    alone."""
    rows = heard[heard.way == way]
    return mean_of(rows.dnsmos_gain, list(rows.text))


def gains(heard: pd.DataFrame) -> pd.DataFrame:
    """A row for each way of reading and kind of border: the mean DNSMOS rating, and the gain (see `gain_of`)
    with its interval."""
    rows = {}
    for kind, part in {"all": heard, **dict(iter(heard.groupby("kind")))}.items():
        for way, own in part.groupby("way", sort=False):
            gain = gain_of(part, str(way))
            rows[kind, way] = {"dnsmos": own.dnsmos.mean(), "gain": str(gain), "texts": gain.units}
    return pd.DataFrame(rows).T.rename_axis(["border", "way"])


def timed(reader: BorderReader, borders: Sequence[Border], rounds: int) -> pd.DataFrame:
    """Time the segment before each border in each way, interleaved: its contours, and all of its windows.

    In a text, a segment has neighbours on both sides, so in further ways the same number of ids is put before
    it as well.
    """
    trials = []
    for number, border in enumerate(tqdm(borders, desc="timed", disable=None)):
        style, reads = border.voice.style(len(border.before)), reader.decoder.prosody.contours
        alone = reads(border.before, style, 1.0)
        ways: dict[str, Callable[[], object]] = {
            way: partial(reads, [*border.before, *border.after[:seen]], style, 1.0)
            for way, seen in SEEN.items()
        }
        ways |= {
            f"{way}, both sides": partial(
                reads, [*border.after[:seen], *border.before, *border.after[:seen]][:MAX_TOKENS], style, 1.0
            )
            for way, seen in SEEN.items()
            if 0 < seen < MAX_TOKENS
        }
        ways["windows"] = partial(_windows, reader, alone, style)
        trials += take_turns(ways, number, rounds)
    return pd.DataFrame(trials)


def _windows(reader: BorderReader, contours: Contours, style: Values) -> None:
    for _ in reader.decoder.windows(contours, style):
        pass


def costs(trials: pd.DataFrame) -> pd.DataFrame:
    """How much more computing each way takes than a segment without its neighbours; a row for each way.

    Returns
    -------
    pandas.DataFrame
        compute_ratio, compute_low, compute_high: CPU time of contours and windows, divided by that of a
        segment alone; later_ms, later_low_ms, later_high_ms: how much later the first audio comes than that
        of a segment alone, on this machine.
    """
    by = ["text_number", "round"]
    rest = trials[trials.system == "windows"].set_index(by).compute_s
    reads = trials[trials.system != "windows"].set_index(by)
    whole = reads.assign(compute_s=reads.compute_s + rest).reset_index()
    found = ratios(whole, ALONE).add_prefix("compute_")
    walls = reads.groupby(["system", "text_number"]).wall_s.median().unstack(0)
    later = {way: mean_of(1000 * (walls[way] - walls[ALONE]), list(walls.index)) for way in found.index}
    for name, end in (("later_ms", "value"), ("later_low_ms", "low"), ("later_high_ms", "high")):
        found[name] = [getattr(later[way], end) for way in found.index]
    return found.rename_axis("way")


def cost_ratios(cost: pd.DataFrame) -> pd.DataFrame:
    """The ratios of CPU time in a table of `costs`, named as `plots.against_default` needs them."""
    return cost.filter(like="compute_").rename(columns=lambda name: name.removeprefix("compute_"))


def faults(reader: BorderReader, borders: Iterable[Border], heard: pd.DataFrame) -> list[NegativeControl]:
    """Controls: readings in one pass that are spoiled so that everybody notices. A measure that misses one of
    them is useless."""
    spoils: dict[str, tuple[str, Callable[[Reading], Reading]]] = {
        "three semitones higher": ("f0_cents", lambda side: replace(side, f0_hz=side.f0_hz * 2 ** (3 / 12))),
        "a fifth slower": ("tempo_percent", _slower),
        "2 LU louder": ("level_lu", lambda side: replace(side, energy=side.energy + 2 / LU_A_UNIT)),
    }
    rows = []
    for border in borders:
        one, other = reader.sides(border, ONE_PASS, border)
        for name, (_, spoil) in spoils.items():
            spoiled = spoil(one), spoil(other)
            rows.append({"text": border.text, "way": name, **distance(border, (one, other), spoiled)})
    table = pd.DataFrame(rows)
    found = [
        NegativeControl(name, caught=figure in noticed(estimates(table, name)))
        for name, (figure, _) in spoils.items()
    ]
    noise = gain_of(heard, "one pass, in noise")
    return [*found, NegativeControl("noise 20 dB below the speech", caught=bool(noise.high < 0))]


def _slower(side: Reading) -> Reading:
    """The side with at least a fifth more frames for every token id; the curves are stretched to the same
    length."""
    frames = side.frames + np.ceil(side.frames / 5).astype(np.int64)
    starts = np.repeat(np.cumsum(side.frames) - side.frames, frames)
    inside = np.arange(frames.sum()) - np.repeat(np.cumsum(frames) - frames, frames)
    source = starts + np.minimum(inside, np.repeat(side.frames, frames) - 1)
    curves = [curve.reshape(-1, F0_A_FRAME)[source].reshape(-1) for curve in (side.f0_hz, side.energy)]
    return replace(side, frames=frames, f0_hz=curves[0], energy=curves[1])


def checks_of(table: pd.DataFrame, heard: pd.DataFrame) -> list[Check]:
    """The checks: the distance of one pass to itself is 0, and the interval of the gain of one pass in DNSMOS
    is not wholly above 0. If it is, segments should see their neighbours."""
    again = estimates(table, TWICE)
    return [
        Check("again_f0_cents", again["f0_cents"].value, high=0.0),
        Check("again_tempo_percent", again["tempo_percent"].value, high=0.0),
        Check("one_pass_dnsmos_gain_low", gain_of(heard, ONE_PASS).low, high=0.0),
    ]


def verdict(table: pd.DataFrame, heard: pd.DataFrame, cost: pd.DataFrame) -> str:
    """The answer of the notebook, in one sentence."""
    found, gain = noticed(estimates(table, ALONE)), gain_of(heard, ONE_PASS)
    words = " and ".join(name.split("_")[0].replace("f0", "pitch") for name in found) or "nothing"
    missed = "it is missed" if gain.low > 0 else "it is not missed"
    row = cost.loc[f"{PEERS}, both sides"]
    return (
        f"{missed}: of what neighbours change, {words} would be noticed side by side, and DNSMOS gains "
        f"{gain} by one pass; 60 ids on both sides take {row.compute_ratio:.2f} times the computing time"
    )


def figures_of(table: pd.DataFrame, heard: pd.DataFrame, cost: pd.DataFrame) -> dict[str, float]:
    """The figures that a result keeps: means with their intervals, by way."""
    found: dict[str, float] = {"borders_count": float(table.border.nunique())}
    for way, named in ((ALONE, "alone"), (PEERS, "context"), (OTHERS, "anothers")):
        for name, each in estimates(table, way).items():
            stem, _, unit = name.rpartition("_")
            found |= {f"{named}_{stem}_{end}_{unit}": getattr(each, end) for end in ("low", "high")}
            found[f"{named}_{name}"] = each.value
    for way, named in ((PEERS, "context"), (OTHERS, "anothers"), (ONE_PASS, "one_pass")):
        gain = gain_of(heard, way)
        found |= {f"{named}_dnsmos_gain_interval_{end}": getattr(gain, end) for end in ("low", "high")}
        found[f"{named}_dnsmos_gain"] = gain.value
    row = cost.loc[f"{PEERS}, both sides"]
    return found | {"context_compute_ratio": row.compute_ratio, "context_later_ms": cost.loc[PEERS].later_ms}
