//! The words by which people decide, correct, ask and agree.
//!
//! One table per language, for the few things that cannot be told without knowing the language. Without a table, statements are
//! still selected by what they say; only decisions and corrections are not told from other facts.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::language::Tongues;
use crate::word::phrases;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    /// Something is no longer what it was.
    Change,
    /// Something that is named is given up.
    Revoke,
    /// Something is denied. That gives up what is named if somebody has said it before.
    Deny,
    /// What follows corrects something, if it comes first.
    Reject,
    Decide,
    Goal,
    Todo,
    /// Thanks, greetings, agreement.
    Filler,
    /// The speaker does not know.
    Unsure,
    /// Connects two statements.
    And,
    /// Grammar.
    Function,
}

/// A set of cues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cues(u16);

impl Cues {
    pub(super) fn has(self, cue: Cue) -> bool {
        self.0 & 1 << cue as u16 != 0
    }

    pub(super) fn add(&mut self, cue: Cue) {
        self.0 |= 1 << cue as u16;
    }
}

/// The words of one language. Members of a list are separated as in a sentence.
struct Language {
    change: &'static str,
    revoke: &'static str,
    deny: &'static str,
    reject: &'static str,
    decide: &'static str,
    goal: &'static str,
    todo: &'static str,
    filler: &'static str,
    unsure: &'static str,
    and: &'static str,
    function: &'static str,
}

impl Language {
    fn lists(&self) -> [(Cue, &'static str); 11] {
        [
            (Cue::Change, self.change),
            (Cue::Revoke, self.revoke),
            (Cue::Deny, self.deny),
            (Cue::Reject, self.reject),
            (Cue::Decide, self.decide),
            (Cue::Goal, self.goal),
            (Cue::Todo, self.todo),
            (Cue::Filler, self.filler),
            (Cue::Unsure, self.unsure),
            (Cue::And, self.and),
            (Cue::Function, self.function),
        ]
    }
}

/// The number of tables. Those of languages with spaces between words come first.
pub(super) const LANGUAGES: usize = SPACED + 2;
pub(super) const SPACED: usize = 4;

const ALPHABETIC: [Language; SPACED] = [
    Language {
        change: "instead, change, changed, changes, switch, switched, switching, moved, \
                 move, moving, moves, scrap, forget, drop, dropped, correction, update, updated, scratch that, second thought, make it, make \
                 that, changed my mind, take back, replace, replaces, replaced, takes over, off the table, cancelled, canceled, cancel, postponed, no more, \
                 revert, go with, supersedes, bump, shifted, revised, rescheduled, after all, on reflection, thinking about it, come to think of it, rather, \
                 i meant, turns out, is better, would be better, better make",
        revoke: "scrap, forget, drop, dropped, ditch, instead of, rather than, no longer, no more, not anymore, any more, replace, replaces, replaced, takes over, off the \
                 table, cancelled, canceled, cancel, supersedes, moving from, move from, switch from, switched from, won't, kill, resigned, declined, withdrew, fell through",
        deny: "not, isn't, aren't, don't want, doesn't",
        reject: "no, nope, wait, hold on, sorry, scratch, actually, correction",
        decide: "let's, lets, use, we'll, decided, decide, decision, agreed, settled, settle, go with, choose, chose, pick, picked, prefer, must, \
                 never, always, should, keep, take, going with, stick",
        goal: "help me, i want, i'd like, i need, goal, aim, task, please, we want, we need, objective, trying to, help us, can you, could you",
        todo: "todo, to do, remember to, don't forget, remind me, need to, have to, next step, action item",
        filler: "thanks, thank you, thank, thx, cool, great, awesome, nice, ok, okay, sure, hello, hi, hey, understood, noted, got it, sounds \
                 good, perfect, haha, lol, wow, yes, yeah, yep, alright, good morning, bye, welcome, happy to help, of course, no problem, i see, \
                 interesting, wonderful, glad, absolutely, certainly, exactly, fantastic, makes sense, will do, done, hm, hmm, uh, um, \
                 thanks a lot, oh, ah, go on, go ahead, keep going, carry on, thanks so much",
        unsure: "don't know, do not know, not sure, unclear, unknown, clarification, to be decided, tbd, no idea",
        and: "and, but",
        function: "a, an, the, of, to, in, on, at, for, with, from, by, as, is, are, was, were, be, been, am, it, its, it's, this, that, these, those, \
                   i, i'm, i've, i'll, i'd, you, he, she, we, they, my, your, our, his, her, their, me, us, them, do, does, did, has, have, had, will, \
                   would, can, could, should, not, or, so, if, then, than, there, here, what, which, who, how, when, where, just, also, very, \
                   really, about, into, out, up, now, too, only, some, any, all, because, while, we're, don't, that's, let, and, but",
    },
    Language {
        change: "eigentlich, stattdessen, doch, lieber, nicht mehr, ändern, ändere, geändert, änderung, wechseln, wechsle, wechselt, gewechselt, umgestellt, \
                 verschoben, verschieben, verlegt, verworfen, vergiss, streiche, gestrichen, korrektur, korrigiere, aktualisiert, statt, anstatt, \
                 ersetzt, ersetzen, abgesagt, zurückgenommen, überlegt, neu, neuer, neues, neue, umgezogen, hinfällig, gilt nicht, mach daraus, vom tisch, nach reiflicher überlegung, im nachhinein, nachdenken, sondern, doch kein, doch nicht, \
                 ich meinte, besser, stellt sich heraus",
        revoke: "nicht mehr, verworfen, vergiss, streiche, gestrichen, statt, anstatt, anstelle, ersetzt, ersetzen, abgesagt, hinfällig, gilt nicht, weg von, raus, vom tisch, doch nicht, doch kein",
        deny: "nicht, kein, keine, keinen, keiner",
        reject: "nein, nee, halt, moment, warte, doch nicht, entschuldigung, sorry, oder nein, besser, quatsch",
        decide: "wir nehmen, nehmen wir, nimm, verwenden, verwende, benutzen, benutze, nutzen wir, entschieden, entscheiden, entscheidung, beschlossen, \
                 vereinbart, festgelegt, muss, müssen, soll, sollen, immer, niemals, nie, bevorzugen, bevorzuge, wählen, bleiben bei, einigen",
        goal: "hilf mir, helfen sie, ich möchte, ich will, wir wollen, wir möchten, ich brauche, ziel, aufgabe, bitte, kannst du, können sie",
        todo: "todo, nicht vergessen, denk daran, denken sie daran, erinnere mich, zu erledigen, nächster schritt",
        filler: "danke, vielen dank, hallo, guten tag, guten morgen, gut, super, toll, prima, ok, okay, klar, gerne, gern, verstanden, notiert, perfekt, \
                 haha, ja, genau, alles klar, tschüss, natürlich, kein problem, schön, wunderbar, in ordnung, freut mich, weiter so, mach weiter, machen sie weiter, danke dir, danke ihnen, danke schön, ach, ach so, na ja",
        unsure: "weiß nicht, weiß ich nicht, unklar, unbekannt, nicht sicher, zu klären, noch offen, keine ahnung",
        and: "und, aber",
        function: "der, die, das, den, dem, des, ein, eine, einen, einem, einer, eines, und, oder, aber, von, zu, zum, zur, in, im, an, am, auf, für, mit, aus, bei, \
                   nach, über, unter, um, vor, als, wie, ist, sind, war, waren, sein, bin, es, er, sie, wir, ihr, ich, du, mein, meine, unser, unsere, dein, deine, \
                   ihre, mir, mich, uns, sich, nicht, auch, nur, noch, schon, sehr, so, dann, wenn, dass, daß, hat, haben, habe, hatte, wird, werden, wurde, kann, \
                   können, man, jetzt, hier, da, was, wer, wo, wann",
    },
    Language {
        change: "en realidad, mejor, en vez, en lugar, ya no, cambia, cambiar, cambio, cambié, cambiado, cambiamos, cambiaron, cambió, pasa, pasó, movió, mueve, \
                 movido, trasladó, traslada, olvida, descarta, descartado, corrección, corrijo, actualiza, actualizado, reemplaza, reemplazar, sustituye, cancelado, \
                 cancela, aplazado, aplaza, pospuesto, ahora, nuevo, nueva, retrasa, adelanta, más bien, pensándolo bien, pensándolo mejor, sino, dejamos, que sea, \
                 quería decir, resulta que",
        revoke: "en vez de, en lugar de, más bien que, antes que, ya no, olvida, descarta, descartado, reemplaza, reemplazar, sustituye, cancelado, cancela, deja de, dejamos",
        deny: "no, tampoco, sin",
        reject: "no, espera, perdón, perdona, al final",
        decide: "usemos, usamos, usaremos, usa, usar, vamos a usar, decidimos, decidido, hemos decidido, acordamos, acordado, elegimos, elijo, debe, debemos, hay que, \
                 siempre, nunca, prefiero, preferimos, nos quedamos, quedamos",
        goal: "ayúdame, quiero, queremos, necesito, necesitamos, objetivo, meta, tarea, por favor, me gustaría, puedes, podrías",
        todo: "pendiente, recuerda, no olvides, recuérdame, por hacer, próximo paso",
        filler: "gracias, muchas gracias, hola, buenos días, buenas, bien, genial, vale, ok, claro, perfecto, entendido, anotado, jaja, sí, estupendo, de nada, de \
                 acuerdo, por supuesto, adiós, excelente, qué bien, con gusto, sigue, adelante, continúa, mmm, mm",
        unsure: "no sé, no lo sé, no está claro, desconocido, por aclarar, no estoy seguro",
        and: "y, pero",
        function: "el, la, los, las, un, una, unos, unas, de, del, a, al, en, con, por, para, que, y, o, pero, es, son, era, está, están, ser, fue, se, lo, le, les, su, sus, mi, \
                   mis, tu, tus, nuestro, nuestra, nos, me, te, yo, él, ella, nosotros, no, sí, como, más, muy, ya, también, si, cuando, donde, este, esta, ese, esa, eso, \
                   esto, ha, han, he, hemos, hay, todo",
    },
    Language {
        change: "en fait, finalement, plutôt, au lieu, à la place, ne plus, change, changer, changé, changeons, changement, passe, passons, passé, déplacé, déplace, \
                 repoussé, reporté, reporte, avancé, oublie, oublions, abandonne, correction, corrige, mise à jour, remplace, remplacer, remplacé, annulé, annule, \
                 désormais, maintenant, nouveau, nouvelle, réflexion faite, à la réflexion, tout compte fait, laisse tomber, laissons tomber, \
                 voulais dire, mieux vaut, vaut mieux, est mieux, il s'avère",
        revoke: "au lieu de, à la place de, ne plus, oublie, oublions, abandonne, remplace, remplacer, remplacé, annulé, annule, laisse tomber, laissons tomber, plutôt que",
        deny: "pas, non",
        reject: "non, attends, attendez, pardon, désolé",
        decide: "utilisons, on utilise, nous utilisons, utilise, utiliser, prenons, on prend, décidé, avons décidé, j'ai décidé, convenu, choisi, mets, mettons, mettez, choisissons, doit, devons, il faut, \
                 toujours, jamais, préfère, préférons, restons, on garde",
        goal: "aide-moi, aidez-moi, je veux, je voudrais, nous voulons, j'ai besoin, objectif, but, tâche, s'il te plaît, s'il vous plaît, peux-tu, pouvez-vous",
        todo: "à faire, n'oublie pas, n'oubliez pas, rappelle-moi, rappelez-moi, prochaine étape",
        filler: "merci, merci beaucoup, bonjour, salut, bien, super, génial, d'accord, ok, bien sûr, parfait, compris, noté, haha, oui, très bien, de rien, au revoir, \
                 excellent, avec plaisir, entendu, continue, vas-y, continuez, hum, euh",
        unsure: "ne sais pas, sais pas, pas clair, inconnu, à clarifier, pas sûr",
        and: "et, mais",
        function: "le, la, les, l, un, une, des, de, du, d, à, au, aux, en, dans, avec, pour, par, sur, que, qui, et, ou, mais, est, sont, était, être, c'est, ce, cette, ces, il, elle, \
                   ils, elles, je, j, tu, nous, vous, on, mon, ma, mes, ton, ta, tes, notre, nos, votre, son, sa, ses, leur, me, te, se, ne, pas, plus, très, aussi, si, comme, quand, \
                   où, a, ai, as, avons, ont, y, tout",
    },
];

/// Written without spaces, so that a phrase is found anywhere.
const UNSPACED: [Language; LANGUAGES - SPACED] = [
    Language {
        change: "改成, 改为, 改到, 改用, 换成, 换到, 更正, 取消, 不再, 推迟到, 推迟, 提前到, 提前, 其实, 算了, 变更, 调整为, 调整到, 而不是, 搬到, 还是, 想了想, 重新考虑, 不要了, 忘掉, 更好, 变成, 请换",
        revoke: "不再, 取消, 而不是, 不用, 不要了, 放弃, 别用, 代替, 忘掉, 忘了",
        deny: "不是, 不要, 不用, 别",
        reject: "不对, 不, 等等, 等一下, 抱歉, 说错, 搞错, 错了, 应该是",
        decide: "决定, 就用, 我们用, 使用, 选择, 定为, 定在, 必须, 一定, 不要用, 采用, 约定",
        goal: "帮我, 请帮, 我想, 我要, 目标, 我需要, 希望, 我们要",
        todo: "记得, 别忘, 提醒我, 待办, 下一步",
        filler: "谢谢, 好的, 你好, 您好, 哈哈, 太好了, 明白, 收到, 没问题, 不客气, 当然, 可以的, 知道了, 真棒, 再见, 已记录, 记下了, 继续, 嗯, 哦",
        unsure: "不知道, 不清楚, 不确定, 待定, 未知",
        and: "",
        function: "的, 了, 是, 在, 我们, 我, 你, 他, 她, 它, 们, 和, 与, 也, 都, 就, 这, 那, 有, 会, 要, 到, 把, 被, 给, 对, 为, 吗, 呢, 吧, 啊, 很, 还",
    },
    Language {
        change: "変更, に変え, 変わり, やっぱり, やはり, 訂正, ではなく, じゃなく, 取り消, 延期, 中止, 移動, 移り, 切り替え, 代わりに, に直し, 前倒し, 更新, 考え直し, のほうがいい, の方がいい, やめて, 忘れて, より, 間違い, 間違え, 違った, 正しくは, になりました, むしろ, でなく",
        revoke: "ではなく, じゃなく, 取り消, 中止, やめ, の代わりに, 廃止, は忘れて, より, でなく",
        deny: "ではない, じゃない, じゃなく, 要らない, いらない",
        reject: "いいえ, いや, 違います, 違う, 待って, すみません",
        decide: "決め, 決定, にします, にしましょう, にしてください, にして, にしよう, を使い, を使う, 使用, 必ず, ことにし, 採用, 選び",
        goal: "手伝って, したいです, したい, 目標, 欲しい, ほしい, お願い, 目的",
        todo: "忘れず, 忘れないで, リマインド, やること, 覚えておいて",
        filler: "ありがとう, はい, こんにちは, おはよう, 了解, わかりました, 分かりました, すごい, なるほど, よろしく, 承知, 素晴らしい, もちろん, 大丈夫, 記録しました, 続けて, うーん, えっと",
        unsure: "わかりません, 分かりません, 不明, 未定, 確認が必要",
        and: "",
        function: "です, ます, でした, ました, ください, して, した, する, これ, それ, あれ, この, その, から, まで, ので, という, ある, いる, なる, は, が, を, に, の, と, で, も, へ, や, か, ね, よ",
    },
];

/// For each language, the words that tell nothing of a subject: grammar, and lone words of thanks, agreement and denial.
pub(super) fn plain_words() -> impl Iterator<Item = Vec<&'static str>> {
    let plain = |language: &Language| {
        let lists = [language.function, language.filler, language.reject, language.deny, language.and];
        lists.into_iter().flat_map(phrases).filter(|phrase| !phrase.contains(' ')).collect()
    };
    ALPHABETIC.iter().chain(&UNSPACED).map(plain)
}

/// All single words of the tables, each with the place of its language.
pub(super) fn known_words() -> impl Iterator<Item = (usize, &'static str)> {
    ALPHABETIC.iter().enumerate().flat_map(|(place, language)| {
        let words = language.lists().into_iter().flat_map(|(_, list)| phrases(list));
        words.filter(|word| !word.is_empty() && !word.contains(' ')).map(move |word| (place, word))
    })
}

/// A phrase of several words.
struct Phrase {
    words: Vec<&'static str>,
    cue: Cue,
    language: usize,
}

/// Which cues a phrase of several words is, by its first word.
static BY_FIRST_WORD: LazyLock<HashMap<&'static str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut found: HashMap<&str, Vec<Phrase>> = HashMap::new();
    for (language, table) in ALPHABETIC.iter().enumerate() {
        for (cue, list) in table.lists() {
            for phrase in phrases(list) {
                let words: Vec<&'static str> = phrase.split(' ').collect();
                found.entry(words[0]).or_default().push(Phrase { words, cue, language });
            }
        }
    }
    found
});

/// Returns the cues among the words of a sentence, given in lower case, and marks the words that they consist of.
pub(super) fn among(words: &[&str], tongues: Tongues, mut mark: impl FnMut(usize, Cue)) -> Cues {
    let mut cues = Cues::default();
    let mut leads = true;
    for at in 0..words.len() {
        let begins = leads;
        leads &= is_lead(words[at], tongues);
        let Some(known) = BY_FIRST_WORD.get(words[at]) else { continue };
        for Phrase { words: phrase, cue, .. } in known.iter().filter(|known| tongues.has(known.language)) {
            let is_here = words[at..].len() >= phrase.len() && words[at..at + phrase.len()] == phrase[..];
            let ends = at + phrase.len() == words.len() && words.len() <= MAX_APOLOGY_WORDS;
            if is_here && (*cue != Cue::Reject || begins || ends) {
                cues.add(*cue);
                (at..at + phrase.len()).for_each(|place| mark(place, *cue));
            }
        }
    }
    cues
}

/// A short sentence can also end with what begins others: `Thursday, sorry.`
const MAX_APOLOGY_WORDS: usize = 4;

/// Whether a word may stand before the one that rejects something: `Oh no, use spaces.`
fn is_lead(word: &str, tongues: Tongues) -> bool {
    let leads = |phrase: &Phrase| {
        phrase.words.len() == 1
            && tongues.has(phrase.language)
            && matches!(phrase.cue, Cue::Filler | Cue::Reject | Cue::And)
    };
    BY_FIRST_WORD.get(word).is_some_and(|known| known.iter().any(leads))
}

/// Returns the cues in a text without spaces, and the text with a gap in the place of each.
pub(super) fn within(text: &str, tongues: Tongues) -> (Cues, String) {
    let mut cues = Cues::default();
    let mut rest = text.to_owned();
    let tables = UNSPACED.iter().enumerate().filter(|(place, _)| tongues.has(SPACED + place));
    for (cue, list) in tables.flat_map(|(_, language)| language.lists()) {
        for phrase in phrases(list).filter(|phrase| !phrase.is_empty()) {
            let is_here = if cue == Cue::Reject { text.starts_with(phrase) } else { text.contains(phrase) };
            if is_here {
                cues.add(cue);
                rest = rest.replace(phrase, " ");
            }
        }
    }
    (cues, rest)
}
