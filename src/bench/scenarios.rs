//! The benchmarks by name, with their bars (`docs/benchmarks.md` says where the bars come from).

use std::sync::Arc;
use std::time::{Duration, Instant as WallInstant};

use anyhow::Context;

use crate::app::engines::{self, Hearing};
use crate::config::{Home, Settings};
use crate::kernel::load::CoreLoad;

use super::endurance;
use super::fake_llm::{Act, FakeLlm, Pace};
use super::instant::Instant;
use super::report::{Report, Row, Usage};
use super::senses::{AlwaysComplete, KnowsTheWords, LoudIsSpeech, Tone};
use super::talk::{self, Bars, QUESTIONS, Stage, Talk};
use super::viewers;

/// Every benchmark, in the order in which `alice bench` runs them.
pub const NAMES: [&str; 10] = [
    "overhead",
    "paced-piper",
    "paced-piper-plain",
    "paced-kokoro",
    "paced-kokoro-plain",
    "embedded",
    "barge-in",
    "idle",
    "viewers",
    "endurance",
];

/// A spoken answer that opens with a word and a comma, as the persona asks for.
const ANSWER: &str = "Well, that is a good question, and I am glad you asked. The short answer is \
    that it depends on the day.";

/// One whose first mark is the end of its first sentence: the `-plain` rows.
const PLAIN: &str = "The short answer is yes. It depends a little on the day.";

/// An answer that is long enough to be interrupted anywhere.
const STORY: &str = "Let me tell you about the lighthouse on the northern shore. Every evening the \
    keeper climbs one hundred and twelve steps to light the lamp. The ships far out on the water \
    wait for that light. In winter the waves are higher than the door. In summer the gulls sleep on \
    the railing and children come to count the stairs.";

/// First token after 200 ms, 40 a second: what the peers' figures were measured with.
const PACE: Pace = Pace { first_token: Duration::from_millis(200), per_second: 40.0 };

/// How to run a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Turns to measure.
    pub turns: usize,
    /// Seconds of listening for `idle`.
    pub seconds: u64,
}

/// Runs one benchmark.
///
/// # Errors
/// An unknown name, missing weights, or a talk that went wrong.
pub async fn run(name: &str, home: &Home, options: Options) -> anyhow::Result<Report> {
    match name {
        "overhead" => overhead(options).await,
        "paced-piper" => paced(name, home, "piper", ANSWER, options).await,
        "paced-piper-plain" => paced(name, home, "piper", PLAIN, options).await,
        "paced-kokoro" => paced(name, home, "kokoro", ANSWER, options).await,
        "paced-kokoro-plain" => paced(name, home, "kokoro", PLAIN, options).await,
        "embedded" => embedded(home, options).await,
        "barge-in" => barge_in(home, options).await,
        "idle" => idle(home, options).await,
        "viewers" => viewers::run().await,
        "endurance" => endurance::run().await,
        other => anyhow::bail!("there is no benchmark `{other}`: choose from {}", NAMES.join(", ")),
    }
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.ears.echo_cancel = false;
    settings
}

/// Settings whose language model is this server.
fn on_server(server: &FakeLlm) -> Settings {
    let mut settings = settings();
    settings.llm.model = "paced".into();
    let provider = settings.llm.providers.entry("paced".into()).or_default();
    provider.base_url = server.base_url();
    provider.model = "paced".into();
    settings
}

/// The questions as a person would say them: by Kokoro's `am_michael`, which Alice does not use.
fn asked(home: &Home) -> anyhow::Result<Vec<Vec<f32>>> {
    let mut settings = settings();
    settings.voice.engine = "kokoro".into();
    settings.voice.kokoro_voice = "am_michael".into();
    let voice = engines::voice(&settings, home, CoreLoad::default())?.engine;
    talk::speech(voice.as_ref(), &QUESTIONS)
}

/// A hum of one second: what instant engines need as speech.
fn hum() -> Vec<f32> {
    let rate = crate::ears::RATE as usize;
    (0..rate).map(|n| (n as f32 * 0.06).sin() * 0.3).collect()
}

async fn overhead(options: Options) -> anyhow::Result<Report> {
    let talk = Talk {
        settings: settings(),
        model: Some(Arc::new(Instant::new([ANSWER]))),
        tts: Some(Arc::new(Tone)),
        hearing: Some(Hearing {
            vad: Box::new(LoudIsSpeech),
            end_of_turn: Some(Box::new(AlwaysComplete)),
            stt: Arc::new(KnowsTheWords::default()),
        }),
    };
    let bars = Bars { first_sound: (None, None), own: Some(10.0) };
    talk::measure("overhead", talk, &[hum()], options.turns, bars).await
}

async fn paced(
    name: &str,
    home: &Home,
    engine: &str,
    answer: &str,
    options: Options,
) -> anyhow::Result<Report> {
    let first_sound =
        if engine == "piper" { (Some(500.0), Some(650.0)) } else { (Some(900.0), None) };
    let bars = Bars { first_sound, own: None };
    let questions = asked(home)?;
    let server = FakeLlm::start(PACE, [Act::Reply(answer.into())]).await?;
    let mut settings = on_server(&server);
    settings.voice.engine = engine.into();
    let talk = Talk { settings, model: None, tts: None, hearing: None };
    talk::measure(name, talk, &questions, options.turns, bars).await
}

async fn embedded(home: &Home, options: Options) -> anyhow::Result<Report> {
    let questions = asked(home)?;
    let mut settings = settings();
    settings.llm.model = "embedded".into();
    let talk = Talk { settings, model: None, tts: None, hearing: None };
    let bars = Bars { first_sound: (Some(1000.0), Some(1600.0)), own: None };
    talk::measure("embedded", talk, &questions, options.turns, bars).await
}

async fn barge_in(home: &Home, options: Options) -> anyhow::Result<Report> {
    let voice = {
        let mut settings = settings();
        settings.voice.engine = "kokoro".into();
        settings.voice.kokoro_voice = "am_michael".into();
        engines::voice(&settings, home, CoreLoad::default())?.engine
    };
    let speech = talk::speech(
        voice.as_ref(),
        &["Stop, please stop now.", "Wait a moment, I have a question.", "No, that is not right."],
    )?;
    let server = FakeLlm::start(PACE, [Act::Reply(STORY.into())]).await?;
    let talk = Talk { settings: on_server(&server), model: None, tts: None, hearing: None };
    let stage = Stage::start(talk).await?;
    let (before, begun) = (Usage::now(), WallInstant::now());
    let (mut ducks, mut stops) = (Vec::new(), Vec::new());
    for (turn, speech) in (0..options.turns).zip(speech.iter().cycle()) {
        let after = Duration::from_millis(600 + 311 * (turn as u64 % 10));
        let (duck, stop) = stage.interrupt(after, speech).await?;
        ducks.extend(duck);
        // The fade takes 10 ms.
        stops.push(stop + 10.0);
    }
    let after = Usage::now();
    stage.stop().await;
    let row = |name, samples: &[f64], p50, p95| {
        Row::of(name, "ms", samples).map(|row| row.with_bars(p50, p95))
    };
    Ok(Report {
        bench: "barge-in".into(),
        rows: [
            row("onset → lowered", &ducks, None, Some(100.0)),
            row("onset → silence", &stops, Some(200.0), Some(250.0)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        cpu_s: after.cpu_s - before.cpu_s,
        wall_s: begun.elapsed().as_secs_f64(),
        rss_mb: after.rss_mb,
        load_1m: (before.load_1m, after.load_1m),
        notes: vec![
            "from the first audible sample of the interruption to the speaker's stop and its 10 ms \
             fade; a device adds its own buffer (see `live_interrupting…`)"
                .into(),
        ],
    })
}

async fn idle(_home: &Home, options: Options) -> anyhow::Result<Report> {
    let server = FakeLlm::start(PACE, [Act::Reply(ANSWER.into())]).await?;
    let talk = Talk { settings: on_server(&server), model: None, tts: None, hearing: None };
    let stage = Stage::start(talk).await?;
    // Until the voice has given back what its first word took.
    tokio::time::sleep(Duration::from_secs(13)).await;
    let (before, begun) = (Usage::now(), WallInstant::now());
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    let after = Usage::now();
    let wall_s = begun.elapsed().as_secs_f64();
    let cpu = (after.cpu_s - before.cpu_s) / wall_s * 100.0;
    stage.stop().await;
    let rows = [
        Row::of("one core while listening", "%", &[cpu]).map(|row| row.with_bars(Some(2.0), None)),
        Row::of("resident memory", "MB", &[after.rss_mb])
            .map(|row| row.with_bars(Some(150.0), None)),
    ];
    Ok(Report {
        bench: "idle".into(),
        rows: rows.into_iter().flatten().collect(),
        cpu_s: after.cpu_s - before.cpu_s,
        wall_s,
        rss_mb: after.rss_mb,
        load_1m: (before.load_1m, after.load_1m),
        notes: vec![
            "a quiet room, all engines but the language model loaded; a scripted microphone and \
             speaker: the threads of real devices are not in it"
                .into(),
        ],
    })
}

/// Runs a benchmark in a process of its own, so that memory and CPU are its own.
///
/// # Errors
/// When the process fails; its error was printed.
pub fn run_apart(name: &str, options: Options) -> anyhow::Result<Report> {
    let me = std::env::current_exe().context("this programme can't be found")?;
    let output = std::process::Command::new(me)
        .args(["bench", name, "--json", "--turns", &options.turns.to_string()])
        .args(["--seconds", &options.seconds.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "benchmark `{name}` failed");
    serde_json::from_slice(&output.stdout).context("the benchmark's report can't be read")
}
