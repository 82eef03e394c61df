"""Hindi, the main things. num2words does not know it: its numbers below a hundred are words of their own."""

from __future__ import annotations

from kokoro_lab.text.normalise.other import CountedUnit, Numerals, OtherReader

_WORDS = """
    शून्य एक दो तीन चार पाँच छह सात आठ नौ
    दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस
    बीस इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस
    तीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस
    चालीस इकतालीस बयालीस तैंतालीस चवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास
    पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ
    साठ इकसठ बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर
    सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर सतहत्तर अठहत्तर उन्यासी
    अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी
    नब्बे इक्यानवे बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे
"""
_UNDER_A_HUNDRED = tuple(_WORDS.split())
_SCALES = ((10**11, "खरब"), (10**9, "अरब"), (10**7, "करोड़"), (10**5, "लाख"), (10**3, "हज़ार"), (100, "सौ"))
_RANKS = {1: "पहला", 2: "दूसरा", 3: "तीसरा", 4: "चौथा", 6: "छठा"}


def _say(value: int) -> str:
    """In lakhs and crores, as everybody counts where Hindi is spoken."""
    for scale, name in _SCALES:
        if value >= scale:
            head = f"{_say(value // scale)} {name}"
            return f"{head} {_say(value % scale)}" if value % scale else head
    return _UNDER_A_HUNDRED[value]


def _rank(value: int) -> str:
    return _RANKS.get(value) or f"{_say(value)}वाँ"


_RUPEE = (CountedUnit("रुपया", "रुपये"), CountedUnit("पैसा", "पैसे"))
_DOLLAR = (CountedUnit("डॉलर", "डॉलर"), CountedUnit("सेंट", "सेंट"))


class _HindiReader(OtherReader):
    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        """The hour has another word before minutes."""
        if half is not None:
            hour = hour % 12 + (12 if half == "pm" else 0)
        said = f"{_say(hour)} {'बजकर' if minute else 'बजे'}"
        if minute:
            said += f" {_say(minute)} मिनट"
        return f"{said} {_say(second)} सेकंड" if second else said


_READER = _HindiReader(
    Numerals(
        name="hi",
        say=_say,
        rank=_rank,
        minus="माइनस",
        point="दशमलव",
        percent="प्रतिशत",
        to="से",
        hour=CountedUnit("बजे", "बजे"),
        and_="",
        decimal=".",
        grouping=",",
        ordinal="वाँ|वां|वें",
        feminine="वीं",
        inflect=lambda rank: f"{rank[:-2]}ीं" if rank.endswith("ाँ") else f"{rank[:-1]}ी",
        money={
            "₹": _RUPEE,
            "रु.": _RUPEE,
            "INR": _RUPEE,
            "$": _DOLLAR,
            "USD": _DOLLAR,
            "€": (CountedUnit("यूरो", "यूरो"), CountedUnit("सेंट", "सेंट")),
            "£": (CountedUnit("पाउंड", "पाउंड"), CountedUnit("पेंस", "पेंस")),
        },
        agree={},
        of=lambda noun: f" {noun}",
        first="एक",
    )
)
RULES = _READER.rules()
cardinal, ordinal, date, time = _READER.cardinal, _READER.ordinal, _READER.date, _READER.time
