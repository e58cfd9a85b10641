use misaki_rs::Language;
use proptest::prelude::*;

use super::*;

fn text(phones: &[Phone]) -> String {
    phones.iter().map(|phone| phone.symbol).collect()
}

#[test]
fn syllables_are_written_as_misaki_writes_them() {
    // Values that misaki 0.9.4 gives.
    for (pinyin, want) in [
        ("ni3", "ni↓"),
        ("hao3", "xau↓"),
        ("hen3", "xə↓n"),
        ("gao1", "kau→"),
        ("xing4", "ɕi↘ŋ"),
        ("ren4", "ɻə↘n"),
        ("shi5", "ʂɨ"),
        ("wo3", "wo↓"),
        ("jiao4", "ʨjau↘"),
        ("si1", "sɨ→"),
        ("huan1", "xwa→n"),
        ("yue4", "ɥe↘"),
        ("yin1", "i→n"),
        ("yi1", "i→"),
        ("zhe4", "ꭧɤ↘"),
        ("cuo4", "ʦʰwo↘"),
        ("yang4", "ja↘ŋ"),
        ("ci4", "ʦʰɨ↘"),
        ("tian1", "tʰjɛ→n"),
        ("er4", "ɚ↘"),
        ("liu4", "ljou↘"),
        ("nian2", "njɛ↗n"),
        ("ri4", "ɻɨ↘"),
        ("qi1", "ʨʰi→"),
        ("qu4", "ʨʰy↘"),
        ("xue2", "ɕɥe↗"),
        ("nü3", "ny↓"),
        ("shui2", "ʂwei↗"),
        ("chun1", "ꭧʰwə→n"),
        ("yuan2", "ɥɛ↗n"),
        ("yong4", "jʊ↘ŋ"),
        ("dong1", "tʊ→ŋ"),
        ("wu3", "u↓"),
        ("weng1", "wə→ŋ"),
        ("jun1", "ʨy→n"),
        ("lüe4", "lɥe↘"),
    ] {
        let syllable = numbered(pinyin, 'x', 0);
        assert_eq!(ipa(&syllable.plain, syllable.tone), want, "{pinyin}");
    }
}

#[test]
fn every_reading_becomes_phonemes() {
    // Each character that has a reading has phonemes that Kokoro knows, nucleus and all.
    let known = "abcdefghijklmnopqrstuvwxyzɕəɚɛɥɨɻŋɤʂʊʨʦꭧʰɔ→↗↓↘";
    let mut seen = std::collections::BTreeSet::new();
    for c in ('\u{4e00}'..='\u{9fff}').filter_map(|c| c.to_pinyin()) {
        seen.insert(c.with_tone_num_end());
    }
    for (_, reading) in READINGS.lines().filter_map(|line| line.split_once('\t')) {
        seen.extend(reading.split(' '));
    }
    assert!(seen.len() > 1_200, "{}", seen.len());
    for reading in seen {
        let syllable = numbered(reading, 'x', 0);
        let ipa = ipa(&syllable.plain, syllable.tone);
        assert!(ipa.chars().all(|c| known.contains(c)), "{reading}: {ipa}");
        let vowel = ipa.chars().any(|c| "aeiouyəɚɛɨɤʊɔmnŋ".contains(c));
        let tone = ipa.contains(['→', '↗', '↓', '↘']);
        assert!(vowel && (tone || syllable.tone == 5), "{reading}: {ipa}");
    }
}

/// Pinyin as it is spoken, sandhi done.
fn pinyin(chinese: &Chinese, written: &str) -> String {
    let mut out = Vec::new();
    for run in runs(written) {
        if let Run::Han(characters) = run {
            let spoken = chinese.words(&characters);
            out.extend(spoken.iter().flatten().map(|s| format!("{}{}", s.plain, s.tone)));
        }
    }
    out.join(" ")
}

#[test]
fn words_are_read_with_their_tones() {
    let chinese = Chinese::new();
    let mut wrong = Vec::new();
    for (written, want) in [
        // Third tones in a row.
        ("你好", "ni2 hao3"),
        ("很好", "hen2 hao3"),
        ("展览馆", "zhan2 lan2 guan3"),
        // 一
        ("一个", "yi2 ge4"),
        ("一天", "yi4 tian1"),
        ("一起", "yi4 qi3"),
        ("一样", "yi2 yang4"),
        ("第一", "di4 yi1"),
        ("第一次", "di4 yi1 ci4"),
        ("星期一", "xing1 qi1 yi1"),
        ("统一", "tong3 yi1"),
        ("一九九八年", "yi1 jiu2 jiu3 ba1 nian2"),
        ("看一看", "kan4 yi5 kan4"),
        // 不
        ("不是", "bu2 shi4"),
        ("不好", "bu4 hao3"),
        ("不错", "bu2 cuo4"),
        ("好不好", "hao3 bu5 hao3"),
        // Characters with more than one reading.
        ("银行", "yin2 hang2"),
        ("行走", "xing2 zou3"),
        ("重庆", "chong2 qing4"),
        ("重要", "zhong4 yao4"),
        ("长大", "zhang3 da4"),
        ("长度", "chang2 du4"),
        ("还书", "huan2 shu1"),
        ("还有", "hai2 you3"),
        ("你得去", "ni2 dei3 qu4"),
        ("跑得快", "pao3 de5 kuai4"),
        ("慢慢地走", "man4 man4 de5 zou3"),
        ("这只狗只吃肉", "zhe4 zhi1 gou2 zhi3 chi1 rou4"),
        ("弹琴", "tan2 qin2"),
        ("种树", "zhong4 shu4"),
        ("很漂亮", "hen3 piao4 liang5"),
        ("首都北京", "shou3 du1 bei3 jing1"),
        ("爸爸妈妈", "ba4 ba5 ma1 ma5"),
        ("音乐", "yin1 yue4"),
        ("快乐", "kuai4 le4"),
        ("觉得", "jue2 de5"),
        ("睡觉", "shui4 jiao4"),
        ("头发", "tou2 fa5"),
        ("出发", "chu1 fa1"),
        ("首都", "shou3 du1"),
        ("都是", "dou1 shi4"),
        ("便宜", "pian2 yi5"),
        ("方便", "fang1 bian4"),
        ("了解", "liao2 jie3"),
        ("走了", "zou3 le5"),
        ("着急", "zhao2 ji2"),
        ("看着", "kan4 zhe5"),
        ("目的", "mu4 di4"),
        ("我的", "wo3 de5"),
        ("教书", "jiao1 shu1"),
        ("教室", "jiao4 shi4"),
        // The neutral tone.
        ("妈妈", "ma1 ma5"),
        ("我们", "wo3 men5"),
        ("桌子", "zhuo1 zi5"),
        ("东西", "dong1 xi5"),
        ("谢谢", "xie4 xie5"),
        ("好吗", "hao3 ma5"),
        // Figures.
        ("123", "yi4 bai3 er4 shi2 san1"),
        ("2026年12月1日", "er4 ling2 er4 liu4 nian2 shi2 er4 yue4 yi1 ri4"),
        ("3.14", "san1 dian3 yi1 si4"),
        ("50%", "bai3 fen1 zhi1 wu3 shi2"),
        ("2个小时", "liang3 ge4 xiao3 shi2"),
    ] {
        let got = pinyin(&chinese, written);
        if got != want {
            wrong.push(format!("{written}: {got}, not {want}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn sentences_keep_their_pauses_and_their_english() {
    let (chinese, english) = (Chinese::new(), English::new(Language::EnglishUS));
    let say = |written: &str| text(&chinese.phones(written, &english).unwrap());
    assert_eq!(say("你好，很高兴认识你。"), "ni↗xau↓, xə↓n kau→ɕi↘ŋ ɻə↘nʂɨ ni↓.");
    assert_eq!(say("好不好？"), "xau↓puxau↓?");
    let mixed = say("我用Rust写程序");
    assert!(mixed.contains("ɹˈʌst") && mixed.starts_with("wo↓jʊ↘ŋ"), "{mixed}");
    // A letter of another script is passed over.
    assert_eq!(say("你Жё好"), say("你好"));
}

#[test]
fn a_whole_corpus_stays_within_kokoros_symbols() {
    // The symbols of Kokoro v1.0's vocabulary.
    let known = ";:,.!?—…\"()“” \u{303}ʣʥʦʨᵝꭧAIOQSTWYᵊabcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔˈˌːʰʲ↓→↗↘ᵻ";
    let (chinese, english) = (Chinese::new(), English::new(Language::EnglishUS));
    let corpus = include_str!("zh_corpus.txt");
    assert!(corpus.lines().count() > 140);
    for line in corpus.lines() {
        let said = text(&chinese.phones(line, &english).unwrap());
        let foreign: String = said.chars().filter(|c| !known.contains(*c)).collect();
        assert!(foreign.is_empty(), "{line}: {said}: {foreign}");
        // Each character is a syllable with a vowel of its own.
        let characters = line.chars().filter(|c| script::of(*c) == Some(Script::Han)).count();
        let vowels = said.chars().filter(|c| "aeiouyɚɛəɤɨʊɔ".contains(*c)).count();
        assert!(vowels >= characters, "{line}: {said}");
    }
}

#[test]
fn each_phoneme_knows_its_character() {
    let (chinese, english) = (Chinese::new(), English::new(Language::EnglishUS));
    let written = "你好，Alice，我有25个苹果。";
    let phones = chinese.phones(written, &english).unwrap();
    let mut ats: Vec<usize> = phones.iter().map(|phone| phone.at).collect();
    assert!(ats.is_sorted(), "{ats:?}");
    ats.dedup();
    assert!(ats.iter().all(|at| written.is_char_boundary(*at)));
    let starts: Vec<char> = ats.iter().filter_map(|at| written[*at..].chars().next()).collect();
    assert_eq!(starts.iter().collect::<String>(), "你好，A，我有2个苹果。");
}

#[test]
fn any_text_is_survived() {
    let (chinese, english) = (Chinese::new(), English::new(Language::EnglishUS));
    proptest!(ProptestConfig::with_cases(64), |(text in "[你好世界一不a-z0-9 ，。！:%.-]{0,20}|\\PC{0,12}")| {
        let _ = chinese.phones(&text, &english);
    });
}
