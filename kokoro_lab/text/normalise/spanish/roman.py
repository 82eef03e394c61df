"""Roman numerals, where what stands beside them says that they are numbers.

Kings, popes, centuries and the parts of books are ordinals up to ten and cardinals from eleven on (`Felipe
sexto`, `Juan veintitrés`, `siglo quinto`, `siglo veintiuno`); what is merely numbered has cardinals
(`fase dos`); before its noun a numeral is an ordinal however large (`vigésimo aniversario`).
"""

from __future__ import annotations

import re
from typing import Any

from kokoro_lab.text.normalise.rules import Rule, rule
from kokoro_lab.text.normalise.spanish.agreement import gender_of, plural_gender
from kokoro_lab.text.normalise.spanish.wordlist import wordlist
from kokoro_lab.text.normalise.spanish.words import Gender, cardinal, ordinal

ORDINALS_TO = 10
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_WELL_FORMED = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN = r"(?P<roman>[IVXLCDM]+)(?![\p{L}\d'’]|-\p{L}|\.\p{L})"

_RULERS = wordlist(
    """
    Abderramán Adolfo Adriano Adrián Alberto Alejandro Alfonso Alfredo Amadeo Amenhotep Ana Antíoco
    Artajerjes Balduino Beatriz Benedicto Benito Bermudo Bonifacio Calixto Carlomán Carlos Catalina
    Celestino Clemente Cleopatra Constantino Cosme Cristián Cristina Darío Demetrio Eduardo Enrique
    Ernesto Esteban Eugenio Eurico Federico Felipe Fernando Filipo Francisco García Gregorio Guillermo
    Gustavo Haakon Harald Hassan Honorio Humberto Inocencio Isabel Iván Jacobo Jaime Jerjes Jorge José
    Juan Juana Julio Justiniano Leopoldo León Luis Luisa Manuel Marcelo Margarita María Martín Mauricio
    Maximiliano Mehmed Miguel Mohamed Montezuma Moctezuma Napoleón Nicolás Olaf Óscar Otón Pablo Pedro Pío
    Pipino Ptolomeo Rainiero Ramiro Ramsés Ricardo Roberto Rodolfo Rómulo Sancho Segismundo Seti Silvestre
    Sixto Solimán Tarquino Teodosio Tiberio Tutmosis Urbano Vaticano Víctor Vladímir Wenceslao Yaroslav
    Zenón Abdalá Hussein Pahlavi Emanuel
    """
)
_TITLES = (
    "rey|reina|papa|emperador|emperatriz|zar|zarina|faraón|sultán|príncipe|princesa|duque|conde|majestad"
)
_ORDINAL_NOUNS = {
    "siglo": "m", "siglos": "m", "capítulo": "m", "cap.": "m", "título": "m", "libro": "m", "acto": "m",
    "tomo": "m", "canto": "m", "cuadro": "m", "escena": "f", "jornada": "f", "sección": "f", "dinastía": "f",
    "artículo": "m", "art.": "m", "centuria": "f", "milenio": "m",
}  # fmt: skip
_CARDINAL_NOUNS = (
    "volumen|vol\\.|fase|tipo|nivel|grado|grupo|categoría|tabla|figura|fig\\.|lámina|unidad|módulo|tema|liga|"
    "división|clase|factor|etapa|bloque|distrito|región|zona|legión|edición|anexo|apéndice|parte|lección|mundial|"
    "número|núm\\.|apartado|plan|serie|episodio|temporada|par|nervio|cromosoma|proyecto|operación|apolo|título"
)
_EVENTS = (
    "aniversario|edición|congreso|reunión|concurso|certamen|feria|festival|jornadas?|centenario|milenio|siglo|"
    "república|guerra|reich|encuentro|simposio|curso|torneo|campeonato|copa|gala|cumbre|asamblea|maratón|"
    "carrera|semana|plan|premio|premios|legislatura|internacional|dinastía|conferencia|foro|bienal|convención|"
    "imperio|ciclo|cruzada|juegos|olimpiada|salón|muestra|seminario|trofeo|convenio|concilio|sínodo|marcha|ruta"
)


def value_of(numeral: str) -> int | None:
    """Of a numeral that is written as the Romans' heirs write it, None if it is none (`IIII`, `VX`)."""
    if not numeral or not _WELL_FORMED.fullmatch(numeral):
        return None
    values = [_VALUES[letter] for letter in numeral]
    return sum(-v if i + 1 < len(values) and values[i + 1] > v else v for i, v in enumerate(values))


def _rank(value: int, gender: Gender) -> str:
    return ordinal(value, gender=gender) if value <= ORDINALS_TO else cardinal(value)


def _ruler(match: Any) -> str | None:
    value = value_of(match["roman"])
    if value is None:
        return None
    name = match["name"]
    female = name in {"Isabel", "Beatriz"} or name.endswith("a")
    return f"{match['lead']}{_rank(value, 'f' if female else 'm')}"


def _division(match: Any) -> str | None:
    value = value_of(match["roman"])
    if value is None:
        return None
    noun = match["noun"]
    gender: Gender = "f" if _ORDINAL_NOUNS.get(noun.casefold()) == "f" else "m"
    said = {"s.": "siglo", "ss.": "siglos", "cap.": "capítulo", "art.": "artículo"}.get(noun.casefold(), noun)
    rest = re.findall(r"[IVXLCDM]+", match["more"] or "")
    words = f"{said} {_rank(value, gender)}"
    for joint, other in zip(re.findall(r"[^IVXLCDM]+", match["more"] or ""), rest, strict=True):
        next_value = value_of(other)
        if next_value is None:
            return None
        words += (" a " if joint.strip() in {"-", "–"} else joint) + _rank(next_value, gender)
    return words


def _numbered(match: Any) -> str | None:
    value = value_of(match["roman"])
    return None if value is None else f"{match['lead']}{cardinal(value)}"


def _event(match: Any) -> str | None:
    value = value_of(match["roman"])
    if value is None:
        return None
    noun = match["noun"].casefold()
    gender = plural_gender(noun) if noun.endswith("s") else gender_of(noun)
    words = ordinal(value, gender=gender, short=not noun.endswith("s"))
    if noun.endswith("s"):
        words += "s"
    return words


def _alone(match: Any) -> str | None:
    value = value_of(match["roman"])
    return None if value is None else cardinal(value)


_NOUNS = "|".join(re.escape(noun) for noun in _ORDINAL_NOUNS)

RULES: tuple[Rule, ...] = (
    rule(
        "century, chapter, act",
        rf"""(?<!\w)(?P<noun>(?i:{_NOUNS})|ss?\.|S\.(?=[ ][IVX]{{2}}))[ ](?P<roman>[IVXLCDM]+)
             (?P<more>(?:(?:,[ ]|[ ](?:y|al|a|o)[ ]|[-–])[IVXLCDM]+)*)(?![\p{{L}}\d'’])""",
        _division,
    ),
    rule(
        "ruler",
        rf"(?<!\w)(?P<lead>(?P<name>{'|'.join(sorted(_RULERS, key=len, reverse=True))})[ ]){_ROMAN}",
        _ruler,
    ),
    rule(
        "ruler with a title",
        rf"(?<!\w)(?P<lead>(?i:{_TITLES})[ ](?:\p{{Lu}}\p{{Ll}}+[ ])?(?P<name>\p{{Lu}}\p{{Ll}}+)[ ]){_ROMAN}",
        _ruler,
    ),
    rule("numbered thing", rf"(?<!\w)(?P<lead>(?i:{_CARDINAL_NOUNS})[ ]){_ROMAN}", _numbered),
    rule("numbered event", rf"(?<![\w.]){_ROMAN}(?=[ ](?P<noun>(?i:{_EVENTS}))(?!\w))", _event),
    rule("name and number", r"(?<=\p{Lu}\p{Ll}+[ ])(?P<roman>[IVX]{2,})(?![\p{L}\d'’])", _alone),
    rule(
        "Roman numeral alone", r"(?<![\p{L}\d.&-])(?P<roman>[IVX]{2,}|[MDCLXVI]{4,})(?![\p{L}\d'’&-])", _alone
    ),
)
