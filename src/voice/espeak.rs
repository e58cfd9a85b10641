//! espeak-ng as a pronouncing dictionary. It is GPL, so it is run as a program and never linked.
//!
//! Starting it costs about 7 ms (measured), most of it loading its dictionary, so one process is
//! always kept started and waiting for its text: then an answer takes about 1.5 ms. Each process
//! serves one text and ends, so nothing of one text can slip into the next.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a person is told when the program is not there.
pub const MISSING: &str = "espeak-ng is not installed: install the package `espeak-ng`";

/// A running espeak-ng of one language.
#[derive(Debug)]
pub(super) struct Espeak {
    program: &'static str,
    language: &'static str,
    spare: Mutex<Option<Child>>,
}

impl Espeak {
    /// Starts espeak-ng for a language such as `en-us`.
    ///
    /// # Errors
    /// [`MISSING`], or what it said.
    pub(super) fn start(language: &'static str) -> anyhow::Result<Self> {
        Self::start_program("espeak-ng", language)
    }

    fn start_program(program: &'static str, language: &'static str) -> anyhow::Result<Self> {
        let espeak = Self { program, language, spare: Mutex::new(None) };
        let answer = espeak.lines(&["a".to_owned()])?;
        if answer.first().is_none_or(String::is_empty) {
            bail!("`{program}` gives no phonemes for `{language}`: reinstall it");
        }
        Ok(espeak)
    }

    fn launch(&self) -> anyhow::Result<Child> {
        Command::new(self.program)
            .args(["-q", "--ipa", "-v", self.language])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => anyhow::anyhow!(MISSING),
                _ => anyhow::anyhow!("`{}` can't be started: {error}", self.program),
            })
    }

    fn replace_spare(&self, with: Option<Child>) -> Option<Child> {
        std::mem::replace(&mut *self.spare.lock().unwrap_or_else(PoisonError::into_inner), with)
    }

    /// IPA of each line (words without marks or figures), words separated by a space.
    ///
    /// # Errors
    /// When the program is missing, fails, or does not answer in time.
    pub(super) fn lines(&self, lines: &[String]) -> anyhow::Result<Vec<String>> {
        let answer = self.ask(lines)?;
        if answer.len() == lines.len() {
            return Ok(answer);
        }
        // It cut a line in two: ask line by line.
        lines
            .iter()
            .map(|line| {
                let parts = self.ask(std::slice::from_ref(line))?;
                Ok(parts.join(" ").trim().to_owned())
            })
            .collect()
    }

    fn ask(&self, lines: &[String]) -> anyhow::Result<Vec<String>> {
        let mut text = lines.join("\n");
        text.push('\n');
        let answer = match self.replace_spare(None) {
            // A spare can have been killed while it waited.
            Some(spare) => self
                .converse(spare, text.as_bytes())
                .or_else(|_| self.converse(self.launch()?, text.as_bytes())),
            None => self.converse(self.launch()?, text.as_bytes()),
        }?;
        if let Some(other) = self.replace_spare(self.launch().ok()) {
            reap(other);
        }
        Ok(answer.lines().map(|line| strip_language(line.trim())).collect())
    }

    fn converse(&self, mut child: Child, text: &[u8]) -> anyhow::Result<String> {
        let answer = (|| {
            let mut stdin = child.stdin.take().context("no input pipe")?;
            let mut stdout = child.stdout.take().context("no output pipe")?;
            let (done, wait) = channel();
            let reader = std::thread::Builder::new().name("espeak".into()).spawn(move || {
                let mut out = Vec::new();
                let result = stdout.read_to_end(&mut out).map(|_| out);
                // The waiting side is gone when the time is up.
                let _ = done.send(result);
            })?;
            stdin.write_all(text)?;
            drop(stdin);
            let out = match wait.recv_timeout(TIMEOUT) {
                Ok(out) => out?,
                Err(RecvTimeoutError::Timeout) => bail!("no answer within {TIMEOUT:?}"),
                Err(RecvTimeoutError::Disconnected) => bail!("its output could not be read"),
            };
            drop(reader);
            anyhow::Ok(String::from_utf8_lossy(&out).into_owned())
        })();
        match answer {
            Ok(answer) => {
                let status = child.wait()?;
                if !status.success() {
                    bail!("`{}` failed ({status})", self.program);
                }
                Ok(answer)
            }
            Err(error) => {
                reap(child);
                Err(error.context(format!("`{}` failed", self.program)))
            }
        }
    }
}

impl Drop for Espeak {
    fn drop(&mut self) {
        if let Some(spare) = self.replace_spare(None) {
            reap(spare);
        }
    }
}

fn reap(mut child: Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// Removes the marks of a change of language, such as `(fr)`.
fn strip_language(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut inside = false;
    for c in line.chars() {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            _ if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_missing_program_is_named_with_its_cure() {
        let error = Espeak::start_program("no-such-espeak", "en-us").unwrap_err();
        assert_eq!(error.to_string(), MISSING);
    }

    #[test]
    fn each_line_has_its_phonemes() {
        let Ok(espeak) = Espeak::start("en-us") else {
            eprintln!("skipped: {MISSING}");
            return;
        };
        assert_eq!(
            espeak.lines(&lines(&["hello there", "how are you"])).unwrap(),
            ["həlˈoʊ ðˈɛɹ", "hˈaʊ ɑːɹ juː"]
        );
        // A line of which it makes two, and one of which it makes none.
        let odd = espeak.lines(&lines(&["one. Two", "", "three"])).unwrap();
        assert_eq!(odd.len(), 3);
        assert_eq!(odd[1], "");
        // A spare that was killed does not matter.
        if let Some(spare) = espeak.spare.lock().unwrap().as_mut() {
            spare.kill().unwrap();
        }
        assert_eq!(espeak.lines(&lines(&["hello there"])).unwrap(), ["həlˈoʊ ðˈɛɹ"]);
    }
}
