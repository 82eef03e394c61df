"""French, Italian, Portuguese and Hindi numbers are read in words of their language."""

from __future__ import annotations

import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise, other, reader


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        ("fr", "3 ans et 80 jours", "trois ans et quatre-vingts jours"),
        ("fr", "1 234 567", "un million deux cent trente-quatre mille cinq cent soixante-sept"),
        ("fr", "3,14", "trois virgule quatorze"),
        ("fr", "0,05", "zéro virgule zéro cinq"),
        ("fr", "-5 degrés", "moins cinq degrés"),
        ("fr", "le 1er et la 1re, le 2e", "le premier et la première, le deuxième"),
        ("fr", "12,50 €", "douze euros cinquante centimes"),
        ("fr", "1 €", "un euro"),
        ("fr", "2 000 000 €", "deux millions d'euros"),
        ("fr", "£1", "une livre"),
        ("fr", "50 %", "cinquante pour cent"),
        ("fr", "14h30", "quatorze heures trente"),
        ("fr", "1h et 21 h", "une heure et vingt et une heures"),
        (
            "fr",
            "M. Roy, Mme Roy et le Dr Roy, etc.",
            "monsieur Roy, madame Roy et le docteur Roy, et cetera.",
        ),
        ("fr", "au n° 5, p. 3, fig. 2", "au numéro cinq, page trois, figure deux"),
        (
            "fr",
            "5 km, 1,5 km, 2-3 kg",
            "cinq kilomètres, un virgule cinq kilomètre, deux à trois kilogrammes",
        ),
        ("fr", "20 °C et -3 °C", "vingt degrés Celsius et moins trois degrés Celsius"),
        ("fr", "au XXe siècle, la Ve République", "au vingtième siècle, la cinquième République"),
        ("fr", "Louis XIV, François Ier, Charles V", "Louis quatorze, François premier, Charles cinq"),
        ("fr", "les tomes II et IV", "les tomes deux et quatre"),
        (
            "fr",
            "Voir https://www.exemple.fr/page-2.",
            "Voir W W W point exemple point F R barre oblique page tiret deux.",
        ),
        (
            "fr",
            "01 42 68 53 00 et/ou 5",
            "zéro un, quarante-deux, soixante-huit, cinquante-trois, zéro zéro et ou cinq",
        ),
        ("it", "dalle 9:00, treno delle 9:00", "dalle nove, treno delle nove ore"),
        (
            "it",
            "15 - 20121 Milano, 15 - 20 anni",
            "quindici - ventimilacentoventuno Milano, quindici a venti anni",
        ),
        ("pt", "Vasco 3 x 1 Bahia, 3 x 1", "Vasco três a um Bahia, três vezes um"),
        ("pt", "2 xíc. de chá", "duas xícaras de chá"),
        ("fr", "au 12/14 rue de la Paix", "au douze quatorze rue de la Paix"),
        ("fr", "le 12/10 rue de la Paix", "le douze octobre rue de la Paix"),
        ("fr", "Charles V. Elle", "Charles cinq. Elle"),
        ("it", "S. Stefano, S. Anna e S. Freud", "santo Stefano, sant'Anna e S Freud"),
        ("it", "J. S. Marco e D. Bosco", "J S Marco e don Bosco"),
        ("it", "Ho ricevuto 3 CV", "Ho ricevuto tre curriculum"),
        ("it", "Ho ricevuto un motore da 3 CV", "Ho ricevuto un motore da tre cavalli"),
        ("it", "3 CV ricevuti", "tre curriculum ricevuti"),
        ("it", "Per un posto, 3 CV", "Per un posto, tre curriculum"),
        (
            "it",
            "Ho letto che ha 3 CV, la versione aggiornata",
            "Ho letto che ha tre cavalli, la versione aggiornata",
        ),
        ("it", "via Roma 12/14, al civico 3/5", "via Roma dodici quattordici, al civico tre cinque"),
        (
            "it",
            "in via Roma, 3/4 dei bar, 3/4 di via Po",
            "in via Roma, tre quarti dei bar, tre quarti di via Po",
        ),
        ("it", "Via Roma, 12/05/2024", "Via Roma, dodici maggio duemilaventiquattro"),
        ("it", "disse A. Rossi a M. Verdi", "disse Ah Rossi a M Verdi"),
        ("it", "2+2, 45'+2", "due più due, quarantacinque più due"),
        ("hi", "5 कि. आलू, 5 कि॰मी॰ और डॉ॰ राम", "पाँच किलो आलू, पाँच किलोमीटर और डॉक्टर राम"),
        ("it", "gli es. 3 e 4, ad es. 5", "gli esercizi tre e quattro, ad esempio cinque"),
        ("it", "cose (es. 3 mele)", "cose (esempio tre mele)"),
        ("pt", "o art. 5 d da lei e 5 d", "o artigo cinco d da lei e cinco dias"),
        ("pt", "D. Leonor, S. João e D. Trump", "dona Leonor, são João e D Trump"),
        ("it", "a info@esempio.it, o no?", "a info chiocciola esempio punto I T, o no?"),
        ("pt", "em ~/ana/a.txt", "em ~ barra ana barra A ponto T X T"),
        ("hi", "jo@a-b.in", "J O ऐट A डैश B डॉट I N"),
        ("it", "il sig. Rossi, la dott.ssa Verdi, ecc.", "il signor Rossi, la dottoressa Verdi, eccetera."),
        ("it", "a pag. 3, n. 5", "a pagina tre, numero cinque"),
        ("it", "80 km/h, 1 h", "ottanta chilometri orari, una ora"),
        ("it", "Pio XII, Elisabetta II", "Pio dodicesimo, Elisabetta seconda"),
        ("it", "nel XX secolo, la III edizione", "nel ventesimo secolo, la terza edizione"),
        (
            "it",
            "Tel. 06 1234567, 0,5 e 012",
            "telefono zero sei, uno due tre quattro cinque sei sette, zero virgola cinque e zero uno due",
        ),
        ("pt", "(11) 91234-5678", "um um, nove um dois três quatro, cinco seis sete oito"),
        ("fr", "2 c. à s. d'huile", "deux cuillères à soupe d'huile"),
        ("it", "alle 18.30, dalle 9.00", "alle diciotto e trenta, dalle nove"),
        ("pt-br", "a Sra. Lima mora na R. das Flores", "a senhora Lima mora na rua das Flores"),
        ("pt-br", "às 14:30 h, 2 h", "às catorze horas e trinta, duas horas"),
        ("pt-br", "João VI, Maria II, Luís XIV", "João sexto, Maria segunda, Luís catorze"),
        ("pt-br", "século XXI, capítulo II", "século vinte e um, capítulo dois"),
        ("hi", "डॉ. शर्मा", "डॉक्टर शर्मा"),
        ("hi", "5 किमी, 3 kg", "पाँच किलोमीटर, तीन किलोग्राम"),
        ("hi", "3:15 बजे, 5:30 बजे, 8:45 बजे", "सवा तीन बजे, साढ़े पाँच बजे, पौने नौ बजे"),
        ("hi", "1:30 बजे, 2:30 बजे, 12:45 बजे", "डेढ़ बजे, ढाई बजे, पौने एक बजे"),
        ("hi", "5:20 बजे", "पाँच बजकर बीस मिनट"),
        ("fr", "03/04/2024", "trois avril deux mille vingt-quatre"),
        ("fr", "10-15 jours", "dix à quinze jours"),
        ("fr", "0123", "zéro un deux trois"),
        ("it", "21 anni", "ventuno anni"),
        ("it", "€1", "un euro"),
        ("it", "£1", "una sterlina"),
        ("it", "1.234,5", "milleduecentotrentaquattro virgola cinque"),
        ("it", "2º piano, 2ª porta", "secondo piano, seconda porta"),
        ("it", "14:30", "quattordici e trenta"),
        ("it", "01/05/2024", "primo maggio duemilaventiquattro"),
        ("pt-br", "R$ 2,50", "dois reais e cinquenta centavos"),
        ("pt-br", "£2", "duas libras"),
        ("pt-br", "3ª vez", "terceira vez"),
        ("pt-br", "2024-03-05", "cinco de março de dois mil e vinte e quatro"),
        ("pt-br", "1.000.000 €", "um milhão de euros"),
        ("hi", "१२ लोग", "बारह लोग"),
        ("hi", "3.14", "तीन दशमलव एक चार"),
        ("hi", "₹1,23,456.50", "एक लाख तेईस हज़ार चार सौ छप्पन रुपये पचास पैसे"),
        ("hi", "1,00,00,000", "एक करोड़"),
        ("hi", "5वां", "पाँचवाँ"),
        ("hi", "50%", "पचास प्रतिशत"),
        ("hi", "14:30", "चौदह बजकर तीस मिनट"),
        ("fr", "1/2 l de lait, 3/4 de tasse", "un demi litre de lait, trois quarts de tasse"),
        ("it", "1/2 kg, 1 1/2 tazza, 1/4 l", "mezzo chilogrammo, una tazza e mezza, un quarto di litro"),
        ("pt", "1 1/2 xíc. de chá, 1/2 kg", "uma xícara e meia de chá, meio quilograma"),
        ("hi", "1/2 कप, 1 1/2 कप", "आधा कप, डेढ़ कप"),
        ("pt", "R$ 2,5 milhões, R$ 10 mil", "dois vírgula cinco milhões de reais, dez mil reais"),
        ("it", "€ 3 milioni, € 3", "tre milioni di euro, tre euro"),
        ("hi", "₹1.5 लाख", "एक दशमलव पाँच लाख रुपये"),
        (
            "pt",
            "em 10x s/ juros, 3x4, y = 2x",
            "em dez vezes sem juros, três por quatro, y igual dois x",
        ),
        ("fr", "1 250 €/mois", "mille deux cent cinquante euros par mois"),
        ("pt", "CEP 01310-200", "CEP zero um três um zero, dois zero zero"),
        ("hi", "98765 43210", "नौ आठ सात छह पाँच, चार तीन दो एक शून्य"),
        ("fr", "12 nov. 2024, ils sont sept.", "douze novembre deux mille vingt-quatre, ils sont sept."),
        (
            "it",
            "lett. a), Art. 2, co. 3, sale q.b.",
            "lettera a), articolo due, comma tre, sale quanto basta.",
        ),
        ("pt", "cap. IV, séc. XIX", "capítulo quatro, século dezenove"),
        ("it", "Voto 4,5/5, il 4/5", "Voto quattro virgola cinque su cinque, il quattro maggio"),
        ("pt", "Nota 4,5/5, em 8/10", "Nota quatro vírgula cinco de cinco, em oito de outubro"),
        (
            "fr",
            "+33 1 23 45 67 89, +0,8 %, +5",
            "plus trente-trois, un, vingt-trois, quarante-cinq, soixante-sept, quatre-vingt-neuf, "
            "plus zéro virgule huit pour cent, plus cinq",
        ),
        ("it", "+39 06 1234 5678", "più trentanove, zero sei, uno due tre quattro, cinque sei sette otto"),
        (
            "pt",
            "+55 11 91234-5678",
            "mais cinquenta e cinco, um um, nove um dois três quatro, cinco seis sete oito",
        ),
        ("hi", "+91 98765 43210", "प्लस इक्यानवे, नौ आठ सात छह पाँच, चार तीन दो एक शून्य"),
        ("fr", "au XIXe s. la ville, XXe s.", "au dix-neuvième siècle la ville, vingtième siècle."),
        ("fr", "2,5 M€ et 3 k€", "deux virgule cinq millions d'euros et trois mille euros"),
        ("fr", "1½ l, ½ l de lait", "un litre et demi, un demi litre de lait"),
        ("fr", "10h30-12h", "dix heures trente à douze heures"),
        (
            "it",
            "Ore 9.30-12.30, il 9.30-12.30",
            "Ore nove e trenta a dodici e trenta, il nove punto trenta-dodici punto trenta",
        ),
        ("hi", "₹100-200", "एक सौ से दो सौ रुपये"),
        ("fr", "100-200 €, 1,50-2 €", "cent à deux cents euros, un virgule cinquante à deux euros"),
        (
            "fr",
            "12 €/m², 2,30 €/kg, 15 €/pers.",
            "douze euros par mètre carré, deux euros trente centimes par kilogramme, "
            "quinze euros par personne.",
        ),
        ("it", "35 €/h, 9 €/mese", "trentacinque euro all'ora, nove euro al mese"),
        ("hi", "₹120/लीटर, ₹500/-", "एक सौ बीस रुपये प्रति लीटर, पाँच सौ रुपये"),
        (
            "pt",
            "5 ml/dia, 10x15 cm, 10³",
            "cinco mililitros por dia, dez por quinze centímetros, dez ao cubo",
        ),
        ("fr", "2 1/2 tasses, 1 1/2 c. à café", "deux tasses et demie, une cuillère à café et demie"),
        ("it", "2 1/2 tazze, 1 3/4 l", "due tazze e mezza, un litro e tre quarti"),
        ("pt", "2 1/2 colheres, 1 1/2 de sal", "duas colheres e meia, um e meio de sal"),
        ("hi", "2 1/4 कप, 1 3/4 कप, 3 1/3 कप", "सवा दो कप, पौने दो कप, तीन एक तिहाई कप"),
        (
            "fr",
            "15/20, noté 4,5/5, 4/5 étoiles",
            "quinze sur vingt, noté quatre virgule cinq sur cinq, quatre sur cinq étoiles",
        ),
        ("hi", "4.5/5, 7.25", "पाँच में से चार दशमलव पाँच, सात दशमलव दो पाँच"),
        (
            "fr",
            "7/IX/1985, 12.05.24, le 12/05",
            "sept septembre mille neuf cent quatre-vingt-cinq, douze mai deux mille vingt-quatre, "
            "le douze mai",
        ),
        (
            "it",
            "12 gen. 2024, Lun-Ven 9.00-13.00",
            "dodici gennaio duemilaventiquattro, lunedì a venerdì nove a tredici",
        ),
        ("pt", "seg. a sex., 1h30min", "segunda a sexta, uma hora e trinta minutos"),
        (
            "fr",
            "20:30:15, 24h/24, 7j/7",
            "vingt heures trente quinze, vingt-quatre heures sur vingt-quatre, sept jours sur sept",
        ),
        ("it", "5:30 pm", "diciassette e trenta"),
        ("hi", "15/08/1947, 5 मई 2024", "पंद्रह अगस्त उन्नीस सौ सैंतालीस, पाँच मई दो हज़ार चौबीस"),
        (
            "it",
            "333 123 4567, 3331234567",
            "tre tre tre, uno due tre, quattro cinque sei sette, "
            "tre tre tre uno due tre quattro cinque sei sette",
        ),
        ("pt", "CPF 123.456.789-09", "CPF um dois três, quatro cinco seis, sete oito nove, zero nove"),
        ("fr", "0612345678", "zéro six, douze, trente-quatre, cinquante-six, soixante-dix-huit"),
        (
            "fr",
            "v2.1, iOS 17.2, 1.500 places",
            "version deux point un, iOS dix-sept point deux, mille cinq cents places",
        ),
        (
            "it",
            "L. 241/1990, 2019/2020",
            "legge duecentoquarantuno del millenovecentonovanta, duemiladiciannove duemilaventi",
        ),
        ("pt", "Lei nº 8.078/90", "Lei número oito mil e setenta e oito de noventa"),
        (
            "it",
            "tra il XV e il XVII sec., la II guerra mondiale",
            "tra il quindicesimo e il diciassettesimo secolo, la seconda guerra mondiale",
        ),
        (
            "it",
            "sec. XVI, secc. XV-XVI, il XX sec.",
            "secolo sedicesimo, secoli quindicesimo-sedicesimo, il ventesimo secolo.",
        ),
        ("pt", "a II Guerra Mundial, Cap. III", "a segunda Guerra Mundial, capítulo três"),
        ("fr", "50 % - 60 %, ±2 %", "cinquante pour cent à soixante pour cent, plus ou moins deux pour cent"),
        (
            "pt",
            "US$ 3 bi, R$ 1 mi, CHF 3",
            "três bilhões de dólares, um milhão de reais, três francos suíços",
        ),
        ("fr", "12€50, 12.50 €", "douze euros cinquante centimes, douze euros cinquante centimes"),
        ("hi", "5वीं, 12वें, 3री, 4था", "पाँचवीं, बारहवें, तीसरी, चौथा"),
        (
            "fr",
            "M./Mme Roy, bât. B, 12 km 300",
            "monsieur madame Roy, bâtiment B, douze kilomètres trois cents",
        ),
        ("fr", "1 réponse, 21 pièces, 31 ans", "une réponse, vingt et une pièces, trente et un ans"),
        ("fr", "la ligne 21 aussi, le lot 1 page", "la ligne vingt et un aussi, le lot un page"),
        ("it", "1 persona, 1 giorno, 1 ora, 1 zaino", "una persona, un giorno, un ora, uno zaino"),
        ("it", "la stanza 1 guarda, -1 basta", "la stanza uno guarda, meno uno basta"),
        (
            "pt",
            "2 filhas, 200 páginas, 2 mil pessoas, 2 dias, 1-2 vezes",
            "duas filhas, duzentas páginas, duas mil pessoas, dois dias, uma a duas vezes",
        ),
        ("pt", "o artigo 1 trata, janela nº 1 corrompida", "o artigo um trata, janela número um corrompida"),
        ("pt", "2x por semana", "duas vezes por semana"),
        (
            "fr",
            "5 x 3 = 15, 10 ÷ 2, 3 < 5",
            "cinq fois trois égal quinze, dix divisé par deux, trois inférieur à cinq",
        ),
        ("it", "1920x1080, 5 x 3", "millenovecentoventi per milleottanta, cinque per tre"),
        ("pt", "venceu por 3x1; foto 3x4", "venceu por três a um; foto três por quatro"),
        ("it", "0x42", "zero x quattro due"),
        ("it", "febbre, 5° giorno", "febbre, quinto giorno"),
        ("it", "max 35°, al 5° giorno", "max trentacinque gradi, al quinto giorno"),
        ("pt", "máx. 35º, o 35º colocado", "máximo trinta e cinco graus, o trigésimo quinto colocado"),
        ("it", "3 volte/settimana, 5 €/mese", "tre volte a settimana, cinque euro al mese"),
        ("it", "3 € al kg, pesa in kg", "tre euro al chilogrammo, pesa in chilogrammi"),
        (
            "pt",
            "em 1º/9, de 3 a 5/6, em 3/4 dos casos",
            "em primeiro de setembro, de três a cinco de junho, em três quartos dos casos",
        ),
        ("pt", "3 dez. 2024, 5 seg.", "três de dezembro de dois mil e vinte e quatro, cinco segundos."),
        ("fr", "la 2nde, le 2nd, à la 90e min.", "la seconde, le second, à la quatre-vingt-dixième minute."),
        ("pt", "3h05min20s, 19:30hs", "três horas cinco minutos vinte segundos, dezenove horas e trinta"),
        (
            "it",
            "12°/18°, <5 anni, 1,75 m",
            "dodici, diciotto gradi, meno di cinque anni, uno virgola settantacinque metri",
        ),
        (
            "fr",
            "10k abonnés, 16k, 2,3 M de vues",
            "dix mille abonnés, seize k, deux virgule trois millions de vues",
        ),
        ("it", "25,00 euro, 2^ parte, 118", "venticinque euro, seconda parte, centodiciotto"),
        (
            "it",
            "1 ora e 1/2, 2 kg e 1/2",
            "un ora e mezza, due chilogrammi e mezzo",
        ),
        (
            "fr",
            "1 h 1/2, 8h/12h, 10 cm x 15 cm",
            "une heure et demie, huit heures douze heures, dix centimètres sur quinze centimètres",
        ),
        (
            "pt",
            "2.ª edição, 05/03, 1º/1, 13/8",
            "segunda edição, cinco de março, primeiro de janeiro, treze oito",
        ),
        ("hi", "2रे, 25/12 को, 10k लोग, 2 करोड़ रु.", "दूसरे, पच्चीस दिसंबर को, दस हज़ार लोग, दो करोड़ रुपये."),
        ("fr", "200 hab./km², Jul", "deux cents habitants par kilomètre carré, Jul"),
        ("fr", "Il est 1 heure, article 1 loi", "Il est une heure, article un loi"),
        (
            "it",
            "via Appia 3/4 km, via Appia 3/4",
            "via Appia tre quarti di chilometro, via Appia tre quattro",
        ),
        ("it", "sono 1 milione, formula 1 moderna", "sono un milione, formula uno moderna"),
        ("fr", "Env. 3 km, M. le maire", "environ trois kilomètres, monsieur le maire"),
        ("it", "Temp. min. 5, valore max. 6", "temperatura minima cinque, valore massimo sei"),
        ("it", "aspetta max. 5 minuti", "aspetta massimo cinque minuti"),
        ("pt", "a umidade máx., o valor máx.", "a umidade máxima, o valor máximo."),
        ("it", "vento da NE, via da NE", "vento da nord est, via da NE"),
        (
            "fr",
            "un retard de 25', l'an 25' et",
            "un retard de vingt-cinq minutes, l'an vingt-cinq minutes et",
        ),
        ("fr", "il dit 'page 25' et", "il dit 'page vingt-cinq' et"),
        ("it", "il lun. e il gio. mattina", "il lunedì e il giovedì mattina"),
        ("fr", "c'est le jeu. Il finit", "c'est le jeu. Il finit"),
        (
            "it",
            "10 000 euro, 02 123 000, 12 345 di",
            "diecimila euro, zero due, uno due tre, zero zero zero, dodici trecentoquarantacinque di",
        ),
        ("it", "1 250 500 €", "un milione e duecentocinquantamilacinquecento euro"),
        (
            "it",
            "il treno delle 7.42, la media delle 7.42",
            "il treno delle sette e quarantadue, la media delle sette punto quarantadue",
        ),
        ("pt", "70 mil km², por km²", "setenta mil quilômetros quadrados, por quilômetro quadrado"),
        (
            "pt",
            "45 pts., 0,25 p.p. e",
            "quarenta e cinco pontos, zero vírgula vinte e cinco pontos percentuais e",
        ),
        ("hi", "287/6 बनाए", "दो सौ सत्तासी पर छह बनाए"),
        ("hi", "2/3 लोग", "दो तिहाई लोग"),
        ("fr", "★★☆ et ⭐⭐", "deux étoiles sur trois et deux étoiles"),
        ("pt", "⭐⭐ e ★☆", "duas estrelas e uma de duas estrelas"),
        ("hi", "१२:३० बजे, सन् 1857, 24x7", "साढ़े बारह बजे, सन् अठारह सौ सत्तावन, चौबीस घंटे सातों दिन"),
        ("hi", "दिल्ली - 110001, पिन 400001।", "दिल्ली - एक एक शून्य शून्य शून्य एक, पिन चार शून्य शून्य शून्य शून्य एक।"),
    ],
)
def test_read_as(language: str, written: str, said: str) -> None:
    assert normalise(AlignedText.of(written), language).text == said


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("fr", "M, le CD et le DVD, Ce De Le, MM, X et V"),
        ("fr", "Me voici, la vie, un mm, l'av de tout, mm, bon"),
        ("it", "La classe C. I ragazzi. Il sig e Malcolm X"),
        ("it", "ecco, prof, c'è un dl"),
        ("it", "Il v o il di, il L e il S"),
        ("pt-br", "D e S, o al e a seg"),
        ("fr", "le l et le t, pl et imp, mer et dim"),
        ("pt-br", "o dl e a R de rua, XP e OK"),
        ("hi", "सं और पृ"),
    ],
)
def test_what_looks_like_an_abbreviation_or_a_numeral_stays(language: str, written: str) -> None:
    assert normalise(AlignedText.of(written), language).text == written


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        ("fr", "2x - 7 = 9, x - y", "deux x moins sept égal neuf, x - y"),
        ("fr", "Paris - 3 = non", "Paris - trois = non"),
        ("hi", "10 - 4 = 6", "दस माइनस चार बराबर छह"),
        ("fr", "a ≥ 5 et x ≠ 3", "a supérieur ou égal à cinq et x différent de trois"),
        ("it", "c² = 9, π ≈ 3,1", "c al quadrato uguale nove, pi greco circa uguale a tre virgola uno"),
        ("pt", "10³ = 1.000, nome = José", "dez ao cubo igual mil, nome = José"),
        ("fr", "√49 et √x", "racine carrée de quarante-neuf et racine carrée de x"),
        ("fr", "√49 × 2", "racine carrée de quarante-neuf fois deux"),
        ("hi", "√16 और √x", "सोलह का वर्गमूल और x का वर्गमूल"),
        ("pt", "5! = 120. São 5! Sim", "cinco fatorial igual cento e vinte. São cinco! Sim"),
        ("it", "1/2 + 1/3 = 5/6", "un mezzo più un terzo uguale cinque sesti"),
        ("fr", "3/4 + 2/3, note 3/4", "trois quarts plus deux tiers, note trois sur quatre"),
        ("pt", "1/12 + 3/4", "um doze avos mais três quartos"),
        ("it", "(-2) e (+3%)", "(meno due) e (più tre per cento)"),
        ("it", "oggi -3°, il 2° piano", "oggi meno tre gradi, il secondo piano"),
        ("fr", "90e+3, 2e tour", "quatre-vingt-dixième plus trois, deuxième tour"),
    ],
)
def test_signs_of_a_sum_are_said_and_others_are_not(language: str, written: str, said: str) -> None:
    assert normalise(AlignedText.of(written), language).text == said


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        (
            "fr",
            "3 g/24 h, 90 km/h",
            "trois grammes par vingt-quatre heures, quatre-vingt-dix kilomètres-heure",
        ),
        (
            "fr",
            "60 mg/kg/j, 3 ml/kg/h, 8 km/s",
            "soixante milligrammes par kilogramme par jour, trois millilitres par kilogramme par heure, "
            "huit kilomètres par seconde",
        ),
        ("it", "15 mg/kg/die", "quindici milligrammi al chilo al giorno"),
        ("pt", "10 mg/kg/dia", "dez miligramas por quilograma por dia"),
        ("hi", "10 mg/kg/दिन", "दस मिलीग्राम प्रति किलोग्राम प्रति दिन"),
        ("fr", "Sam. 7 : pluie, la mer. 3 voiles", "samedi sept : pluie, la mer. trois voiles"),
        ("pt", "Ter. 8/10", "terça oito de outubro"),
        ("it", "12 €/100 g, 3 €/kg", "dodici euro per cento grammi, tre euro al chilo"),
        ("pt", "8 GB/256 GB", "oito gigabytes duzentos e cinquenta e seis gigabytes"),
        ("fr", "20 € brut/mois, oui/non", "vingt euros brut par mois, oui non"),
        ("pt", "40h/sem., mas sem juros", "quarenta horas por semana, mas sem juros"),
        ("pt", "de 8/8 h, nota 8/8", "de oito em oito horas, nota oito oito"),
        ("pt", "2/2h, 24/24h", "duas em duas horas, vinte e quatro vinte e quatro horas"),
        ("pt", "R$ 3 a 4 mil por mês", "três a quatro mil reais por mês"),
        ("pt", "pago R$ 3 a 4 mil pessoas", "pago três reais a quatro mil pessoas"),
        ("it", "€ 3-4 milioni", "tre a quattro milioni di euro"),
        ("hi", "₹5 हज़ार करोड़, ₹2 लाख", "पाँच हज़ार करोड़ रुपये, दो लाख रुपये"),
        ("it", "393 mila, 53", "trecentonovantatre mila, cinquantatré"),
        ("pt", "mín. 14°C, máx. 30°C", "mínima catorze graus Celsius, máxima trinta graus Celsius"),
        ("pt", "mín. 3 h, ângulo máx. 30°", "mínimo três horas, ângulo máximo trinta graus"),
        ("pt", "banho: máx. 30°", "banho: máximo trinta graus"),
        ("fr", "8h/12h", "huit heures douze heures"),
        ("fr", "vent d'O. 40 km/h", "vent d'ouest quarante kilomètres-heure"),
        ("fr", "vent de S. Roy, vent d'O.", "vent de S Roy, vent d'ouest."),
        ("fr", "v. 1855, v. 12", "vers mille huit cent cinquante-cinq, v. douze"),
        ("it", "c. 1855, c. 2", "circa milleottocentocinquantacinque, comma due"),
        ("fr", "23e s.p., XXe s.", "vingt-troisième s.p., vingtième siècle."),
        ("fr", "id : 845 221", "id : huit quatre cinq, deux deux un"),
        ("fr", "un id 12", "un id douze"),
        ("hi", "OTP 845221 है", "OTP आठ चार पाँच दो दो एक है"),
        ("pt", "senha 1234, senha 12", "senha um dois três quatro, senha doze"),
        ("pt", "2 comp., 1 suíte", "dois comprimidos, uma suíte"),
    ],
)
def test_what_stands_beside_a_short_form_decides(language: str, written: str, said: str) -> None:
    assert normalise(AlignedText.of(written), language).text == said


@pytest.mark.parametrize("language", ["fr", "it", "pt-br", "hi"])
def test_no_digit_is_left(language: str) -> None:
    text = "RTX4090 1.2.3 9" + "9" * 40 + " 31/02/2024 25:61 007 ½ १२ 1e10"
    read = normalise(AlignedText.of(text), language).text
    assert not [c for c in read if c.isdecimal()]


@pytest.mark.parametrize("language", ["fr", "it", "pt-br", "hi"])
def test_words_without_digits_are_left_alone(language: str) -> None:
    text = "Sans chiffres - senza cifre, sem números; बिना अंक!"
    assert normalise(AlignedText.of(text), language).text == text


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("fr", ("moins deux", "dixième", "premier mai", "vingt-deux heures cinq")),
        ("it", ("meno due", "decimo", "primo maggio", "ventidue e cinque")),
        ("pt-br", ("menos dois", "décimo", "primeiro de maio", "vinte e duas horas e cinco")),
        ("hi", ("माइनस दो", "दसवाँ", "एक मई", "बाईस बजकर पाँच मिनट")),
    ],
)
def test_say_as_finds_what_it_needs(language: str, said: tuple[str, str, str, str]) -> None:
    found = reader(language)
    assert found is not None
    assert said == (
        found.cardinal(-2),
        found.ordinal(10),
        found.date(None, 5, 1),
        found.time(10, 5, None, "pm"),
    )


@pytest.mark.parametrize("language", ["fr", "it", "pt-br", "hi"])
def test_months_are_named_as_cldr_names_them(language: str) -> None:
    dates = pytest.importorskip("babel.dates", reason="the extra `lab` is not installed")
    months = dates.get_month_names("wide", locale=language.replace("-", "_"))
    assert other.OtherReader(language[:2])._months == dict(months)
