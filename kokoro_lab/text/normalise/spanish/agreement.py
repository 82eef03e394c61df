"""Whether a number counts the word behind it, and of what gender that word is.

No lexicon of nouns: endings decide, with lists of those common nouns that break the rule.
"""

from __future__ import annotations

import re

from kokoro_lab.text.normalise.spanish.wordlist import wordlist
from kokoro_lab.text.normalise.spanish.words import Gender

_WORD = re.compile(r" ?([^\W\d_]+)")
_SERIES = re.compile(r" [ouóya] \d+ ([^\W\d_]{3,}s)\b")
_LAST = re.compile(r"([^\W\d_]+)[.:º]? ?$")


_NO_NOUN = wordlist(
    """
    a al ante antes así aunque bajo cada casi como con contra cuando cuanto de del desde después donde
    durante e el él ella ellas ellos en entonces entre era eran es esa esas ese eso esos esta está están
    estas este esto estos fue fueron ha haber había hacia han hasta hay la las le les lo los luego mas más
    me menos mientras mucho muy ni no nos o para pero por porque pues que qué quien se según ser si sí sin
    sino sobre son su sus también tan te tras tu tus u un una unas unos y ya yo además ahora aquí allí hoy
    ayer mañana siempre nunca tenemos vamos somos estamos hemos juntos juntas atrás dos tres seis es
    gracias
    """
)
_LABELS = wordlist(
    """
    número num núm nro no n capítulo cap página pág pag opción tipo grupo nivel fórmula liga línea sala
    canal versión lección tema unidad tomo volumen vol parte fase paso nota figura fig tabla cuadro anexo
    artículo art párrafo apartado punto ejercicio pregunta habitación puerta piso planta andén vía vuelo
    tren autobús bus carretera autopista ruta calle avenida avda av plaza kilómetro km código talla modelo
    serie temporada episodio etapa zona distrito sector lote mesa asiento fila columna clase categoría
    grado curso equipo jugador dorsal windows iphone sección módulo bloque test prueba caso
    """
)
"""Words that a number names rather than counts: `capítulo 1` is `capítulo uno`, whatever follows."""

_YEAR_LEADERS = wordlist("en año años desde hasta hacia del fines finales principios")

_MASCULINE_IN_A = wordlist(
    """
    día problema sistema programa tema poema idioma clima dilema esquema lema síntoma diploma drama
    fantasma mapa planeta cometa tranvía sofá papá teorema emblema enigma estigma carisma panorama
    telegrama diagrama crucigrama pentagrama organigrama holograma aroma axioma idiota cura atleta piloto
    poeta astronauta cosmonauta demócrata patriota colega camarada pediatra psiquiatra espía policía
    guardaespaldas paraguas dogma trauma coma cisma prisma magma reuma asma plasma eccema hematoma
    glaucoma carcinoma cromosoma pijama gorila koala panda dálmata acróbata diplomata croata celta puma
    israelita indígena atlas
    """
)
_FEMININE_IN_O = wordlist("mano foto moto radio libido polio")
_FEMININE = wordlist(
    """
    vez mujer noche tarde calle clase parte llave sangre gente madre torre nube fuente base fase frase
    serie leche carne muerte suerte mente flor voz luz ley red piel sal miel cárcel señal catedral imagen
    orden crisis tesis hipótesis síntesis dosis sede especie superficie planicie intemperie barbarie cruz
    raíz actriz emperatriz nariz cicatriz matriz paz niñez vejez pared sed nave llave clave nieve fiebre
    costumbre cumbre legumbre lumbre muchedumbre certidumbre corriente vertiente patente labor col hiel
    coliflor virgen pág págs ud uds sartén res mies tos diócesis metrópolis apoteosis catástrofe variante
    constante hélice índole prole mole hoz tez coz perdiz codorniz lombriz torre gripe peste hueste tilde
    efigie progenie carie caries serpiente simiente
    """
)
_THINGS = wordlist("revista entrevista vista pista autopista lista conquista reconquista arista crecida")
_STRESSED_A = wordlist(
    "agua águila alma arma aula área hacha hambre ala ancla ave arpa hada haba asa alga asta"
)
"""Feminine, but `un` in the singular."""
_FEMININE_ENDINGS = re.compile(r"(?:[cstxgnl]ión|dad|tad|tud|umbre|itis|eza|idez)$")
_FEMININE_ENDINGS_PLURAL = re.compile(r"(?:[cstxgnl]iones|[dt]ades|tudes|umbres)$")
_SINGULAR_IN_S = wordlist(
    """
    mes país autobús bus gas compás interés inglés francés portugués virus análisis oasis énfasis paréntesis
    lunes martes miércoles jueves viernes paraguas atlas crisis tesis hipótesis síntesis dosis res mies tos
    """
)
_MASCULINE_IN_ION = wordlist(
    "camión avión guion gorrión escorpión embrión aluvión bastión sarampión anfitrión"
)


def word_before(text: str, start: int) -> str:
    """The word that `text[start:]` follows, in lower case; empty if there is none."""
    found = _LAST.search(text, max(0, start - 40), start)
    return found[1].casefold() if found else ""


def names_a_thing(text: str, start: int) -> bool:
    """Whether the number at `start` is a name: `capítulo 1`."""
    return word_before(text, start) in _LABELS


def gender_behind(text: str, start: int, end: int, *, one: bool, grouped: bool = True) -> Gender | None:
    """Of the noun that the number `text[start:end]` counts; None if it counts none.

    Parameters
    ----------
    one : bool
        Whether the number is 1, so that its noun is in the singular.
    grouped : bool
        Whether the number cannot be a year.
    """
    last = word_before(text, start)
    if last in _LABELS or (not grouped and end - start == 4 and last in _YEAR_LEADERS):
        return None
    found = _WORD.match(text, end)
    if found and found[1] in {"mil", "millones", "billones"}:
        counted = _WORD.match(text, found.end()) if found[1] == "mil" else None
        if not counted or not counted[1].endswith("s") or counted[1] in _NO_NOUN:
            return "m"  # "veintiún mil", "doscientos millones"
        found = counted  # "doscientas mil personas"
    if not found or found[1].isupper():
        return None
    word = found[1].casefold()
    if one and word in {"o", "u", "ó", "y", "a"} and (series := _SERIES.match(text, end)):
        # "1 o 2 veces"; but "uno o dos días" has no apocope
        return "f" if plural_gender(series[1].casefold()) == "f" else None
    if word in _NO_NOUN:
        return None
    if one:
        plural_or_adverb = (word.endswith("s") and word not in _SINGULAR_IN_S) or word.endswith("mente")
        return None if plural_or_adverb else gender_of(word)
    if not word.endswith("s"):
        return None
    following = _WORD.match(text, found.end())
    return plural_gender(word, following[1].casefold() if following else "")


def gender_of(noun: str) -> Gender:
    """Of a noun in the singular, as far as its ending tells; masculine if in doubt."""
    if noun in _STRESSED_A:
        return "m"
    if noun in _FEMININE:
        return "f"
    if noun in _MASCULINE_IN_ION:
        return "m"
    if _FEMININE_ENDINGS.search(noun) or noun in _FEMININE_IN_O:
        return "f"
    if noun.endswith(("a", "á")):
        return "m" if noun in _MASCULINE_IN_A or _is_person(noun) else "f"
    return "m"


def _is_person(noun: str) -> bool:
    """Whether it may be a man, `turista`, rather than a thing, `lista`."""
    return noun.endswith(("ista", "cida")) and noun not in _THINGS


def plural_gender(noun: str, following: str = "") -> Gender:
    """Of a noun in the plural; the word behind it may be an adjective that tells."""
    if noun.endswith("as"):
        stem = noun[:-1]
        masculine = stem in _MASCULINE_IN_A or noun in _MASCULINE_IN_A or _is_person(stem)
        return "m" if masculine else "f"
    if noun.endswith("os"):
        return "f" if noun[:-1] in _FEMININE_IN_O else "m"
    if not noun.endswith("es"):
        return "f" if noun in _FEMININE or noun.endswith("itis") else "m"
    if {noun, noun[:-1], noun[:-2], _unaccented_stem(noun)} & _FEMININE or _feminine_es(noun):
        return "f"
    # an adjective may stand between: "200 grandes empresas"
    adjective = (
        following not in _NO_NOUN and following.endswith("as") and following[:-1] not in _MASCULINE_IN_A
    )
    return "f" if adjective else "m"


def _unaccented_stem(noun: str) -> str:
    """`voces` → `voz`, `imágenes` → `imagen`, the accents where the singular has them."""
    stem = noun.removesuffix("es")
    if stem.endswith("c"):
        stem = stem[:-1] + "z"
    return {"imágen": "imagen", "órden": "orden", "vírgen": "virgen", "sarten": "sartén", "raiz": "raíz"}.get(
        stem, stem
    )


def _feminine_es(noun: str) -> bool:
    if noun.removesuffix("ones") + "ón" in _MASCULINE_IN_ION:
        return False
    return bool(_FEMININE_ENDINGS_PLURAL.search(noun))
