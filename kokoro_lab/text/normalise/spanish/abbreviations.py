"""Abbreviations in full. Whether the stop stays depends on whether a sentence ends there."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.sentence_end import final_stop
from kokoro_lab.text.normalise.spanish.wordlist import wordlist

_ALWAYS = """
Sr. señor | Sra. señora | Srta. señorita | Sres. señores | Sras. señoras | Srs. señores | Dr. doctor
Dra. doctora | Drs. doctores | Dres. doctores | Dña. doña | Dª doña | D.ª doña | D.ña doña | Ud. usted
Uds. ustedes | Vd. usted | Vds. ustedes | EE.UU. Estados Unidos | EEUU Estados Unidos
EUA Estados Unidos de América | EE.UU Estados Unidos | E.U.A. Estados Unidos de América
RR.HH. recursos humanos | RRHH recursos humanos | JJ.OO. Juegos Olímpicos | JJOO Juegos Olímpicos
CC.OO. Comisiones Obreras | CCOO Comisiones Obreras | FF.AA. Fuerzas Armadas | FF.CC. ferrocarriles
CC.AA. comunidades autónomas | CCAA comunidades autónomas | DD.HH. derechos humanos
DDHH derechos humanos | RR.PP. relaciones públicas | SS.MM. sus majestades | S.M. su majestad
S.A.R. su alteza real | S.S. su santidad | AA.VV. autores varios | VV.AA. varios autores | pág. página
págs. páginas | pag. página | pags. páginas | pg. página | pp. páginas | núm. número | núms. números
n.º número | N.º número | nº número | Nº número | n° número | N° número | n.os números | nro. número
Nro. número | etc. etcétera | p.ej. por ejemplo | P.ej. por ejemplo | v.gr. verbigracia | i.e. esto es
et_al. y otros | cf. confróntese | cfr. confróntese | op.cit. obra citada | ibíd. ibídem | íd. ídem
a.C. antes de Cristo | d.C. después de Cristo | a._de_C. antes de Cristo | d._de_C. después de Cristo
a.n.e. antes de nuestra era | d.n.e. de nuestra era | Avda. avenida | Av. avenida | Avd. avenida
Pza. plaza | Plza. plaza | pza. plaza | plza. plaza
Pl. plaza | Ctra. carretera | P.º paseo | Pº paseo | Gta. glorieta
Urb. urbanización | Edif. edificio | Bvar. bulevar | Blvd. bulevar | Pol.Ind. polígono industrial
Apdo. apartado | Apto. apartamento | apto. apartamento | C.P. código postal | Col. colonia | Bo. barrio
Prov. provincia | prov. provincia | Mpio. municipio | Depto. departamento | tel. teléfono
tels. teléfonos | Tel. teléfono | tfno. teléfono | telf. teléfono | tlf. teléfono | cel. celular
lun. lunes | mié. miércoles | jue. jueves | vie. viernes | sáb. sábado
cap. capítulo | caps. capítulos | art. artículo | arts. artículos | vol. volumen | vols. volúmenes
fig. figura | figs. figuras | párr. párrafo | apdo. apartado | ap. apartado | ed. edición | eds. editores
coord. coordinador | trad. traducción | ref. referencia | obs. observación | secc. sección | inc. inciso
aprox. aproximadamente | máx. máximo | mín. mínimo | prom. promedio | cant. cantidad | tít. título
Prof. profesor | Profa. profesora | Prof.ª profesora | Ing. ingeniero | Lic. licenciado | Lcda. licenciada
Lcdo. licenciado | Arq. arquitecto | Abg. abogado | Gral. general | Cnel. coronel | Cmdte. comandante
Tte. teniente | Sgto. sargento | Alte. almirante | Cptn. capitán | Mons. monseñor | Rvdo. reverendo
Rev. reverendo | Excmo. excelentísimo | Excma. excelentísima | Ilmo. ilustrísimo | Ilma. ilustrísima
Pdte. presidente | Pte. presidente | Pdta. presidenta | Mtro. maestro | Mtra. maestra | Hno. hermano
Hna. hermana | Hnos. hermanos | Jr. júnior | Sto. santo | Sta. santa | Gob. gobernador | Dir. director
Dira. directora | Cía. compañía | Cia. compañía | dpto. departamento | Dpto. departamento
depto. departamento | admón. administración | Admón. administración | izda. izquierda | izdo. izquierdo
izq. izquierda | dcha. derecha | dcho. derecho | der. derecha | entlo. entresuelo | pral. principal
atte. atentamente | Atte. atentamente | cta. cuenta | Cta. cuenta | dto. descuento | dcto. descuento
Fdo. firmado | fdo. firmado | Ref. referencia | vto. vencimiento | imp. importe | impto. impuesto
ptas. pesetas | pta. peseta | uds. unidades | ud. unidad | ej. ejemplo | Ej. ejemplo | vs. versus
vs versus | P.D. posdata | P.S. posdata | q.e.p.d. que en paz descanse | Q.E.P.D. que en paz descanse
D.E.P. descanse en paz | s.f. sin fecha | s/n sin número | S/N sin número | c/u cada uno
c/c cuenta corriente | V.ºB.º visto bueno | VºBº visto bueno | Bs.As. Buenos Aires | N.B. nota bene
M.N. moneda nacional | m.n. moneda nacional | Stgo. Santiago | Univ. universidad | Inst. instituto
Min. ministro | Sec. secretario | Dto. distrito | Adm. administración | sig. siguiente | sigs. siguientes
s.s. siguientes | ss. siguientes | C/ calle | c/ calle | Avda avenida | Sra señora | Sr señor
Srta señorita | Dra doctora | S.A.deC.V. sociedad anónima de capital variable
SAdeCV sociedad anónima de capital variable | S.A.U. sociedad anónima unipersonal
S.L.U. sociedad limitada unipersonal | S.A. sociedad anónima | S.L. sociedad limitada
S.R.L. sociedad de responsabilidad limitada | S.Coop. sociedad cooperativa | mdd millones de dólares
mdp millones de pesos
"""
"""Abbreviation, a space, its words. Where the key has a stop inside, a space may follow it in the text."""

_BEFORE_NAME = """
D. don | S. san | Cap. capitán | Av avenida | Dr doctor | Lic licenciado | Ing ingeniero
Prof profesor | Sto santo | Sta santa | Gen. general | St. san
"""
"""These are abbreviations only before a name: alone they are initials or words."""
_BEFORE_NUMBER = """
p. página | No. número | Cap. capítulo | Art. artículo | Vol. volumen | Fig. figura | Núm. número
Pág. página | Págs. páginas | Arts. artículos | Km. kilómetro | km. kilómetro | s. siglo | v. versículo
h. hacia | c. circa | no. número | hab. habitación
"""


def _table(text: str) -> dict[str, str]:
    pairs = (entry.split(None, 1) for line in text.strip().splitlines() for entry in line.split("|"))
    return {key: words.strip() for key, words in pairs}


def _pattern(key: str) -> str:
    """Spaces may follow the stops inside: `EE. UU.`, `p. ej.`, `a. de C.`"""
    escaped = regex.escape(key.replace("_", " ")).replace(r"\ ", "[ ]")
    escaped = escaped.replace("deC", "[ ]?de[ ]?C")
    return str(regex.sub(r"\\\.(?=\p{L})", r"\\.[ ]?", escaped))


def _alternatives(table: dict[str, str]) -> str:
    return "|".join(_pattern(key) for key in sorted(table, key=len, reverse=True))


ALWAYS, BEFORE_NAME, BEFORE_NUMBER = (
    _table(_ALWAYS),
    _table(_BEFORE_NAME),
    _table(_BEFORE_NUMBER),
)


def _capitalised(table: dict[str, str]) -> dict[str, str]:
    """As at the head of a sentence; eras in capitals are something else."""
    return {
        key[0].upper() + key[1:]: words
        for key, words in table.items()
        if key[0].islower() and not words.endswith("de Cristo")
    }


_WRITTEN = _capitalised(ALWAYS) | ALWAYS
_SAID = {key.replace("_", ""): words for key, words in _WRITTEN.items()}


def _always(match: Any) -> str | None:
    found = match.group().replace(" ", "")
    words = _SAID.get(found)
    return words + final_stop(match, leads_to_name=found not in _CLOSING) if words else None


def _era(match: Any) -> str:
    """Behind a year or a century only: `Washington D. C.` is none."""
    return ("antes" if match.group().startswith("A") else "después") + " de Cristo" + final_stop(match)


def _name(match: Any) -> str:
    return BEFORE_NAME[match.group()]


def _number(match: Any) -> str:
    return BEFORE_NUMBER[match.group()]


_CLOSING = wordlist(
    """
    etc. S.A. S.L. S.R.L. S.A.U. S.L.U. S.A.deC.V. a.C. d.C. Uds. Vds. RR.HH. EE.UU
    """
)
"""What often ends a sentence; a capital behind it starts the next one."""
_EDGE = r"(?<![\p{L}\d])(?<!\p{Lu}\.[ ]?)"

RULES: tuple[Rule, ...] = (
    digit_rule(
        "abbreviation before a number", rf"{_EDGE}(?:{_alternatives(BEFORE_NUMBER)})(?=[ ]?\d)", _number
    ),
    rule("era in capitals", r"(?<=[\dIVX][ ])(?:A|D)\.[ ]?C\.?(?!\w)", _era, wakes="."),
    rule(
        "abbreviation before a name",
        rf"{_EDGE}(?:{_alternatives(BEFORE_NAME)})(?=[ ]\p{{Lu}}\p{{Ll}})",
        _name,
    ),
    rule("abbreviation", rf"{_EDGE}(?:{_alternatives(_WRITTEN)})(?![\p{{L}}\d])(?!\.\p{{L}})", _always),
)
