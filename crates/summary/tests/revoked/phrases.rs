//! How people settle something and take it back.

pub(crate) struct Phrases {
    pub(crate) name: &'static str,
    pub(crate) task: &'static str,
    pub(crate) matters: &'static [(&'static str, &'static [&'static str])],
    /// With `{m}` for the matter and `{v}` for its value.
    pub(crate) settled: &'static [&'static str],
    /// The same with `{o}` for the earlier value.
    pub(crate) revised: &'static [&'static str],
    /// Without the matter.
    pub(crate) bare: &'static [&'static str],
    pub(crate) filler: &'static str,
    /// Facts that compete for the room, with `#` for a number.
    pub(crate) facts: &'static [&'static str],
    pub(crate) chatter: &'static [&'static str],
    pub(crate) reply: &'static str,
}

impl Phrases {
    /// Every way to settle something with every way to take it back.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let revised = || self.revised.iter().chain(self.bare);
        self.settled.iter().flat_map(move |settled| revised().map(move |revised| (*settled, *revised)))
    }
}

const STORES: &[&str] = &["SQLite", "Cassandra", "DynamoDB"];

pub(crate) const LANGUAGES: [Phrases; 6] = [
    Phrases {
        name: "English",
        task: "Help me set up the newsletter of our rowing club.",
        matters: &[
            ("the archive", STORES),
            ("the first issue", &["3 March", "17 March", "24 April"]),
            ("the header", &["teal", "crimson", "slate"]),
        ],
        settled: &[
            "{v} it is for {m}.",
            "We go with {v} for {m}.",
            "I want {v} for {m}.",
            "{m}: {v}.",
            "Put {v} down for {m}.",
        ],
        revised: &[
            "Hmm, {v} rather than {o} for {m}.",
            "On reflection {m} should be {v}.",
            "Make that {v} for {m}, please.",
            "Not {o} after all: {v} for {m}.",
            "We dropped {o}; {m} is {v} now.",
            "Forget {o}, {v} is better for {m}.",
        ],
        bare: &["{v} instead of {o}.", "No, {v}.", "Oh, {v} then, not {o}."],
        filler: "Great, thanks!",
        facts: &[
            "We have # members.",
            "Dues are # euros a year, Ingrid collects them.",
            "The boathouse has room for # boats.",
            "Our coach Tadeusz needs # new oars.",
        ],
        chatter: &[
            "The lake was frozen this morning.",
            "I should sleep more.",
            "My neighbour has a new dog, how cute!",
        ],
        reply: "Good, I will keep that in mind while we go on with the newsletter.",
    },
    Phrases {
        name: "German",
        task: "Hilf mir, den Rundbrief unseres Rudervereins aufzusetzen.",
        matters: &[
            ("das Archiv", STORES),
            ("die erste Ausgabe", &["3. März", "17. März", "24. April"]),
            ("die Kopfzeile", &["türkis", "karminrot", "schiefergrau"]),
        ],
        settled: &[
            "Für {m} wird es {v}.",
            "Ich will {v} für {m}.",
            "{m}: {v}.",
            "Für {m} gilt {v}.",
            "Schreib {v} für {m} auf.",
        ],
        revised: &[
            "Ach nein, lieber {v} als {o} für {m}.",
            "Nach einigem Nachdenken: {v} für {m}.",
            "Mach daraus bitte {v} für {m}.",
            "Doch kein {o}, sondern {v} für {m}.",
            "{o} ist vom Tisch, {m} wird {v}.",
            "Vergiss {o}, für {m} passt {v} besser.",
        ],
        bare: &["{v} statt {o}.", "Nein, {v}.", "Ach, dann {v}, nicht {o}."],
        filler: "Super, danke dir!",
        facts: &[
            "Wir haben # Mitglieder.",
            "Der Beitrag ist # Euro im Jahr, Ingrid sammelt ihn ein.",
            "Im Bootshaus liegen # Boote.",
            "Unser Trainer Tadeusz braucht # neue Riemen.",
        ],
        chatter: &[
            "Der See war heute früh zugefroren.",
            "Ich sollte mehr schlafen.",
            "Mein Nachbar hat einen neuen Hund, wie süß!",
        ],
        reply: "Gut, das behalte ich im Kopf, während wir am Rundbrief weiterarbeiten.",
    },
    Phrases {
        name: "Spanish",
        task: "Ayúdame a preparar el boletín de nuestro club de remo.",
        matters: &[
            ("el archivo", STORES),
            ("el primer número", &["3 de marzo", "17 de marzo", "24 de abril"]),
            ("el encabezado", &["turquesa", "carmesí", "gris pizarra"]),
        ],
        settled: &[
            "Para {m} será {v}.",
            "Quiero {v} para {m}.",
            "{m}: {v}.",
            "Pongamos {v} para {m}.",
            "Apunta {v} para {m}.",
        ],
        revised: &[
            "Mmm, {v} más bien que {o} para {m}.",
            "Pensándolo bien, {m} debería ser {v}.",
            "Que sea {v} para {m}, por favor.",
            "Al final no {o}, sino {v} para {m}.",
            "Dejamos {o}; {m} será {v}.",
            "Olvida {o}, {v} va mejor para {m}.",
        ],
        bare: &["{v} en vez de {o}.", "No, {v}.", "Ah, entonces {v}, no {o}."],
        filler: "¡Genial, gracias!",
        facts: &[
            "Somos # socios.",
            "La cuota es de # euros al año, la cobra Ingrid.",
            "En el cobertizo caben # botes.",
            "Nuestro entrenador Tadeusz necesita # remos nuevos.",
        ],
        chatter: &[
            "El lago estaba helado esta mañana.",
            "Debería dormir más.",
            "Mi vecino tiene un perro nuevo, ¡qué mono!",
        ],
        reply: "Bien, lo tendré en cuenta mientras seguimos con el boletín.",
    },
    Phrases {
        name: "French",
        task: "Aide-moi à préparer le bulletin de notre club d'aviron.",
        matters: &[
            ("les archives", STORES),
            ("le premier numéro", &["3 mars", "17 mars", "24 avril"]),
            ("l'en-tête", &["turquoise", "carmin", "gris ardoise"]),
        ],
        settled: &[
            "Pour {m}, ce sera {v}.",
            "Je veux {v} pour {m}.",
            "{m} : {v}.",
            "Mettons {v} pour {m}.",
            "Note {v} pour {m}.",
        ],
        revised: &[
            "Hum, {v} plutôt que {o} pour {m}.",
            "Réflexion faite, {m} devrait être {v}.",
            "Mets {v} pour {m}, s'il te plaît.",
            "Pas {o} finalement, mais {v} pour {m}.",
            "On laisse tomber {o} ; {m} sera {v}.",
            "Oublie {o}, {v} va mieux pour {m}.",
        ],
        bare: &["{v} au lieu de {o}.", "Non, {v}.", "Ah, alors {v}, pas {o}."],
        filler: "Super, merci !",
        facts: &[
            "Nous sommes # membres.",
            "La cotisation est de # euros par an, Ingrid la perçoit.",
            "Le hangar abrite # bateaux.",
            "Notre entraîneur Tadeusz a besoin de # rames neuves.",
        ],
        chatter: &[
            "Le lac était gelé ce matin.",
            "Je devrais dormir davantage.",
            "Mon voisin a un nouveau chien, trop mignon !",
        ],
        reply: "Bien, je garde cela à l'esprit pendant que nous continuons le bulletin.",
    },
    Phrases {
        name: "Chinese",
        task: "请帮我准备我们赛艇俱乐部的简报。",
        matters: &[
            ("档案", STORES),
            ("第一期", &["3月3日", "3月17日", "4月24日"]),
            ("标题的颜色", &["红", "蓝", "绿"]),
        ],
        settled: &["{m}就选{v}。", "{m}用{v}吧。", "{m}：{v}。", "我要{m}是{v}。", "{m}写{v}。"],
        revised: &[
            "嗯，{m}还是{v}，不要{o}。",
            "想了想，{m}应该是{v}。",
            "{m}请换{v}。",
            "{m}不是{o}，是{v}。",
            "{o}不要了，{m}用{v}。",
            "忘掉{o}，{m}{v}更好。",
        ],
        bare: &["{v}，而不是{o}。", "不，{v}。", "那就{v}，不用{o}。"],
        filler: "太好了，谢谢！",
        facts: &["我们有#名会员。", "会费每年#元，由王丽收。", "艇库能放#条艇。", "教练刘刚需要#支新桨。"],
        chatter: &["今天早上湖面结冰了。", "我应该多睡一点。", "邻居养了一只新狗，真可爱！"],
        reply: "好的，我们继续做简报的时候我会记住。",
    },
    Phrases {
        name: "Japanese",
        task: "ボート部の会報の準備を手伝ってください。",
        matters: &[
            ("保管場所", STORES),
            ("創刊号", &["3月3日", "3月17日", "4月24日"]),
            ("見出しの色", &["赤", "青", "緑"]),
        ],
        settled: &[
            "{m}は{v}で。",
            "{m}は{v}がいいです。",
            "{m}：{v}。",
            "{m}は{v}にしておきます。",
            "{m}には{v}と書いて。",
        ],
        revised: &[
            "うーん、{m}は{o}より{v}がいいです。",
            "考え直して、{m}は{v}です。",
            "{m}は{v}にしてください。",
            "{m}は{o}じゃなくて{v}で。",
            "{o}はやめて、{m}は{v}にします。",
            "{o}は忘れて、{m}は{v}のほうがいい。",
        ],
        bare: &["{o}ではなく{v}。", "いや、{v}。", "じゃあ{v}で、{o}はやめ。"],
        filler: "はい、ありがとう！",
        facts: &[
            "会員は#人います。",
            "会費は年#円で、森さんが集めます。",
            "艇庫には#艇入ります。",
            "コーチの高木さんは新しいオールが#本必要です。",
        ],
        chatter: &[
            "今朝は湖が凍っていました。",
            "もっと寝たほうがいいですね。",
            "隣の人が新しい犬を飼いました、かわいい！",
        ],
        reply: "わかりました、会報を進めながら覚えておきます。",
    },
];
