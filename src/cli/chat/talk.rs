//! The talk itself: typed lines become turns, events become text. Knows neither terminal nor model,
//! only the bus.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::mpsc;

use crate::kernel::bus::{Bus, Events};
use crate::kernel::contracts::{Event, InterruptCause, NoticeLevel, TurnCommand, TurnSource};
use crate::kernel::ids::{SessionId, TurnId, TurnIds};
use crate::voice::segment::Segmenter;

/// What a person does at the keyboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// The end of the input.
    End,
}

/// How the talk is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// One object a turn, and no text.
    pub(super) json: bool,
    /// Ask for each line.
    pub(super) prompt: bool,
    /// Use colours.
    pub(super) colours: bool,
}

/// How a talk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Every turn got its reply.
    Answered,
    /// At least one did not.
    Unanswered,
    /// Left by Ctrl-C.
    Interrupted,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        match end {
            End::Answered => Self::SUCCESS,
            End::Unanswered => Self::FAILURE,
            // What shells say of a programme that Ctrl-C ended.
            End::Interrupted => Self::from(130),
        }
    }
}

/// A turn as `--json` prints it.
#[derive(Debug, Serialize)]
struct Record<'a> {
    session: &'a SessionId,
    turn: TurnId,
    user_text: &'a str,
    reply_text: &'a str,
    interrupted: bool,
    error: Option<&'a str>,
}

/// The turn that is being answered.
struct Running {
    turn: TurnId,
    text: String,
    cutter: Segmenter,
    column: bool,
}

/// A talk by lines.
pub(super) struct Talk {
    bus: Bus,
    ids: Arc<TurnIds>,
    look: Look,
    /// Commands take effect when they are typed; in a pipe when their turn comes.
    interactive: bool,
    events: Events,
    typed: VecDeque<String>,
    ended: bool,
    running: Option<Running>,
    interrupts: u8,
    prompted: bool,
    end: End,
}

impl Talk {
    pub(super) fn new(bus: Bus, ids: Arc<TurnIds>, look: Look, interactive: bool) -> Self {
        let events = bus
            .subscribe("chat", |event| event.turn().is_some() || matches!(event, Event::Notice(_)));
        // What was said while the rooms were made is shown, too.
        bus.start();
        Self {
            bus,
            ids,
            look,
            interactive,
            events,
            typed: VecDeque::new(),
            ended: false,
            running: None,
            interrupts: 0,
            prompted: false,
            end: End::Answered,
        }
    }

    /// Talks until the input ends and everything is answered.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(super) async fn run(
        mut self,
        mut input: mpsc::Receiver<Typed>,
        out: &mut impl Write,
        notes: &mut impl Write,
    ) -> io::Result<End> {
        loop {
            while self.running.is_none() {
                let Some(line) = self.typed.pop_front() else { break };
                if self.begin(line, notes)? {
                    return Ok(self.end);
                }
            }
            if self.running.is_none() {
                if self.ended {
                    return Ok(self.end);
                }
                self.ask(out)?;
            }
            tokio::select! {
                biased;
                event = self.events.next() => match event {
                    Some(event) => self.show(&event.event, out, notes)?,
                    None => return Ok(self.end),
                },
                typed = input.recv(), if !self.ended || self.running.is_some() => match typed {
                    Some(Typed::Line(line)) => {
                        self.interrupts = 0;
                        self.prompted = false;
                        match line.trim() {
                            "/stop" if self.interactive => self.stop(),
                            "/quit" if self.interactive => {
                                self.stop();
                                return Ok(self.end);
                            }
                            _ => self.typed.push_back(line),
                        }
                    }
                    Some(Typed::Interrupt) => {
                        self.interrupts += 1;
                        if self.interrupts > 1 || !self.interactive {
                            self.stop();
                            return Ok(End::Interrupted);
                        }
                        self.stop();
                        if self.running.is_none() {
                            writeln!(notes, "\npress Ctrl-C again to leave")?;
                            self.prompted = false;
                        }
                    }
                    Some(Typed::End) | None => self.ended = true,
                },
            }
        }
    }

    /// Begins a turn with a line; `true` when it says to leave.
    fn begin(&mut self, line: String, notes: &mut impl Write) -> io::Result<bool> {
        let text = line.trim();
        match text {
            "" | "/stop" => return Ok(false),
            "/quit" => return Ok(true),
            // A single word behind a slash is a mistyped command; a path or a fraction is not.
            _ if self.interactive && is_command(text) => {
                writeln!(notes, "there is no `{text}`: the commands are `/stop` and `/quit`")?;
                return Ok(false);
            }
            _ => {}
        }
        let turn = self.ids.next();
        let text = text.to_owned();
        let source = TurnSource::Terminal;
        let command = TurnCommand::Begin { turn, text: text.clone(), source, draft: false };
        if let Err(error) = self.bus.send(command) {
            writeln!(notes, "error: {error}")?;
            self.end = End::Unanswered;
            return Ok(false);
        }
        self.running = Some(Running { turn, text, cutter: Segmenter::default(), column: false });
        Ok(false)
    }

    /// Stops the reply, if there is one.
    fn stop(&self) {
        if let Some(running) = &self.running {
            let (turn, cause) = (Some(running.turn), InterruptCause::Request);
            self.bus.publish(Event::Interrupted { turn, cause });
        }
    }

    fn ask(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.look.prompt && !std::mem::replace(&mut self.prompted, true) {
            let prompt = if self.look.colours { "\x1b[1;36m>\x1b[0m " } else { "> " };
            write!(out, "{prompt}")?;
            out.flush()?;
        }
        Ok(())
    }

    fn show(
        &mut self,
        event: &Event,
        out: &mut impl Write,
        notes: &mut impl Write,
    ) -> io::Result<()> {
        if let Event::Notice(notice) = event {
            // The cheerful ones would only disturb a pipe.
            if notice.level > NoticeLevel::Info || self.look.prompt {
                let hint = notice.hint.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
                writeln!(notes, "note: {}{hint}", notice.text)?;
            }
            return Ok(());
        }
        let Some(running) = self.running.as_mut().filter(|r| event.turn() == Some(r.turn)) else {
            return Ok(());
        };
        let (content, interrupted, error) = match event {
            Event::TokenEmitted { delta, .. } => {
                let pieces = running.cutter.push(delta);
                return running.print(pieces, self.look.json, out);
            }
            Event::ReplyGenerated { .. } => {
                let pieces = running.cutter.finish();
                return running.print(pieces, self.look.json, out);
            }
            Event::TurnCompleted { content, interrupted, .. } => (&**content, *interrupted, None),
            Event::TurnFailed { error, .. } => ("", false, Some(&**error)),
            _ => return Ok(()),
        };
        if self.look.json {
            let record = Record {
                session: self.bus.session(),
                turn: running.turn,
                user_text: &running.text,
                reply_text: content,
                interrupted,
                error,
            };
            writeln!(out, "{}", serde_json::to_string(&record)?)?;
        } else if running.column {
            writeln!(out)?;
        }
        out.flush()?;
        if interrupted && self.look.prompt {
            let dim = if self.look.colours { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
            writeln!(notes, "{}stopped{}", dim.0, dim.1)?;
        }
        if let Some(error) = error {
            writeln!(notes, "error: {error}")?;
            self.end = End::Unanswered;
        }
        self.running = None;
        self.prompted = false;
        Ok(())
    }
}

impl Running {
    /// Prints what is whole of the reply; white space before its first word is left out.
    fn print(
        &mut self,
        pieces: Vec<crate::voice::Piece>,
        silent: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for piece in pieces {
            let text = if self.column { &piece.display } else { piece.display.trim_start() };
            if !silent && !text.is_empty() {
                write!(out, "{text}")?;
                self.column = true;
            }
        }
        out.flush()
    }
}

fn is_command(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase()))
}

#[cfg(test)]
#[path = "talk_tests.rs"]
mod tests;
