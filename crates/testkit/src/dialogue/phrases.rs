//! What is said in the generated dialogues.

/// A statement with `{v}` for its value, the question for it, and the values.
type FactPhrase = (&'static str, &'static str, &'static [&'static str]);

/// What people say in one language.
#[derive(Clone, Copy)]
pub(super) struct Phrases {
    pub(super) name: &'static str,
    pub(super) task: &'static str,
    pub(super) facts: &'static [FactPhrase],
    pub(super) matters: &'static [(&'static str, &'static [&'static str])],
    pub(super) settled: &'static [&'static str],
    pub(super) revised: &'static [&'static str],
    pub(super) user_chatter: &'static [&'static str],
    pub(super) assistant_chatter: &'static [&'static str],
}

const PEOPLE: &[&str] = &["Ottoline Varga", "Ravi Menon", "Birgit Aas", "Imani Okoye"];
const PLACES: &[&str] = &["Trondheim", "Valparaíso", "Leipzig", "Galway"];
const CHINESE_PEOPLE: &[&str] = &["王伟明", "李秀英", "赵国栋", "陈思远"];
const CHINESE_PLACES: &[&str] = &["成都", "青岛", "昆明", "哈尔滨"];
const JAPANESE_PEOPLE: &[&str] = &["佐々木美咲", "高橋健太", "渡辺浩二", "小林直樹"];
const JAPANESE_PLACES: &[&str] = &["札幌", "金沢", "高松", "鹿児島"];
const TOOLS: &[&str] = &["Postgres", "Redis", "Kafka"];

pub(super) const LANGUAGES: [Phrases; 6] = [
    Phrases {
        name: "English",
        task: "Help me plan the opening of our small museum.",
        facts: &[
            ("By the way, the person for the tickets is {v}.", "Who is the person for the tickets?", PEOPLE),
            (
                "The rent for the hall is {v} a month, which is a lot.",
                "How much is the rent for the hall?",
                &["2,4## euros", "3,1## euros"],
            ),
            ("My sister lives in {v} and comes with her children.", "Where does my sister live?", PLACES),
            (
                "The alarm code of the back door is {v}.",
                "What is the alarm code of the back door?",
                &["7##3#", "4#1##"],
            ),
            (
                "The plan of the ground floor is in {v}.",
                "Where is the plan of the ground floor?",
                &["plans/floor_#.pdf", "docs/ground-#.svg"],
            ),
            (
                "We have to order {v} chairs for the first evening.",
                "How many chairs do we have to order?",
                &["1#4", "2#7"],
            ),
            ("The fire inspection is on {v}.", "When is the fire inspection?", &["1# March", "2# April"]),
            (
                "Our electrician is called {v} and is rarely on time.",
                "What is our electrician called?",
                PEOPLE,
            ),
        ],
        matters: &[
            ("the storage", TOOLS),
            ("the opening date", &["12 May", "26 May", "9 June"]),
            ("the colour of the walls", &["ochre", "moss green", "ivory"]),
        ],
        settled: &["For {m} we take {v}.", "We decided that {m} is {v}.", "Let's use {v} for {m}."],
        revised: &[
            "Actually, for {m} we take {v} instead.",
            "We changed {m} to {v}.",
            "No, {m} should be {v}, not {o}.",
        ],
        user_chatter: &[
            "I had a long day and hardly slept.",
            "The weather is strange this week.",
            "I like how this comes along.",
            "Sorry for the many messages.",
            "My coffee is cold again.",
        ],
        assistant_chatter: &[
            "Understood, I will keep that in mind for the next steps.",
            "You could also think about how visitors move through the rooms.",
            "If you want, I can write a list of what remains to be done.",
            "That sounds good.",
        ],
    },
    Phrases {
        name: "German",
        task: "Hilf mir bitte, die Eröffnung unseres kleinen Museums zu planen.",
        facts: &[
            ("Übrigens ist {v} für die Karten zuständig.", "Wer ist für die Karten zuständig?", PEOPLE),
            (
                "Die Miete für den Saal beträgt {v} im Monat, das ist viel.",
                "Wie hoch ist die Miete für den Saal?",
                &["2.4## Euro", "3.1## Euro"],
            ),
            (
                "Meine Schwester wohnt in {v} und kommt mit ihren Kindern.",
                "Wo wohnt meine Schwester?",
                PLACES,
            ),
            ("Der Code der Hintertür ist {v}.", "Wie ist der Code der Hintertür?", &["7##3#", "4#1##"]),
            (
                "Der Plan vom Erdgeschoss liegt in {v}.",
                "Wo liegt der Plan vom Erdgeschoss?",
                &["plans/floor_#.pdf", "docs/ground-#.svg"],
            ),
            (
                "Für den ersten Abend müssen wir {v} Stühle bestellen.",
                "Wie viele Stühle müssen wir bestellen?",
                &["1#4", "2#7"],
            ),
            (
                "Die Brandschau ist am {v} um neun Uhr.",
                "Wann ist die Brandschau?",
                &["1#. März", "2#. April"],
            ),
            ("Unser Elektriker heißt {v} und kommt selten pünktlich.", "Wie heißt unser Elektriker?", PEOPLE),
        ],
        matters: &[
            ("den Speicher", TOOLS),
            ("die Eröffnung", &["12. Mai", "26. Mai", "9. Juni"]),
            ("die Wandfarbe", &["Ocker", "Moosgrün", "Elfenbein"]),
        ],
        settled: &[
            "Für {m} nehmen wir {v}.",
            "Wir haben uns für {m} entschieden: {v}.",
            "Bei {m} bleiben wir bei {v}.",
        ],
        revised: &[
            "Doch nicht {o}, für {m} nehmen wir lieber {v}.",
            "Wir haben {m} geändert, jetzt {v}.",
            "Nein, für {m} jetzt {v} statt {o}.",
        ],
        user_chatter: &[
            "Ich hatte einen langen Tag und habe kaum geschlafen.",
            "Das Wetter ist diese Woche seltsam.",
            "Mir gefällt, wie das vorangeht.",
            "Entschuldige die vielen Nachrichten.",
            "Mein Kaffee ist schon wieder kalt.",
        ],
        assistant_chatter: &[
            "Verstanden, das behalte ich für die nächsten Schritte im Kopf.",
            "Man könnte auch überlegen, wie die Besucher durch die Räume gehen.",
            "Wenn du möchtest, schreibe ich eine Liste der offenen Punkte.",
            "Das klingt gut.",
        ],
    },
    Phrases {
        name: "Spanish",
        task: "Ayúdame a planear la apertura de nuestro pequeño museo.",
        facts: &[
            (
                "Por cierto, la persona de las entradas es {v}.",
                "¿Quién es la persona de las entradas?",
                PEOPLE,
            ),
            (
                "El alquiler de la sala es de {v} al mes, que es mucho.",
                "¿Cuánto es el alquiler de la sala?",
                &["2.4## euros", "3.1## euros"],
            ),
            ("Mi hermana vive en {v} y viene con sus hijos.", "¿Dónde vive mi hermana?", PLACES),
            (
                "El código de la puerta trasera es {v}.",
                "¿Cuál es el código de la puerta trasera?",
                &["7##3#", "4#1##"],
            ),
            (
                "El plano de la planta baja está en {v}.",
                "¿Dónde está el plano de la planta baja?",
                &["plans/floor_#.pdf", "docs/ground-#.svg"],
            ),
            (
                "Tenemos que pedir {v} sillas para la primera noche.",
                "¿Cuántas sillas tenemos que pedir?",
                &["1#4", "2#7"],
            ),
            (
                "La inspección de incendios es el {v}.",
                "¿Cuándo es la inspección de incendios?",
                &["1# de marzo", "2# de abril"],
            ),
            (
                "Nuestro electricista se llama {v} y rara vez llega a tiempo.",
                "¿Cómo se llama nuestro electricista?",
                PEOPLE,
            ),
        ],
        matters: &[
            ("el almacén", TOOLS),
            ("la apertura", &["12 de mayo", "26 de mayo", "9 de junio"]),
            ("el color de las paredes", &["ocre", "verde musgo", "marfil"]),
        ],
        settled: &[
            "Para {m} usamos {v}.",
            "Decidimos que {m} es {v}.",
            "En cuanto a {m}, nos quedamos con {v}.",
        ],
        revised: &[
            "Mejor cambiamos {m} a {v}.",
            "No, para {m} usamos {v} en vez de {o}.",
            "Hemos cambiado {m}: ahora {v}.",
        ],
        user_chatter: &[
            "He tenido un día largo y casi no he dormido.",
            "El tiempo está raro esta semana.",
            "Me gusta cómo va saliendo.",
            "Perdona por tantos mensajes.",
            "Mi café está frío otra vez.",
        ],
        assistant_chatter: &[
            "Entendido, lo tendré en cuenta para los próximos pasos.",
            "También se podría pensar en cómo se mueven los visitantes por las salas.",
            "Si quieres, puedo escribir una lista de lo que falta.",
            "Suena bien.",
        ],
    },
    Phrases {
        name: "French",
        task: "Aide-moi à préparer l'ouverture de notre petit musée.",
        facts: &[
            (
                "Au fait, la personne pour les billets est {v}.",
                "Qui est la personne pour les billets ?",
                PEOPLE,
            ),
            (
                "Le loyer de la salle est de {v} par mois, c'est beaucoup.",
                "Combien coûte le loyer de la salle ?",
                &["2 4## euros", "3 1## euros"],
            ),
            ("Ma sœur habite à {v} et vient avec ses enfants.", "Où habite ma sœur ?", PLACES),
            (
                "Le code de la porte arrière est {v}.",
                "Quel est le code de la porte arrière ?",
                &["7##3#", "4#1##"],
            ),
            (
                "Le plan du rez-de-chaussée est dans {v}.",
                "Où est le plan du rez-de-chaussée ?",
                &["plans/floor_#.pdf", "docs/ground-#.svg"],
            ),
            (
                "Nous devons commander {v} chaises pour le premier soir.",
                "Combien de chaises devons-nous commander ?",
                &["1#4", "2#7"],
            ),
            (
                "L'inspection des pompiers est le {v}.",
                "Quand est l'inspection des pompiers ?",
                &["1# mars", "2# avril"],
            ),
            (
                "Notre électricien s'appelle {v} et arrive rarement à l'heure.",
                "Comment s'appelle notre électricien ?",
                PEOPLE,
            ),
        ],
        matters: &[
            ("le stockage", TOOLS),
            ("l'ouverture", &["12 mai", "26 mai", "9 juin"]),
            ("la couleur des murs", &["ocre", "vert mousse", "ivoire"]),
        ],
        settled: &[
            "Pour {m}, on prend {v}.",
            "Nous avons décidé que {m} sera {v}.",
            "Utilisons {v} pour {m}.",
        ],
        revised: &[
            "Finalement, pour {m} on prend plutôt {v}.",
            "Nous avons changé {m} : maintenant {v}.",
            "Non, pour {m} c'est {v} au lieu de {o}.",
        ],
        user_chatter: &[
            "J'ai eu une longue journée et j'ai à peine dormi.",
            "Le temps est bizarre cette semaine.",
            "J'aime bien comment cela avance.",
            "Désolé pour tous ces messages.",
            "Mon café est encore froid.",
        ],
        assistant_chatter: &[
            "Compris, je le garde en tête pour la suite.",
            "On pourrait aussi réfléchir à la façon dont les visiteurs circulent.",
            "Si tu veux, je peux écrire une liste de ce qui reste à faire.",
            "Cela semble bien.",
        ],
    },
    Phrases {
        name: "Chinese",
        task: "请帮我计划我们小博物馆的开幕。",
        facts: &[
            ("对了，负责门票的人是{v}。", "负责门票的人是谁？", CHINESE_PEOPLE),
            ("大厅的租金是每月{v}，有点贵。", "大厅的租金是多少？", &["24##元", "31##元"]),
            ("我姐姐住在{v}，她会带孩子来。", "我姐姐住在哪里？", CHINESE_PLACES),
            ("后门的密码是{v}。", "后门的密码是什么？", &["7##3#", "4#1##"]),
            ("一楼的平面图在{v}里。", "一楼的平面图在哪里？", &["plans/floor_#.pdf", "docs/ground-#.svg"]),
            ("第一天晚上要订{v}把椅子。", "要订多少把椅子？", &["1#4", "2#7"]),
            ("消防检查在{v}进行。", "消防检查是什么时候？", &["3月1#日", "4月2#日"]),
            ("我们的电工叫{v}，经常迟到。", "我们的电工叫什么？", CHINESE_PEOPLE),
        ],
        matters: &[
            ("存储", TOOLS),
            ("开幕日期", &["5月12日", "5月26日", "6月9日"]),
            ("墙壁的颜色", &["赭石色", "苔绿色", "象牙白"]),
        ],
        settled: &["{m}我们决定用{v}。", "{m}就定为{v}。", "关于{m}，我们选择{v}。"],
        revised: &["其实{m}改成{v}吧。", "{m}换成{v}，不再用{o}。", "不对，{m}应该改为{v}。"],
        user_chatter: &[
            "我今天很累，几乎没睡。",
            "这周天气很奇怪。",
            "我喜欢现在的进展。",
            "抱歉发了这么多消息。",
            "我的咖啡又凉了。",
        ],
        assistant_chatter: &[
            "明白，我会在接下来的步骤中记住这一点。",
            "也可以考虑参观者怎样在各个房间里走动。",
            "如果需要，我可以列出还没完成的事情。",
            "听起来不错。",
        ],
    },
    Phrases {
        name: "Japanese",
        task: "小さな博物館の開館の計画を手伝ってください。",
        facts: &[
            ("ところで、チケットの担当者は{v}です。", "チケットの担当者は誰ですか？", JAPANESE_PEOPLE),
            (
                "ホールの家賃は月{v}で、かなり高いです。",
                "ホールの家賃はいくらですか？",
                &["24##00円", "31##00円"],
            ),
            ("姉は{v}に住んでいて、子どもたちと来ます。", "姉はどこに住んでいますか？", JAPANESE_PLACES),
            ("裏口の暗証番号は{v}です。", "裏口の暗証番号は何ですか？", &["7##3#", "4#1##"]),
            (
                "一階の図面は{v}にあります。",
                "一階の図面はどこにありますか？",
                &["plans/floor_#.pdf", "docs/ground-#.svg"],
            ),
            ("最初の夜には椅子が{v}脚必要です。", "椅子は何脚必要ですか？", &["1#4", "2#7"]),
            ("消防の検査は{v}にあります。", "消防の検査はいつですか？", &["3月1#日", "4月2#日"]),
            (
                "電気工事の人は{v}という名前で、よく遅れます。",
                "電気工事の人の名前は何ですか？",
                JAPANESE_PEOPLE,
            ),
        ],
        matters: &[
            ("保存先", TOOLS),
            ("開館日", &["5月12日", "5月26日", "6月9日"]),
            ("壁の色", &["黄土色", "苔色", "象牙色"]),
        ],
        settled: &["{m}は{v}に決めました。", "{m}は{v}にします。", "{m}については{v}を使います。"],
        revised: &[
            "やっぱり{m}は{v}に変更します。",
            "{m}は{o}ではなく{v}にしましょう。",
            "訂正です、{m}は{v}です。",
        ],
        user_chatter: &[
            "今日は長い一日で、ほとんど寝ていません。",
            "今週の天気は変ですね。",
            "この進み方が気に入っています。",
            "何度もメッセージを送ってすみません。",
            "またコーヒーが冷めてしまいました。",
        ],
        assistant_chatter: &[
            "承知しました、次の手順で覚えておきます。",
            "来館者がどのように部屋を回るかも考えられます。",
            "よろしければ、残っている作業の一覧を書きます。",
            "良さそうですね。",
        ],
    },
];
