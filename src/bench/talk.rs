//! Talks that are measured: real time, the whole of Alice, a microphone that is told what to hear.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as WallInstant};

use anyhow::Context;

use crate::app::engines::Hearing;
use crate::app::timeline::{Timeline, TurnTimes};
use crate::app::{Alice, Input, Output, Plan};
use crate::config::{Home, Settings};
use crate::ears::RATE;
use crate::kernel::contracts::{Event, TurnSource};
use crate::kernel::ports::{ChatModel, Speaker};
use crate::kernel::resample::Resampler;
use crate::voice::Tts;
use crate::voice::silent::SilentSpeaker;

use super::devices::{MeteredSpeaker, Notes, Said, ScriptedMicrophone, Speakers, Told};
use super::report::{Report, Row, Usage};

/// How long a turn may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Things that people ask; each a complete sentence.
pub const QUESTIONS: [&str; 20] = [
    "What is the capital of France?",
    "How many days are there in a week?",
    "Can you tell me a short joke?",
    "What should I cook for dinner tonight?",
    "Who wrote the play about Romeo and Juliet?",
    "I had a very long day at work.",
    "Why is the sky blue?",
    "Please tell me something about the moon.",
    "What is the largest animal in the ocean?",
    "My sister is coming to visit on Sunday.",
    "How do I make a good cup of coffee?",
    "Do you like music?",
    "What is seven times eight?",
    "I would like to learn to play the piano.",
    "Where does chocolate come from?",
    "Tell me what you can do.",
    "Is it going to be cold in the winter?",
    "What is your favourite colour?",
    "How far away is the sun?",
    "Thank you, that was very helpful.",
];

/// Which talk to measure.
pub struct Talk {
    /// Settings of this Alice.
    pub settings: Settings,
    /// Another language model than that of the settings.
    pub model: Option<Arc<dyn ChatModel>>,
    /// Another synthesis engine.
    pub tts: Option<Arc<dyn Tts>>,
    /// Other engines for hearing.
    pub hearing: Option<Hearing>,
}

/// An Alice on scripted devices.
pub struct Stage {
    alice: Alice,
    speakers: Speakers,
    notes: Notes,
    timeline: Arc<Mutex<Timeline>>,
    _home: tempfile::TempDir,
}

impl Stage {
    /// Starts it on a home of its own.
    ///
    /// # Errors
    /// When Alice can't start.
    pub async fn start(talk: Talk) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let clock: Arc<dyn crate::kernel::clock::Clock> =
            Arc::new(crate::kernel::clock::SystemClock::default());
        let (microphone, speakers) = ScriptedMicrophone::new(Arc::clone(&clock));
        let notes: Arc<Mutex<Option<Notes>>> = Arc::default();
        let into = Arc::clone(&notes);
        let mut plan = Plan::text();
        plan.sound = true;
        plan.clock = Some(clock);
        plan.input = Input::Source(Box::new(microphone));
        plan.output = Output::Speaker(Box::new(move |port, clock| {
            let silent: Arc<dyn Speaker> = SilentSpeaker::new(port, Arc::clone(&clock));
            let (metered, notes) = MeteredSpeaker::new(silent, clock);
            *into.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(notes);
            metered
        }));
        plan.model = talk.model;
        plan.tts = talk.tts;
        plan.hearing = talk.hearing;
        let timeline: Arc<Mutex<Timeline>> = Arc::default();
        let alice = Alice::start(Home::at(folder.path()), talk.settings, plan).await?;
        let all = Arc::clone(&timeline);
        alice.bus().on(
            "bench",
            |_| true,
            move |event| {
                all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(&event);
                async {}
            },
        );
        let notes = notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let notes = notes.context("the speaker was not made")?;
        Ok(Self { alice, speakers, notes, timeline, _home: folder })
    }

    /// The running Alice.
    pub fn alice(&self) -> &Alice {
        &self.alice
    }

    /// Stops it.
    pub async fn stop(self) {
        self.alice.stop().await;
    }

    fn events<T>(&self, read: impl Fn(&Timeline) -> T) -> T {
        read(&self.timeline.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    async fn until(&self, most: Duration, done: impl Fn(&Timeline) -> bool) -> bool {
        let begun = WallInstant::now();
        while begun.elapsed() < most {
            if self.events(&done) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        false
    }

    /// How many events there are: a place to look from.
    fn mark(&self) -> usize {
        self.events(|timeline| timeline.events.len())
    }

    async fn until_event(
        &self,
        mark: usize,
        most: Duration,
        fits: impl Fn(&Event) -> bool,
    ) -> bool {
        let look = |timeline: &Timeline| {
            timeline.events.iter().skip(mark).any(|envelope| fits(&envelope.event))
        };
        self.until(most, look).await
    }

    /// What happened since `mark`, for a benchmark that failed.
    fn last_events(&self, mark: usize) -> String {
        let quiet =
            |event: &Event| !matches!(event, Event::Level { .. } | Event::TokenEmitted { .. });
        self.events(|timeline| {
            let events = timeline.events.iter().skip(mark).filter(|e| quiet(&e.event)).take(40);
            events.map(|e| format!("{:.0} {:?}\n", e.at_ms, e.event)).collect()
        })
    }

    /// Says a question and waits for the end of the answer. Returns when it was said, the turn that
    /// answered it, and the silence at the head of the answer's sound.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn ask(&self, question: &[f32]) -> anyhow::Result<(Said, TurnTimes, f64)> {
        let mark = self.mark();
        let asked = self.speakers.said().len();
        self.speakers.say(question.to_vec());
        let over =
            |event: &Event| matches!(event, Event::TurnCompleted { .. } | Event::TurnFailed { .. });
        anyhow::ensure!(
            self.until_event(mark, PATIENCE, over).await,
            "no answer within {PATIENCE:?}; last events: {}",
            self.last_events(mark)
        );
        // Speech that was ended early gets a second answer: wait for quiet.
        let mut quiet = self.mark();
        while self.until_event(quiet, Duration::from_millis(900), over).await {
            quiet = self.mark();
        }
        let said = self.speakers.said().get(asked).copied().context("the question was not said")?;
        let turn = self
            .events(|timeline| {
                let answers = |turn: &&TurnTimes| turn.speech_end_ms >= Some(said.onset_ms);
                timeline.turns.iter().find(answers).cloned()
            })
            .context("the question began no turn")?;
        let silence_ms = self.notes.all().iter().find_map(|told| match told {
            Told::Play { segment, silence_ms, .. } if segment.turn.0 == turn.turn => {
                Some(*silence_ms)
            }
            _ => None,
        });
        Ok((said, turn, silence_ms.unwrap_or(0.0)))
    }

    /// Types a message, lets the answer sound for `after`, speaks over it, and returns how long after
    /// the onset the voice was lowered and stopped, ms.
    ///
    /// # Errors
    /// When it is not stopped.
    pub async fn interrupt(
        &self,
        after: Duration,
        speech: &[f32],
    ) -> anyhow::Result<(Option<f64>, f64)> {
        let mark = self.mark();
        self.alice.type_in("Tell me a story.", TurnSource::Terminal)?;
        let sounding = |event: &Event| matches!(event, Event::SpeakingStarted { .. });
        anyhow::ensure!(self.until_event(mark, PATIENCE, sounding).await, "no answer to interrupt");
        tokio::time::sleep(after).await;
        let before = self.notes.all().len();
        let asked = self.speakers.said().len();
        self.speakers.say(speech.to_vec());
        let stopped = |event: &Event| matches!(event, Event::Interrupted { .. });
        anyhow::ensure!(
            self.until_event(mark, Duration::from_secs(5), stopped).await,
            "speaking over the voice did not stop it"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
        let said = self.speakers.said().get(asked).copied().context("nothing was said")?;
        let notes: Vec<Told> = self.notes.all().into_iter().skip(before).collect();
        let lowered = notes.iter().find_map(|told| match told {
            Told::Duck { at_ms } => Some(at_ms - said.onset_ms),
            _ => None,
        });
        let stop = notes.iter().find_map(|told| match told {
            Told::Stop { at_ms } => Some(at_ms - said.onset_ms),
            _ => None,
        });
        // The interruption is itself answered; end that too.
        let mark = self.mark();
        let begun = |event: &Event| matches!(event, Event::TurnStarted { .. });
        self.until_event(mark, Duration::from_secs(3), begun).await;
        self.alice.interrupt();
        let mark = self.mark();
        let over = |event: &Event| matches!(event, Event::TurnCompleted { .. });
        self.until_event(mark, Duration::from_millis(1500), over).await;
        Ok((lowered, stop.context("the speaker was not stopped")?))
    }
}

/// What the figures of a talk are held against, ms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bars {
    /// Last sample of the question to first audible sample of the answer: p50, p95.
    pub first_sound: (Option<f64>, Option<f64>),
    /// Decision to first sample, p95, where the engines take no time.
    pub own: Option<f64>,
}

/// Speech of `texts` by `voice`, at the ears' rate.
///
/// # Errors
/// When the voice can't speak one.
pub fn speech(voice: &dyn Tts, texts: &[&str]) -> anyhow::Result<Vec<Vec<f32>>> {
    let never = tokio_util::sync::CancellationToken::new();
    texts
        .iter()
        .map(|text| {
            let pcm = voice.synthesize(text, &never)?.pcm;
            Resampler::whole(&pcm.samples, pcm.rate, RATE)
        })
        .collect()
}

/// Asks all the questions in turn and reports the stages of the answers.
///
/// # Errors
/// When a question is not answered.
pub async fn measure(
    name: &str,
    talk: Talk,
    questions: &[Vec<f32>],
    turns: usize,
    bars: Bars,
) -> anyhow::Result<Report> {
    let stage = Stage::start(talk).await?;
    let engines = stage.alice.engines();
    // The first turn warms caches that a running Alice has warm.
    if let Some(question) = questions.first() {
        stage.ask(question).await?;
    }
    let (before, begun) = (Usage::now(), WallInstant::now());
    let mut stages: Vec<(&str, Vec<f64>)> = [
        "end of turn decided",
        "transcript",
        "first token",
        "first clause",
        "first PCM",
        "first sample out",
        "first audible sample",
        "own: decision → first sample",
    ]
    .map(|name| (name, Vec::new()))
    .into();
    let (mut early, mut asked) = (0, 0);
    for question in questions.iter().cycle().take(turns) {
        let (said, turn, silence_ms) = stage.ask(question).await?;
        asked += 1;
        if turn.endpoint_ms < Some(said.end_ms) {
            early += 1;
            continue;
        }
        let since = |at: Option<f64>| at.map(|at| at - said.end_ms);
        let moments = [
            since(turn.endpoint_ms),
            since(turn.transcript_ms),
            since(turn.first_token_ms),
            since(turn.first_clause_ms),
            since(turn.first_pcm_ms),
            since(turn.first_sample_ms),
            since(turn.first_sample_ms).map(|at| at + silence_ms),
            turn.first_sample_ms.zip(turn.endpoint_ms).map(|(sample, end)| sample - end),
        ];
        for ((_, samples), moment) in stages.iter_mut().zip(moments) {
            samples.extend(moment);
        }
    }
    let after = Usage::now();
    let stats = stage.alice.speculation().await;
    stage.stop().await;
    let rows = stages
        .iter()
        .filter_map(|(name, samples)| {
            let row = Row::of(name, "ms", samples)?;
            Some(match *name {
                "end of turn decided" => row.with_bars(Some(320.0), None),
                "first audible sample" => row.with_bars(bars.first_sound.0, bars.first_sound.1),
                "own: decision → first sample" => row.with_bars(None, bars.own),
                _ => row,
            })
        })
        .collect();
    let mut notes = vec![
        format!(
            "ms after the last audible sample of the question; {asked} questions, {early} answered before their end"
        ),
        format!(
            "speculation: {} drafts, {} used, {} thrown away, {} turns taken back",
            stats.drafts, stats.draft_hits, stats.draft_misses, stats.reopened
        ),
    ];
    notes.extend(engines.llm.map(|llm| format!("model: {llm}")));
    notes.extend(engines.tts.map(|tts| format!("voice: {tts}")));
    Ok(Report {
        bench: name.to_owned(),
        rows,
        cpu_s: after.cpu_s - before.cpu_s,
        wall_s: begun.elapsed().as_secs_f64(),
        rss_mb: after.rss_mb,
        load_1m: (before.load_1m, after.load_1m),
        notes,
    })
}
