"""The short words that give a language away, where statistics of letters cannot tell.

Not complete and need not be: a word that is in several lists speaks for none of them against the others.
"""

from __future__ import annotations

_WORDS = {
    "en": """
    the a an and or but not no nor if then than so as of to in on at by for from with without into onto
    upon about above below under over after before between through during against among i me my mine you
    your yours he him his she her hers it its we us our ours they them their theirs this that these
    those who whom whose which what when where why how there here am is are was were be been being do
    does did done have has had having will would shall should can could may might must all any each
    every some such only own same too very just because while until although though also again once now
    never always yes please thank thanks don't didn't doesn't can't won't isn't aren't wasn't it's i'm
    i'll i've you're he's she's we're they're let's that's one two three four five six seven eight nine
    ten first last other another more most much many few up down out off back get got go goes went gone
    come came make made take took see saw seen say says said know knew think thought want tell told ask
    asked give gave good new old little big long after today tomorrow yesterday
    """,
    "es": """
    el la los las un una unos unas lo al del y e o u pero sino ni si que de a en con por para sin sobre
    entre hasta desde hacia según durante contra tras yo tú vos él ella ello nosotros nosotras vosotros
    ellos ellas usted ustedes me te se nos os le les mi mis tu tus su sus nuestro nuestra nuestros
    nuestras este esta esto estos estas ese esa eso esos esas aquel aquella quien quién cual cuál cuando
    cuándo donde dónde como cómo cuánto qué porque aunque mientras así también tampoco muy más menos
    mucho mucha muchos muchas poco todo toda todos todas nada algo alguien nadie ya aún todavía siempre
    nunca ahora luego entonces después antes aquí allí ahí hoy mañana ayer no sí soy eres es somos son
    fue era eran ser estar estoy está estás estamos están estaba he has ha hemos han había hay tengo
    tienes tiene tenemos tienen tenía hace hacer voy vas va vamos van ir quiero quieres quiere puedo
    puedes puede pueden sé sabe dice dijo bien mal bueno buena buenos buenas gracias hola adiós señor
    señora favor día días casa cosa vez otro otra otros otras mismo cada
    """,
    "fr": """
    le la les l' un une des du de d' au aux et ou mais donc or ni car que qu' qui quoi dont où je j' tu
    il elle on nous vous ils elles me m' te t' se s' lui leur y en mon ma mes ton ta tes son sa ses
    notre nos votre vos leurs ce cet cette ces c' ça dans sur sous avec sans pour par chez vers entre
    depuis pendant avant après contre ne n' pas plus jamais rien personne très trop aussi bien mal peu
    beaucoup tout toute tous toutes si comme quand comment pourquoi parce puis alors ici là suis es est
    sommes êtes sont était étaient être ai as a avons avez ont avait avoir fait faire vais va allons
    allez vont aller peux peut veux veut oui non merci bonjour monsieur madame même autre chaque quelque
    aujourd'hui demain hier
    """,
    "it": """
    il lo la i gli le l' un uno una un' di a da in con su per tra fra del dello della dei degli delle al
    allo alla ai agli alle dal dalla nel nella nei nelle sul sulla e ed o ma se che chi cui non né io tu
    lui lei noi voi loro mi ti ci vi si mio mia tuo tua suo sua nostro vostro questo questa questi
    queste quello quella quelli quelle dove quando come perché cosa più meno molto molta molti poco
    tutto tutta tutti tutte anche ancora già mai sempre ora adesso poi qui qua lì là sono sei è siamo
    siete era erano essere ho hai ha abbiamo avete hanno aveva avere sto stai sta fare fa vado va
    andiamo vanno può posso voglio vuole sì no grazie prego ciao buongiorno signore signora bene male
    oggi domani ieri altro altra ogni stesso
    """,
    "pt": """
    o a os as um uma uns umas do da dos das no na nos nas ao à aos às pelo pela de em com por para sem
    sobre entre até desde e ou mas nem se que quem qual quando onde como porque eu tu você vocês ele ela
    nós eles elas me te lhe nos meu minha teu tua seu sua nosso nossa este esta isto esse essa isso
    aquele aquela aquilo não sim mais menos muito muita muitos pouco tudo todo toda todos todas também
    já ainda sempre nunca agora depois antes aqui ali lá hoje amanhã ontem sou é somos são foi era eram
    ser estou está estamos estão estava tenho tem temos têm tinha há ter faz fazer vou vai vamos vão ir
    quero quer posso pode bem mal bom boa obrigado obrigada olá senhor senhora dia outro outra cada
    mesmo
    """,
}

FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
"""Of each language (two letters), lower-case."""
