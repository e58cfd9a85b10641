use super::*;
use crate::ears::stt::wer::{word_error_rate, words};

const JFK: &str = "And so, my fellow Americans, ask not what your country can do for you, ask what \
                   you can do for your country.";

fn jfk() -> Option<Vec<f32>> {
    let path = crate::testing::fixture("audio/jfk.wav")?;
    let samples = hound::WavReader::open(path).unwrap().into_samples::<i16>();
    Some(samples.map(|s| f32::from(s.unwrap()) / 32768.0).collect())
}

fn moonshine() -> Option<Moonshine> {
    let home = crate::testing::weights(MODEL, DECODER)?;
    Some(Moonshine::open(&home, 2, CoreLoad::default()).unwrap())
}

async fn text(stt: &Moonshine, audio: &[f32]) -> String {
    stt.transcribe(audio.to_vec(), CancellationToken::new()).await.unwrap().text
}

#[tokio::test]
async fn the_recording_is_understood() {
    let (Some(audio), Some(stt)) = (jfk(), moonshine()) else { return };
    let text = text(&stt, &audio).await;
    let wer = word_error_rate(JFK, &text);
    assert!(wer <= 0.05, "word error rate {wer:.3}: {text}");
}

#[tokio::test]
async fn a_long_quiet_lead_does_not_swallow_the_words() {
    let (Some(audio), Some(stt)) = (jfk(), moonshine()) else { return };
    for lead_ms in [800, 1300, 3000] {
        let mut led: Vec<f32> = (0..lead_ms * 16).map(|i| ((i % 7) as f32 - 3.0) * 1e-5).collect();
        led.extend_from_slice(audio.get(..40_000).unwrap());
        let words = words(&text(&stt, &led).await).join(" ");
        assert!(words.contains("fellow americans"), "{lead_ms} ms: {words}");
    }
}

#[tokio::test]
async fn cancelling_ends_a_job_and_the_next_one_works() {
    let (Some(audio), Some(stt)) = (jfk(), moonshine()) else { return };
    let cancel = CancellationToken::new();
    let job = stt.transcribe(audio.clone(), cancel.clone());
    cancel.cancel();
    assert!(job.await.is_err());
    assert!(text(&stt, &audio).await.contains("country"));
}

#[tokio::test]
async fn too_little_sound_is_no_words() {
    let Some(stt) = moonshine() else { return };
    assert_eq!(text(&stt, &[0.1; 800]).await, "");
    assert_eq!(text(&stt, &[]).await, "");
}

#[test]
fn the_lead_is_cut_to_what_is_asked() {
    let mut audio = vec![1e-4; 16_000];
    audio.extend(vec![0.3; 1_600]);
    assert_eq!(without_lead(&audio, 250).len(), 4_000 + 1_600);
    assert_eq!(without_lead(&audio, 2_000).len(), audio.len());
    assert_eq!(without_lead(&[], 250).len(), 0);
}

/// Prints what a transcription costs; run with `--no-capture --ignored`.
#[tokio::test]
#[ignore = "prints times"]
async fn times() {
    let (Some(audio), Some(stt)) = (jfk(), moonshine()) else { return };
    for seconds in [2, 5, 11] {
        let piece = audio.get(..seconds * 16_000).unwrap();
        let mut runs: Vec<f64> = Vec::new();
        for _ in 0..9 {
            let start = Instant::now();
            text(&stt, piece).await;
            runs.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        runs.sort_by(f64::total_cmp);
        println!("{seconds} s: median {:.0} ms, worst {:.0} ms", runs[4], runs[8]);
    }
}
