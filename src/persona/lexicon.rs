//! Words that show a feeling in a sentence of Alice's, or in the user's.
//!
//! English entries are words or phrases; a `*` at the end of a word stands for any ending. Chinese
//! entries are found anywhere in the text. The longest entry at a place wins, so a phrase can take
//! back what one of its words would say. Weights: 1 says the feeling outright, 0.7 usually goes with
//! it, 0.45 hints at it.

use crate::kernel::contracts::Emotion::{self, *};

/// Entries of one feeling and one weight.
pub(super) type Entries = (Emotion, f32, &'static [&'static str]);

/// English.
#[rustfmt::skip]
pub(super) const ENGLISH: &[Entries] = &[
    (Happy, 1.0, &["happy", "happily", "glad", "delighted", "pleased", "congratulations", "congrats", "haha*", "hehe*", "lol",
        "well done", "great news", "good news", "good job", "nicely done", "proud of you", "good for you", "joy*", "cheerful"]),
    (Happy, 0.7, &["wonderful", "lovely", "great", "delicious", "you're welcome", "you are welcome", "my pleasure",
        "nice to hear", "nice to see", "nice to meet", "good to hear", "good to see", "hooray for", "funny", "hilarious", "smil*",
        "laugh*", "that's a good one", "good one", "cheers", "fun", "bravo", "excellent", "perfect", "any time", "anytime", "earned it"]),
    (Happy, 0.45, &["nice", "good", "hi", "hello", "hey there", "welcome", "enjoy*", "yummy", "tasty", "sounds good", "thank*",
        "thanks", "luck*", "bright", "sweet"]),

    (Sad, 1.0, &["so sorry", "very sorry", "sorry for your loss", "sorry to hear", "my condolences", "condolences", "sad", "sadly",
        "sadden*", "heartbroken", "heartbreaking", "breaks my heart", "unhappy", "miserable", "grief", "griev*", "mourn*",
        "cry", "crying", "tears", "weep*", "depress*", "forgive me", "i apologise", "i apologize", "my apologies", "hopeless"]),
    (Sad, 0.7, &["sorry", "my mistake", "my fault", "my bad", "what a pity", "what a shame", "pity", "unfortunate*", "lonely",
        "loneliness", "hurt", "hurts", "hurting", "painful", "disappoint*", "letdown", "let down", "regret*", "tough time",
        "passed away", "died", "dead", "rough day", "i wish it were", "really hard", "that is hard", "that's hard", "so hard",
        "upset*", "broke up", "broken heart", "rest in peace"]),
    (Sad, 0.45, &["alas", "loss", "lost my", "lost his", "lost her", "lose", "losing", "lost the", "fail*", "miss him", "miss her", "hard", "tough",
        "poor thing", "left me", "got fired", "you poor", "gloomy", "blue today", "down today", "so close"]),

    (Angry, 1.0, &["angry", "furious", "outrag*", "infuriat*", "enraged", "rage", "mad at", "makes me mad", "hate", "hateful",
        "how dare", "pissed", "fed up", "disgraceful", "despicable", "livid", "makes my blood boil", "shame on"]),
    (Angry, 0.7, &["unfair", "unacceptable", "annoy*", "irritat*", "shameful", "no right to", "don't talk to me", "cruel", "rude",
        "how could they", "how could he", "how could she", "stop that", "enough of", "injustice", "ridiculous", "resent*", "jerk", "scumbag",
        "horrible thing to do", "get away with"]),
    (Angry, 0.45, &["frustrat*", "stupid", "idiot*", "liar*", "cheat*", "shut up", "damn"]),

    (Surprised, 1.0, &["wow", "whoa", "surprise", "surpris*", "no way", "unbelievable", "can't believe", "cannot believe",
        "didn't expect", "did not expect", "never expected", "didn't see that", "did not see that", "astonish*", "astound*", "oh my god",
        "oh my goodness", "my goodness", "good heavens", "holy cow", "holy moly", "are you serious", "are you kidding", "you're kidding",
        "you are kidding", "jaw drop*", "stunned", "shock*", "mind blown", "blows my mind", "what a twist", "hard to believe"]),
    (Surprised, 0.7, &["incredible", "incredibly", "seriously", "for real", "unexpected*", "out of nowhere", "gosh", "wait what",
        "really now", "since when", "who knew", "remarkabl*", "amazed"]),

    (Relaxed, 1.0, &["relax", "relaxing", "relaxed", "peaceful", "calm", "calmly", "calming", "take it easy", "no rush", "no hurry",
        "take your time", "breathe", "breath", "unwind", "cozy", "cosy", "serene", "tranquil", "don't worry", "no worries",
        "do not worry", "chill out", "soothing", "rest up", "restful"]),
    (Relaxed, 0.7, &["no problem", "plenty of time", "it's okay", "it is okay", "that's okay", "it's ok", "it's fine", "all is well",
        "everything is fine", "no big deal", "never mind", "comfortable", "comfy", "quiet", "slowly", "gentle", "gently", "at ease",
        "nothing to worry", "slow down", "lean back", "put your feet up"]),
    (Relaxed, 0.45, &["rest", "easy", "soft", "slow", "nap", "leisure*"]),

    (Thinking, 1.0, &["hmm*", "let me think", "let me see", "let me work", "let me figure", "let me consider", "let me check", "i wonder",
        "i'm wondering", "wondering", "on second thought", "thinking about", "ponder*", "consider*", "on the other hand", "food for thought",
        "give me a moment", "one moment", "it depends", "that depends"]),
    (Thinking, 0.7, &["i suppose", "perhaps", "deep question", "good question", "interesting question", "i guess", "tricky question",
        "hard to say", "difficult to say", "presumably", "whether", "i think"]),
    (Thinking, 0.45, &["maybe", "might", "could be", "probably", "possibly", "it seems", "depends"]),

    (Shy, 1.0, &["blush*", "shy", "shyly", "bashful*", "flustered", "flatter*", "embarrass*", "you're making me", "caught me off guard",
        "too kind", "my cheeks", "awkward"]),
    (Shy, 0.7, &["oh stop", "stop it you", "um", "aw shucks", "i don't know what to say", "don't look at me", "you shouldn't have", "erm"]),

    (Fearful, 1.0, &["scary", "scared", "scares", "afraid of", "frighten*", "terrif*", "terror", "fear", "fearful", "horrif*", "creepy",
        "spooky", "chills", "dread*", "panic*", "nightmare*", "petrified", "goosebumps", "eerie"]),
    (Fearful, 0.7, &["dangerous", "danger", "nervous", "anxious", "worried", "worries me", "be careful", "careful down", "watch out", "get out of there",
        "somewhere safe", "call for help", "run away", "trembl*", "shiver*", "afraid", "stay safe", "i would hide", "hide under"]),
    (Fearful, 0.45, &["oh no", "risky", "careful", "unsafe", "worry"]),

    (Disgusted, 1.0, &["disgust*", "gross", "ew", "eww*", "yuck*", "revolting", "nasty", "nauseat*", "repuls*", "ick", "icky", "vile",
        "turns my stomach", "sicken*", "makes me sick", "filthy", "vomit*", "foul", "blech", "puke"]),
    (Disgusted, 0.7, &["ugh", "rotten", "stink*", "stench", "smells awful", "smells bad", "slimy", "mouldy", "moldy"]),

    (Excited, 1.0, &["excit*", "can't wait", "cannot wait", "can hardly wait", "yay", "woohoo", "woo hoo", "hooray", "hurray", "thrill*",
        "let's go", "here we go", "let's do it", "let's do this", "pumped", "looking forward", "bring it on", "stoked", "so ready"]),
    (Excited, 0.7, &["awesome", "amazing", "fantastic", "let's play", "yes yes", "epic", "brilliant", "let's get started", "let's start",
        "hyped", "spectacular", "adventure"]),

    (Confused, 1.0, &["confus*", "don't understand", "do not understand", "didn't understand", "what do you mean", "not sure what you mean",
        "doesn't make sense", "makes no sense", "don't follow", "do not follow", "don't quite follow", "lost me", "puzzl*", "bewilder*", "didn't catch", "did not catch",
        "don't get it", "do not get it", "baffl*", "perplex*", "no idea what you", "not following"]),
    (Confused, 0.7, &["huh", "pardon", "say that again", "repeat that", "come again", "unclear", "a bit lost", "i'm lost", "not sure i understand",
        "you mean which", "which one do you mean", "strange", "odd", "clarify", "rephrase", "makes sense to"]),

    (Loving, 1.0, &["love you", "adore*", "darling", "sweetheart", "my dear", "dearest", "hug", "hugs", "kiss", "kisses", "here for you",
        "right here with you", "with you always", "always be with you", "care about you", "you mean a lot", "you mean so much", "mean the world",
        "matter to me", "matter so much", "you are not alone", "you're not alone", "cuddle*", "sweetie", "fond of you", "honey", "miss you", "missed you",
        "sweet dreams", "sleep tight", "proud to know you", "by your side", "lean on me"]),
    (Loving, 0.7, &["dear", "love", "come here", "special to me", "good night", "take care", "affection*", "thinking of you", "cherish*", "precious"]),
];

/// Chinese.
#[rustfmt::skip]
pub(super) const CHINESE: &[Entries] = &[
    (Happy, 1.0, &["高兴", "开心", "快乐", "恭喜", "祝贺", "哈哈", "嘻嘻", "嘿嘿", "好消息", "笑死", "太好了", "真好呀", "真为你", "替你高兴", "欣慰", "愉快", "幸福"]),
    (Happy, 0.7, &["真不错", "很不错", "不客气", "不用谢", "做得好", "做得很好", "真棒", "很棒", "了不起", "好样的", "好笑", "有趣", "真好", "早上好", "你好呀", "欢迎", "好吃", "干得漂亮"]),
    (Happy, 0.45, &["不错", "你好", "谢谢", "感谢", "喜欢", "好玩", "漂亮"]),

    (Sad, 1.0, &["难过", "伤心", "悲伤", "心碎", "痛苦", "遗憾", "节哀", "对不起", "可惜", "失望", "心痛", "哭", "流泪", "难受", "抑郁", "沮丧", "绝望", "委屈", "不开心", "不高兴", "不快乐", "失去", "抱歉让你"]),
    (Sad, 0.7, &["抱歉", "我错了", "弄错了", "是我不好", "孤独", "孤单", "寂寞", "去世", "死了", "离开了我们", "唉", "哀", "失恋", "分手", "离婚", "失业", "不容易", "糟透", "不好过", "没考上", "丢了工作"]),
    (Sad, 0.45, &["输了", "失败", "没用", "没人关心", "病了", "好累", "很累"]),

    (Angry, 1.0, &["生气", "愤怒", "气死", "气人", "可恶", "可恨", "过分", "无耻", "混蛋", "岂有此理", "火大", "恼火", "太讨厌", "真讨厌", "讨厌他", "恨", "发火", "不要脸", "忍无可忍", "气愤"]),
    (Angry, 0.7, &["残忍", "没礼貌", "怎么能这样", "不许", "骗子", "凭什么", "不公平", "哼", "太坏", "欺负", "缺德", "讨厌", "住口", "闭嘴"]),

    (Surprised, 1.0, &["哇", "天哪", "天啊", "我的天", "真的假的", "不会吧", "没想到", "想不到", "竟然", "居然", "难以置信", "不敢相信", "惊人", "吃惊", "惊讶", "意外", "震惊", "不可思议", "神奇", "真的吗", "什么？！", "出乎意料", "太突然了", "吓一跳"]),

    (Relaxed, 1.0, &["放松", "惬意", "悠闲", "慢慢", "别急", "别着急", "不用急", "不着急", "不急", "不要紧", "没关系", "安静", "舒服", "别担心", "不用担心", "不必担心", "平静", "深呼吸", "呼吸", "没事", "好好休息", "自在", "宁静", "安心"]),
    (Relaxed, 0.7, &["休息", "轻松", "享受", "躺", "泡个澡", "时间还"]),

    (Thinking, 1.0, &["让我想", "我想想", "想一想", "想一下", "琢磨", "考虑", "思考", "这个嘛", "看情况", "我算一", "算一算", "我查一", "值得想", "我看看", "让我看", "容我", "斟酌", "取决于"]),
    (Thinking, 0.7, &["嗯", "也许", "或许", "说不定", "大概要", "不好说", "很难说", "可能要", "好问题", "深的问题", "我觉得可能", "我猜"]),
    (Thinking, 0.45, &["可能", "应该是", "似乎", "好像"]),

    (Shy, 1.0, &["害羞", "脸红", "不好意思", "难为情", "羞", "过奖", "脸都红", "怪不好意思", "别这么夸", "别夸", "人家"]),
    (Shy, 0.7, &["哪有啦", "讨厌啦", "突然这么说", "哎呀你", "哪里哪里"]),

    (Fearful, 1.0, &["害怕", "可怕", "恐怖", "吓人", "吓坏", "吓死", "好怕", "最怕", "很怕", "我怕", "恐惧", "救命", "发抖", "毛骨悚然", "胆战", "瑟瑟", "惊恐", "怕怕", "噩梦"]),
    (Fearful, 0.7, &["危险", "紧张", "小心", "当心", "不安", "焦虑", "快逃", "快跑", "担心", "慌"]),

    (Disgusted, 1.0, &["恶心", "反胃", "作呕", "想吐", "呕", "呃", "臭死", "太脏", "好脏", "倒胃口", "肮脏", "令人厌恶", "好臭", "太臭", "恶臭"]),
    (Disgusted, 0.7, &["臭", "脏", "发霉", "受不了", "馊"]),

    (Excited, 1.0, &["期待", "迫不及待", "等不及", "激动", "兴奋", "耶", "冲呀", "冲啊", "哇塞", "出发", "好耶", "太棒了", "热血沸腾", "加油"]),
    (Excited, 0.7, &["好呀好呀", "精彩", "快开始", "一起去", "来玩", "走吧", "太酷"]),

    (Confused, 1.0, &["不明白", "没明白", "不懂", "没懂", "糊涂", "什么意思", "困惑", "搞不清", "没听清", "不清楚你", "绕晕", "听不懂", "看不懂", "迷惑", "没太明白", "不太明白", "摸不着头脑", "没听懂", "一头雾水", "指的是什么", "你是说哪", "疑惑"]),
    (Confused, 0.7, &["再说一遍", "再说一次", "奇怪", "到底是", "你是指", "晕了", "咦", "怎么回事"]),

    (Loving, 1.0, &["我爱你", "爱你", "亲爱的", "抱抱", "抱一抱", "宝贝", "亲亲", "陪着你", "陪你", "有我在", "我在这", "不是一个人", "最喜欢你", "好梦", "想你", "对我很重要", "在乎你", "关心你", "拥抱", "么么", "永远在", "依靠", "守护你"]),
    (Loving, 0.7, &["晚安", "照顾好自己", "爱", "温暖", "珍惜", "心疼"]),
];

/// Words that turn the next feeling round, when they stand up to three words before it.
#[rustfmt::skip]
pub(super) const ENGLISH_NOT: &[&str] = &["not", "no", "never", "don't", "doesn't", "didn't", "isn't", "aren't", "wasn't", "weren't", "can't",
    "cannot", "couldn't", "won't", "wouldn't", "nothing", "without", "hardly", "nor"];

/// The same in Chinese, when they stand directly before it.
#[rustfmt::skip]
pub(super) const CHINESE_NOT: &[&str] = &["不", "没", "没有", "别", "不太", "不是很", "不怎么", "并不", "不会", "不用", "不要", "不必", "不那么", "不再"];

/// Words that make the next feeling stronger.
#[rustfmt::skip]
pub(super) const ENGLISH_MORE: &[&str] = &["very", "so", "really", "too", "extremely", "terribly", "such", "absolutely", "totally", "incredibly", "deeply"];

/// The same in Chinese.
#[rustfmt::skip]
pub(super) const CHINESE_MORE: &[&str] = &["很", "太", "真", "好", "非常", "特别", "超", "超级", "十分", "极", "最", "实在", "简直"];

/// Words that make the next feeling weaker.
pub(super) const ENGLISH_LESS: &[&str] =
    &["bit", "little", "slightly", "somewhat", "kinda", "rather"];

/// The same in Chinese.
pub(super) const CHINESE_LESS: &[&str] = &["有点", "有些", "稍微", "一点", "有一点"];

/// What a person says who thanks.
#[rustfmt::skip]
pub(super) const THANKS: &[&str] = &["thank", "thanks", "cheers", "appreciate", "谢谢", "感谢", "多谢", "谢啦"];

/// What a person says who greets.
#[rustfmt::skip]
pub(super) const GREETINGS: &[&str] = &["hello", "hi", "hey", "good morning", "good evening", "good afternoon", "你好", "您好", "早上好", "晚上好", "嗨", "哈喽"];
