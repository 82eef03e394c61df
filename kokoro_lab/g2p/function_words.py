"""Small closed lists of English words that tell what their neighbours are."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BE = _words(
    "be is are was were been being am 's 're 'm seem seems seemed remain remains remained become becomes "
    "became"
)
"""`be` and the verbs that are used like it."""
HAVE = _words("have has had having 've")
DO = _words("do does did")
SUBJECTS = _words("i you we they who which")
SINGULAR_SUBJECTS = _words("he she it who which that this")
OBJECTS = _words("me him them us it her itself himself herself themselves ourselves yourself")
BEFORE_INFINITIVE = _words("let lets help helps helped helping cannot 'll")
"""A bare infinitive follows these, as it does a modal verb or `do`."""
PREPOSITIONS = _words(
    "of in for with by from on at without under against between into onto during through about over "
    "within after  before upon among via per towards toward off across despite amid behind beyond beneath "
    "alongside throughout  concerning regarding like as than except including plus versus beside besides "
    "around along near outside"
)
TAKES_PREPOSITION_TO = _words(
    "subject due according prior similar access addition additions amount amounts amounted contribute "
    "contributes  contributed contributing lead leads led leading response responses reaction resistance "
    "opposition objection  objections reference references relation relations regard damage exposure "
    "exposed attributed attributable  related equal opposed linked vulnerable susceptible immune "
    "resistant relative thanks owing entitled prone  devoted dedicated refers referred akin tantamount "
    "light low mild minimal fair slight small poor"
)
"""After these, `to` is a preposition, and what follows it a noun."""
PLURAL_MODIFIERS = _words(
    "sports arms sales goods rights systems drugs parks news savings awards operations communications "
    "earnings  careers women's men's children's electronics physics economics politics mathematics "
    "athletics genetics  statistics graphics customs gas"
)
"""Plurals that stand before other nouns: `arms export`, `sports record`."""
SPLIT_PREFIXES = _words("re co pre de un mis sub over under")
PRESENT_TIMES = _words("every today now nowadays tomorrow whenever daily")
PRESENT_HABITS = _words("always often usually sometimes regularly generally normally rarely seldom")
PAST_TIMES = _words("yesterday ago last earlier previous")
PAST_ORDER = _words("once recently previously already later then eventually first")
INSCRIBED = _words(
    "banner sign notice inscription label plaque headline message placard caption poster subtitle epitaph"
)
"""Things that `read` so and so, mostly told in the past."""
MEANS = _words(
    "method methods technique techniques equipment material materials tool tools process term terms "
    "formula  software device devices money machine machines procedure weapon words word data symbol drug "
    "drugs system  approach model algorithm instrument instruments funds criteria test tests phrase name "
    "language metal"
)
"""What is `used to` do something is mostly made use of, where no auxiliary tells."""
