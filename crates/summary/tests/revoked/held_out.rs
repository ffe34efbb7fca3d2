//! Phrasings that the summarizer was not developed with. Whoever adds words to its tables must not take them from here.

use crate::phrases::Phrases;

pub(crate) const LANGUAGES: [Phrases; 6] = [
    Phrases {
        name: "English, held out",
        task: "Can you help me with the seating for our choir concert?",
        matters: &[
            ("the ticket shop", &["Mollie", "Stripe", "Adyen"]),
            ("the rehearsal", &["7 June", "14 June"]),
        ],
        settled: &["I'd say {v} for {m}.", "Let's take {v} for {m}.", "{m} will be {v}."],
        revised: &[
            "Wait, {v} for {m} instead.",
            "We switched {m} to {v}.",
            "I changed my mind: {v} for {m}.",
            "{m} won't be {o} but {v}.",
        ],
        bare: &["Sorry, {v}, not {o}.", "Scratch that, {v}."],
        filler: "Perfect, thank you!",
        facts: &[
            "The church has # seats.",
            "Petra sells # tickets a day.",
            "The organ tuner asks for # euros.",
        ],
        chatter: &["The pigeons are loud today.", "I slept badly, sorry.", "What a lovely morning!"],
        reply: "Understood, I will use that for the seating from now on.",
    },
    Phrases {
        name: "German, held out",
        task: "Kannst du mir bei den Plätzen für unser Chorkonzert helfen?",
        matters: &[
            ("den Kartenverkauf", &["Mollie", "Stripe", "Adyen"]),
            ("die Probe", &["7. Juni", "14. Juni"]),
        ],
        settled: &["Ich würde sagen {v} für {m}.", "Nehmen wir {v} für {m}.", "Für {m} ist {v} vorgesehen."],
        revised: &[
            "Moment, für {m} doch {v}.",
            "Wir wechseln für {m} zu {v}.",
            "Ich habe es mir anders überlegt: {v} für {m}.",
            "Für {m} gilt nicht mehr {o}, sondern {v}.",
        ],
        bare: &["Entschuldige, {v}, nicht {o}.", "Korrektur: {v}."],
        filler: "Perfekt, vielen Dank!",
        facts: &[
            "Die Kirche hat # Plätze.",
            "Petra verkauft # Karten am Tag.",
            "Der Orgelbauer will # Euro.",
        ],
        chatter: &[
            "Die Tauben sind heute laut.",
            "Ich habe schlecht geschlafen.",
            "Was für ein schöner Morgen!",
        ],
        reply: "Verstanden, das nehme ich ab jetzt für die Plätze.",
    },
    Phrases {
        name: "Spanish, held out",
        task: "¿Puedes ayudarme con los asientos de nuestro concierto de coro?",
        matters: &[
            ("la venta de entradas", &["Mollie", "Stripe", "Adyen"]),
            ("el ensayo", &["7 de junio", "14 de junio"]),
        ],
        settled: &["Yo diría {v} para {m}.", "Tomemos {v} para {m}.", "Lo previsto para {m} es {v}."],
        revised: &[
            "Espera, mejor {v} para {m}.",
            "Cambiamos {m} a {v}.",
            "He cambiado de idea: {v} para {m}.",
            "Para {m} ya no {o}, sino {v}.",
        ],
        bare: &["Perdón, {v}, no {o}.", "Corrección: {v}."],
        filler: "¡Perfecto, muchas gracias!",
        facts: &[
            "La iglesia tiene # asientos.",
            "Petra vende # entradas al día.",
            "El afinador pide # euros.",
        ],
        chatter: &["Las palomas hacen ruido hoy.", "He dormido mal.", "¡Qué mañana tan bonita!"],
        reply: "Entendido, lo usaré para los asientos a partir de ahora.",
    },
    Phrases {
        name: "French, held out",
        task: "Peux-tu m'aider avec les places de notre concert de chorale ?",
        matters: &[
            ("la billetterie", &["Mollie", "Stripe", "Adyen"]),
            ("la répétition", &["7 juin", "14 juin"]),
        ],
        settled: &["Je dirais {v} pour {m}.", "Prenons {v} pour {m}.", "Pour {m}, c'est {v} qui est prévu."],
        revised: &[
            "Attends, plutôt {v} pour {m}.",
            "On passe à {v} pour {m}.",
            "J'ai changé d'avis : {v} pour {m}.",
            "Pour {m}, ce n'est plus {o} mais {v}.",
        ],
        bare: &["Pardon, {v}, pas {o}.", "Correction : {v}."],
        filler: "Parfait, merci beaucoup !",
        facts: &["L'église a # places.", "Petra vend # billets par jour.", "L'accordeur demande # euros."],
        chatter: &["Les pigeons sont bruyants aujourd'hui.", "J'ai mal dormi.", "Quelle belle matinée !"],
        reply: "Compris, je m'en servirai pour les places à partir de maintenant.",
    },
    Phrases {
        name: "Chinese, held out",
        task: "能帮我安排合唱音乐会的座位吗？我需要一个计划。",
        matters: &[
            ("售票", &["Mollie", "Stripe", "Adyen"]),
            ("排练", &["6月7日", "6月14日"]),
            ("封面", &["黑", "白", "黄"]),
        ],
        settled: &["{m}我觉得{v}。", "{m}我们就用{v}。", "{m}定{v}。"],
        revised: &[
            "等一下，{m}改用{v}。",
            "{m}换成{v}。",
            "我改主意了，{m}要{v}。",
            "{m}不再是{o}，而是{v}。",
        ],
        bare: &["抱歉，是{v}，不是{o}。", "更正：{v}。"],
        filler: "好的，谢谢！",
        facts: &["教堂有#个座位。", "小陈每天卖#张票。", "调音师要#元。"],
        chatter: &["今天鸽子很吵。", "我睡得不好。", "多美的早晨！"],
        reply: "明白，从现在起座位就按这个来。",
    },
    Phrases {
        name: "Japanese, held out",
        task: "合唱コンサートの座席を手伝ってもらえますか、お願いします。",
        matters: &[
            ("チケット販売", &["Mollie", "Stripe", "Adyen"]),
            ("練習日", &["6月7日", "6月14日"]),
            ("表紙", &["黒", "白", "黄"]),
        ],
        settled: &["{m}は{v}かなと思います。", "{m}は{v}でいきましょう。", "{m}は{v}に決定。"],
        revised: &[
            "待って、{m}はやっぱり{v}で。",
            "{m}を{v}に切り替えました。",
            "気が変わりました、{m}は{v}です。",
            "{m}はもう{o}ではなく{v}です。",
        ],
        bare: &["すみません、{o}じゃなくて{v}です。", "訂正：{v}。"],
        filler: "了解、ありがとうございます！",
        facts: &["教会には#席あります。", "林さんは一日#枚売ります。", "調律師は#円かかります。"],
        chatter: &["今日は鳩がうるさいです。", "よく眠れませんでした。", "なんて気持ちのいい朝！"],
        reply: "わかりました、これからはそれで座席を考えます。",
    },
];
