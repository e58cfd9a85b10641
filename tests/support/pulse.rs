//! A PulseAudio server of a test's own, with null sinks as its microphone and its speaker.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Rate of recordings made by [`Pulse::record`], Hz; mono s16.
pub const RATE: u32 = 48_000;

/// A running server; it ends with the value.
pub struct Pulse {
    folder: tempfile::TempDir,
    daemon: Child,
}

impl Pulse {
    /// Starts a server with a sink `speaker` and a source `microphone` that hears what is played
    /// into the sink `mic`. Prints why and returns nothing where there is no PulseAudio.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let daemon = Self::daemon(folder.path());
        let Ok(daemon) = daemon else {
            eprintln!("skipped: no pulseaudio here");
            return None;
        };
        let pulse = Self { folder, daemon };
        pulse.await_ready();
        pulse.plug_microphone();
        pulse.pactl(&["set-default-sink", "speaker"]);
        Some(pulse)
    }

    fn daemon(folder: &Path) -> std::io::Result<Child> {
        let socket = folder.join("native");
        Command::new("pulseaudio")
            .args(["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"])
            .args(["--disallow-exit", "--realtime=no", "--high-priority=no"])
            .arg("-L")
            .arg(format!(
                "module-native-protocol-unix socket={} auth-anonymous=1",
                socket.display()
            ))
            .args(["-L", "module-null-sink sink_name=speaker rate=48000 channels=2"])
            .args(["-L", "module-null-sink sink_name=mic rate=48000 channels=1"])
            .env("HOME", folder)
            .env("XDG_RUNTIME_DIR", folder)
            .env("PULSE_RUNTIME_PATH", folder.join("pulse"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }

    fn await_ready(&self) {
        let begun = Instant::now();
        while !self.try_pactl(&["info"]) {
            assert!(begun.elapsed() < Duration::from_secs(10), "pulseaudio does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = std::fs::remove_file(self.folder.path().join("native"));
    }

    /// Starts it again on the same socket.
    pub fn restart(&mut self) {
        self.daemon = Self::daemon(self.folder.path()).unwrap();
        self.await_ready();
        self.plug_microphone();
        self.pactl(&["set-default-sink", "speaker"]);
    }

    /// Makes the microphone appear.
    pub fn plug_microphone(&self) {
        self.pactl(&[
            "load-module",
            "module-remap-source",
            "master=mic.monitor",
            "source_name=microphone",
        ]);
        self.pactl(&["set-default-source", "microphone"]);
    }

    /// Makes it disappear.
    pub fn unplug_microphone(&self) {
        self.pactl(&["unload-module", "module-remap-source"]);
    }

    /// Takes every output away, and the microphone with them.
    pub fn unplug_outputs(&self) {
        self.pactl(&["unload-module", "module-null-sink"]);
    }

    /// Makes the speaker appear again.
    pub fn plug_speaker(&self) {
        self.pactl(&["load-module", "module-null-sink", "sink_name=speaker"]);
        self.pactl(&["set-default-sink", "speaker"]);
    }

    /// Mixes the speaker into the microphone from now on.
    pub fn echo(&self, delay: Duration, decibels: f64) {
        self.pactl(&[
            "load-module",
            "module-loopback",
            "source=speaker.monitor",
            "sink=mic",
            &format!("latency_msec={}", delay.as_millis()),
            "sink_input_properties=media.name=echo",
        ]);
        let list = self.output(&["list", "short", "sink-inputs"]);
        let id = list.lines().last().and_then(|line| line.split('\t').next()).unwrap().to_owned();
        self.pactl(&["set-sink-input-volume", &id, &format!("{decibels}dB")]);
    }

    /// Lets a programme use this server and no other.
    pub fn aim<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("PULSE_SERVER", format!("unix:{}", self.folder.path().join("native").display()))
            .env("XDG_RUNTIME_DIR", self.folder.path())
    }

    /// Speaks a recording into the microphone; returns when it was played.
    pub fn speak(&self, wav: &Path) {
        let mut play = Command::new("paplay");
        let status =
            self.aim(&mut play).arg("--device=mic").arg("--latency-msec=20").arg(wav).status();
        assert!(status.unwrap().success(), "paplay failed");
    }

    /// Records a source (`speaker.monitor`, `microphone`) until the recording is stopped.
    pub fn record(&self, source: &str) -> Recording {
        let mut parec = Command::new("parec");
        let mut child = self
            .aim(&mut parec)
            .arg(format!("--device={source}"))
            .args(["--format=s16le", "--channels=1", "--latency-msec=10"])
            .arg(format!("--rate={RATE}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let heard: Arc<Mutex<Vec<i16>>> = Arc::default();
        let into = Arc::clone(&heard);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0u8; 960];
            while out.read_exact(&mut bytes).is_ok() {
                let samples = bytes.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]]));
                into.lock().unwrap().extend(samples);
            }
        });
        Recording { child, reader: Some(reader), heard, begun: Instant::now() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut pactl = Command::new("pactl");
        self.aim(&mut pactl).args(args).stderr(Stdio::null());
        pactl
    }

    fn try_pactl(&self, args: &[&str]) -> bool {
        self.command(args).stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn pactl(&self, args: &[&str]) {
        assert!(self.try_pactl(args), "pactl {args:?} failed");
    }

    fn output(&self, args: &[&str]) -> String {
        String::from_utf8(self.command(args).output().unwrap().stdout).unwrap()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running recording.
pub struct Recording {
    child: Child,
    reader: Option<JoinHandle<()>>,
    heard: Arc<Mutex<Vec<i16>>>,
    begun: Instant,
}

impl Recording {
    /// When the first sample was asked for; sample `n` is about `n / RATE` seconds later.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// So many samples were recorded so far.
    pub fn len(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    /// The samples from `from` on, so far.
    pub fn since(&self, from: usize) -> Vec<i16> {
        self.heard.lock().unwrap().get(from..).unwrap_or_default().to_vec()
    }

    /// Stops and returns everything.
    pub fn stop(mut self) -> Vec<i16> {
        self.end();
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
    }
}

/// RMS of samples in dBFS; −120 for silence.
pub fn rms_db(samples: &[i16]) -> f64 {
    let sum: f64 = samples.iter().map(|s| (f64::from(*s) / 32768.0).powi(2)).sum();
    (10.0 * (sum / samples.len().max(1) as f64).log10()).max(-120.0)
}

/// Writes mono s16 samples as a WAV file.
pub fn write_wav(path: &Path, rate: u32, samples: &[i16]) {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    for sample in samples {
        writer.write_sample(*sample).unwrap();
    }
    writer.finalize().unwrap();
}
