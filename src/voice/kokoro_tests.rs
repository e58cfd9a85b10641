use super::*;
use crate::voice::testing::check_utterance;

fn kokoro(voice: &str) -> Option<Kokoro> {
    let home = crate::testing::weights(MODEL, WEIGHTS)?;
    Some(Kokoro::open(&home, voice, 2, 1.0, CoreLoad::default()).unwrap())
}

#[test]
fn it_speaks_with_words_and_mouths_in_time() {
    let Some(kokoro) = kokoro("af_heart") else { return };
    for text in
        ["The old man walked slowly along the river, and nobody saw him.", "Hello you, it is 5 km!"]
    {
        // "5 km" is one written number with its unit: its second word has no time of its own.
        let made = kokoro.synthesize(text, &CancellationToken::new()).unwrap();
        check_utterance(&text.replace(" km", "_km"), &made);
    }
}

#[test]
fn chinese_is_spoken_beside_english() {
    for voice in ["af_heart", "am_michael", "zf_xiaobei"] {
        let Some(kokoro) = kokoro(voice) else { return };
        assert!(kokoro.chinese.get().is_none(), "the dictionaries wait for Chinese");
        let text = "你好，我叫Alice，很高兴认识你。";
        let made = kokoro.synthesize(text, &CancellationToken::new()).unwrap();
        // Ten characters and a name.
        assert_eq!(made.words.len(), 11, "{voice}");
        let ms = made.pcm.duration_ms();
        assert!((1_800.0..5_000.0).contains(&ms), "{voice}: {ms}");
        let peak = made.pcm.samples.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
        assert!((0.1..1.0).contains(&peak), "{voice}: {peak}");
        assert!(made.visemes.iter().any(|frame| frame.aa > 0.3), "{voice}");
    }
}

/// Pitch in Hz of 40 ms windows, 10 ms apart, where they are voiced: the strongest autocorrelation
/// between 100 and 500 Hz.
fn pitch(pcm: &Pcm) -> Vec<f64> {
    let rate = pcm.rate as usize;
    let loud = pcm.samples.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
    let mut out = Vec::new();
    for window in pcm.samples.windows(rate / 25).step_by(rate / 100) {
        let power =
            |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum() };
        if power(window, window) < f64::from(loud * loud) * window.len() as f64 * 0.01 {
            continue;
        }
        let alike = |lag: usize| {
            let (a, b) = (&window[..window.len() - lag], &window[lag..]);
            power(a, b) / (power(a, a) * power(b, b)).sqrt().max(1e-9)
        };
        let lags: Vec<(usize, f64)> =
            (rate / 500..rate / 100).map(|lag| (lag, alike(lag))).collect();
        let best = lags.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        // The shortest period that is nearly as good: a multiple of it is as alike.
        let peak = lags.windows(3).find(|three| {
            let [before, here, after] = three else { return false };
            here.1 > 0.9 * best && here.1 >= before.1 && here.1 >= after.1
        });
        if let Some(peak) = peak.filter(|_| best > 0.6) {
            out.push(rate as f64 / peak[1].0 as f64);
        }
    }
    out
}

#[test]
fn tones_are_heard_in_the_pitch() {
    let Some(kokoro) = kokoro("zf_xiaoxiao") else { return };
    // The last 160 ms of a sentence, which end with the syllable.
    let ending = |han: &str| {
        let text = format!("我们都很喜欢这个{han}。");
        let made = kokoro.synthesize(&text, &CancellationToken::new()).unwrap();
        let pitch = pitch(&made.pcm);
        assert!(pitch.len() > 60, "{text}: {pitch:?}");
        let end = pitch[pitch.len() - 16..].to_vec();
        eprintln!("{han}: {end:.0?} Hz");
        end
    };
    let [level, rising, low, falling] = ["猫", "毛", "卯", "帽"].map(ending);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    // At the end of a sentence the pitch sinks, so the second and the third tone stay low; the first
    // stays up, and the fourth comes down from above it.
    let tones = [&level, &rising, &low, &falling].map(|part| mean(part));
    assert!(tones[0] > 1.06 * tones[1] && tones[0] > 1.06 * tones[2], "{tones:.0?}");
    assert!(most(&falling) > 1.06 * mean(&level), "{falling:.0?}");
    assert!(falling[15] < 0.9 * most(&falling), "{falling:.0?}");
}

#[test]
fn another_script_or_language_is_refused() {
    let Some(kokoro) = kokoro("bf_emma") else { return };
    for text in ["こんにちは", "日本語を話します", "안녕하세요", "Привет", "..."]
    {
        let error = kokoro.synthesize(text, &CancellationToken::new()).unwrap_err();
        assert!(!error.to_string().contains('\n'));
    }
    let home = Home::from_env();
    for voice in ["ef_dora", "../x", "af_nobody", ""] {
        let error = Kokoro::open(&home, voice, 1, 1.0, CoreLoad::default()).err().unwrap();
        assert!(!format!("{error:#}").contains('\n'));
    }
}

#[test]
fn a_running_synthesis_is_stopped() {
    let Some(kokoro) = kokoro("af_heart") else { return };
    let cancel = CancellationToken::new();
    let text =
        "This is a rather long sentence, made of many words, which takes its time. ".repeat(4);
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            cancel.cancel();
        });
        assert!(kokoro.synthesize(&text, &cancel).is_err());
    });
    // The whole of it takes about 8 s.
    assert!(began.elapsed().as_secs_f64() < 3.0, "{:?}", began.elapsed());
}

#[test]
fn long_texts_are_split_at_pauses() {
    let phones = |text: &str| -> Vec<(Phone, i64)> {
        text.chars().map(|symbol| (Phone { symbol, at: 0 }, 1)).collect()
    };
    let parts =
        |text: &str| -> Vec<usize> { split(&phones(text)).iter().map(|part| part.len()).collect() };
    assert_eq!(parts("abc"), [3]);
    assert_eq!(parts(&"a".repeat(1200)), [510, 510, 180]);
    let sentence = format!("{}. ", "a".repeat(298));
    assert_eq!(parts(&sentence.repeat(2)), [299, 301]);
    let clause = format!("{}, ", "a".repeat(398));
    assert_eq!(parts(&clause.repeat(2)), [399, 401]);
}
