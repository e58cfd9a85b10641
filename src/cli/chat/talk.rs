//! The talk itself: typed lines become turns, events become text. Knows neither terminal nor model,
//! only Alice.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use tokio::sync::mpsc;

use crate::app::{Alice, Plan};
use crate::kernel::contracts::{Event, InterruptCause, Notice, NoticeLevel, TurnSource};
use crate::kernel::ids::{SessionId, TurnId};

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
}

/// What a talk shows, from the first event of its Alice on.
pub(super) type Watched = mpsc::UnboundedReceiver<Event>;

/// Lets the plan's Alice hand over what a talk shows. The queue has no limit: an output that is read
/// slowly, as by a pager, must cost no event.
pub(super) fn watch(plan: &mut Plan) -> Watched {
    let (seen, watched) = mpsc::unbounded_channel();
    plan.watch = Some(Box::new(move |envelope| {
        let event = &envelope.event;
        if event.turn().is_some() || matches!(event, Event::Notice(_)) {
            // A talk that is over looks no more.
            let _ = seen.send(event.clone());
        }
    }));
    watched
}

/// A talk by lines.
pub(super) struct Talk<'a> {
    alice: &'a Alice,
    look: Look,
    /// Commands take effect when they are typed; in a pipe when their turn comes.
    interactive: bool,
    events: Watched,
    /// Something stands in the line where the cursor is.
    column: bool,
    typed: VecDeque<String>,
    ended: bool,
    running: Option<Running>,
    interrupts: u8,
    prompted: bool,
    end: End,
}

impl<'a> Talk<'a> {
    pub(super) fn new(alice: &'a Alice, events: Watched, look: Look, interactive: bool) -> Self {
        Self {
            alice,
            look,
            interactive,
            events,
            column: false,
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
                event = self.events.recv() => match event {
                    Some(event) => self.show(&event, out, notes)?,
                    None => return Ok(self.end),
                },
                typed = input.recv(), if !self.ended || self.running.is_some() => match typed {
                    Some(Typed::Line(line)) => {
                        self.interrupts = 0;
                        self.prompted = false;
                        // The person's own line end moved the cursor.
                        self.column &= !self.look.prompt;
                        match line.trim() {
                            "/stop" if self.interactive => self.stop(),
                            "/quit" if self.interactive => {
                                self.leave(out)?;
                                return Ok(self.end);
                            }
                            _ => self.typed.push_back(line),
                        }
                    }
                    Some(Typed::Interrupt) => {
                        self.interrupts += 1;
                        if self.interrupts > 1 || !self.interactive {
                            self.leave(out)?;
                            return Ok(End::Interrupted);
                        }
                        self.stop();
                        if self.running.is_none() {
                            self.note("press Ctrl-C again to leave", out, notes)?;
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
        match self.alice.type_in(text, TurnSource::Terminal) {
            Ok(turn) => self.running = Some(Running { turn, text: text.to_owned() }),
            Err(error) => {
                writeln!(notes, "error: {error}")?;
                self.end = End::Unanswered;
            }
        }
        Ok(false)
    }

    /// Stops the reply, if there is one.
    fn stop(&self) {
        if let Some(running) = &self.running {
            let (turn, cause) = (Some(running.turn), InterruptCause::Request);
            self.alice.bus().publish(Event::Interrupted { turn, cause });
        }
    }

    /// Stops the reply for good; the shell's prompt gets a line of its own.
    fn leave(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.stop();
        self.end_line(out)
    }

    fn end_line(&mut self, out: &mut impl Write) -> io::Result<()> {
        if std::mem::take(&mut self.column) {
            writeln!(out)?;
            out.flush()?;
        }
        Ok(())
    }

    /// A line beside the output. In a terminal both are one, so the note begins a new line there.
    fn note(&mut self, line: &str, out: &mut impl Write, notes: &mut impl Write) -> io::Result<()> {
        if self.look.prompt {
            self.end_line(out)?;
            self.prompted = false;
        }
        writeln!(notes, "{line}")
    }

    fn ask(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.look.prompt && !std::mem::replace(&mut self.prompted, true) {
            let prompt = if self.look.colours { "\x1b[1;36m>\x1b[0m " } else { "> " };
            write!(out, "{prompt}")?;
            out.flush()?;
            self.column = true;
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
                self.note(&line(notice), out, notes)?;
            }
            return Ok(());
        }
        let Some(running) = self.running.as_ref().filter(|r| event.turn() == Some(r.turn)) else {
            return Ok(());
        };
        let (content, interrupted, error) = match event {
            Event::SegmentReady(segment) => return self.print(&segment.display, out),
            Event::TurnCompleted { content, interrupted, .. } => (&**content, *interrupted, None),
            Event::TurnFailed { error, .. } => ("", false, Some(&**error)),
            _ => return Ok(()),
        };
        if self.look.json {
            let record = Record {
                session: self.alice.bus().session(),
                turn: running.turn,
                user_text: &running.text,
                reply_text: content,
                interrupted,
                error,
            };
            writeln!(out, "{}", serde_json::to_string(&record)?)?;
            out.flush()?;
        }
        self.end_line(out)?;
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

    /// Prints a clause of the reply; white space before its first word is left out.
    fn print(&mut self, clause: &str, out: &mut impl Write) -> io::Result<()> {
        let text = if self.column { clause } else { clause.trim_start() };
        if !self.look.json && !text.is_empty() {
            write!(out, "{text}")?;
            out.flush()?;
            self.column = true;
        }
        Ok(())
    }
}

/// A notice as one line, in the form that the log gives to people.
fn line(notice: &Notice) -> String {
    let kind = match notice.level {
        NoticeLevel::Info => "note",
        NoticeLevel::Warning => "warning",
        NoticeLevel::Error => "error",
    };
    let hint = notice.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{kind}: {}{hint}", notice.text)
}

fn is_command(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase()))
}

#[cfg(test)]
#[path = "talk_tests.rs"]
mod tests;
